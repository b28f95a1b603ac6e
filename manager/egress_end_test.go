package manager_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestEgressEnds loses nothing of what was sent before an end, and resets nothing: not
// what the host said last to a program that reads it after all others have closed, and
// not what a program said last before it closed.
func TestEgressEnds(t *testing.T) {
	t.Parallel()
	const said, sent = 512 << 10, 8 << 20 // more than the program's window; more than all buffers
	s := newSite(t)                       // whose resolver is used
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				line, err := r.ReadString('\n')
				if err == nil && line == "say\n" {
					_, _ = c.Write(make([]byte, said)) // whoever reads it tells
					return
				}
				n, err := io.Copy(io.Discard, r)
				_, _ = fmt.Fprintln(c, n, err)
			}()
		}
	}()
	_, s.port, _ = net.SplitHostPort(ln.Addr().String())
	program := fmt.Sprintf(`
import os, socket, time
host, port = os.environ["http_proxy"].removeprefix("http://").split(":")
def tunnel():
    c = socket.create_connection((host, int(port)))
    c.sendall(b"CONNECT 127.0.0.1:%s HTTP/1.1\r\n\r\n")
    while not c.recv(1).endswith(b"\n") or c.recv(2) != b"\r\n": pass
    return c
def owner(c): # of the other end; 0 is the kernel alone
    mine = "%%04X" %% c.getsockname()[1]
    for line in open("/proc/net/tcp"):
        f = line.split()
        if f[1].endswith(":%%04X" %% int(port)) and f[2].endswith(":" + mine): return f[9]
c = tunnel()
c.sendall(b"say\n")
c.shutdown(socket.SHUT_WR)
while owner(c) != "0": time.sleep(0.01)
print(sum(map(len, iter(lambda: c.recv(1 << 16), b""))), flush=True)
c = tunnel()
c.sendall(b"hear\n")
c.sendall(bytes(%d))
c.shutdown(socket.SHUT_WR)
print(c.makefile().read().strip())
`, s.port, sent)
	egressManagers(t, s, func(t *testing.T, m *manager.Manager) {
		res, err := m.Run(t.Context(), sandbox.Run{Language: "python", Code: program, Network: s.network()}, sandbox.Streams{})
		if want := fmt.Sprintf("%d\n%d <nil>\n", said, sent); err != nil || string(res.Stdout) != want {
			t.Errorf("%v: %s%s, not %s", err, res.Stdout, res.Stderr, want)
		}
	})
}
