package manager_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// asks is a program that asks for a site by its address, which needs no resolver.
func asks(s *site, path string) string {
	return fmt.Sprintf(`
import os, sys, time
from http.client import HTTPConnection, HTTPException
def ask(path):
    c = HTTPConnection(os.environ["http_proxy"].removeprefix("http://"))
    c.request("GET", "http://127.0.0.1:%s" + path)
    return c.getresponse().read().decode().strip()
print(ask("%s"), flush=True)
`, s.port, path)
}

// TestEgressOfSessions gives each exec of a session a way of its own, which ends with
// it or with the process that holds it, and which the audit tells of.
func TestEgressOfSessions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python", Network: sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"127.0.0.1:" + s.port}}})
	ctx := t.Context()
	// It leaves a process that asks once its exec has ended.
	left := asks(s, "/1") + `
if os.fork() == 0:
    os.setsid()
    for n in (0, 1, 2): os.close(n)
    while not os.path.exists("go"): time.sleep(0.01)
    got = None
    while not got:
        try: got = ask("/left")
        except ConnectionRefusedError: got = "refused"
        except (OSError, HTTPException): pass # it came before the end was told in here
    open("got.tmp", "w").write(got)
    os.rename("got.tmp", "got")
    os._exit(0)
`
	res, err := p.ExecIn(ctx, "work", sandbox.Run{Code: left}, sandbox.Streams{})
	if err != nil || res.Code != 0 || string(res.Stdout) != "127.0.0.1:"+s.port+" /1\n" || len(res.Connections) != 1 {
		t.Fatalf("%v: %s%s %+v", err, res.Stdout, res.Stderr, res.Connections)
	}
	res, err = p.ExecIn(ctx, "work", sandbox.Run{Language: "python", Code: `
import os, time
open("go", "w").close()
while not os.path.exists("got"): time.sleep(0.01)
print(open("got").read())`}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "refused\n" || res.Connections != nil {
		t.Errorf("what was left: %v, %s%s", err, res.Stdout, res.Stderr)
	}
	// Another process of caisson's starts one in the background, and ends.
	other := p.manager(t)
	e, err := other.StartIn(ctx, "work", sandbox.Run{Code: asks(s, "/2") + `
while True:
    try: ask("/3")
    except (OSError, HTTPException): break # before an answer, or in the middle of one
print("over", flush=True)
time.sleep(1000)`}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	said := func() string {
		var out bytes.Buffer
		if _, err := p.AttachExec(ctx, "work", e.ID, sandbox.AttachOptions{}, &out, nil); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	until(t, "it has asked", func() bool { return said() == "127.0.0.1:"+s.port+" /2\n" })
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	until(t, "it is cut off", func() bool { return strings.HasSuffix(said(), "over\n") })
	told := map[sandbox.ID]string{}
	for event, err := range p.store.Events(ctx, sandbox.EventFilter{Kinds: []string{sandbox.EventExecConnected}}) {
		if err != nil {
			t.Fatal(err)
		}
		told[event.Exec] = string(event.Data)
	}
	if len(told) != 2 || !strings.Contains(told[e.ID], `"host":"127.0.0.1","port":`+s.port+`,"address":"127.0.0.1:`+s.port+`","verdict":"allow"`) {
		t.Errorf("the audit tells %v", told)
	}
	if err := p.KillExec(ctx, "work", e.ID); err != nil {
		t.Error(err)
	}
}

// TestEgressOfShells gives the texts of a shell the way of its shell, at the port that
// it was opened with: held by who opened it as long as that lives, and after that by
// who runs a text.
func TestEgressOfShells(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python", Network: sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"127.0.0.1:" + s.port}}})
	opener := p.manager(t)
	openIn(t, opener, "py", sandbox.ShellPython)
	got := func(text string) sandbox.Result {
		t.Helper()
		return in(t, p.Manager, "py", text)
	}
	want := "127.0.0.1:" + s.port
	if res := got(asks(s, "/1")); string(res.Stdout) != want+" /1\n" {
		t.Errorf("while its opener lives: %q %q", res.Stdout, res.Stderr)
	}
	if err := opener.Close(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/2", "/3"} {
		res := got(fmt.Sprintf("print(ask(%q))", path))
		if string(res.Stdout) != want+" "+path+"\n" || len(res.Connections) != 1 || res.Connections[0].Verdict != sandbox.Allow {
			t.Errorf("after that: %q %q %+v", res.Stdout, res.Stderr, res.Connections)
		}
	}
	got(`
import threading
def later():
    while not os.path.exists("go"): time.sleep(0.01)
    found = None
    while not found:
        try: found = ask("/left")
        except ConnectionRefusedError: found = "refused"
        except (OSError, HTTPException): pass # as above
    open("got.tmp", "w").write(found)
    os.rename("got.tmp", "got")
threading.Thread(target=later).start()`)
	res, err := p.ExecIn(t.Context(), "work", bash("touch go; until [ -e got ]; do sleep 0.01; done; cat got"), sandbox.Streams{})
	if err != nil || string(res.Stdout) != "refused" {
		t.Errorf("between two texts: %v, %q %q", err, res.Stdout, res.Stderr)
	}
}

// TestEgressCarries moves much both ways at once, to a program that reads slowly, and
// holds a flood of connections that say nothing off those that do.
func TestEgressCarries(t *testing.T) {
	t.Parallel()
	size := 64 << 20
	if os.Getenv("CAISSON_SOAK") == "1" {
		size = 1 << 30
	}
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(s.Close)
	s.port = s.URL[strings.LastIndexByte(s.URL, ':')+1:]
	kit := enginetest.New(t)
	kit.Image(t, "python")
	m, err := manager.New(manager.Config{Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: manager.Unjudged, Holder: kit.Holder, Patience: enginetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	res, err := m.Run(t.Context(), sandbox.Run{Language: "python", Network: sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"127.0.0.1:" + s.port}},
		ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)}, Code: fmt.Sprintf(`
import hashlib, os, socket, threading, time
host, port = os.environ["http_proxy"].removeprefix("http://").split(":")
silent = [socket.create_connection((host, int(port))) for _ in range(60)]
c = socket.create_connection((host, int(port)))
c.sendall(b"POST http://127.0.0.1:%s/ HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n")
sent, got = hashlib.sha256(), hashlib.sha256()
def send():
    for n in range(%d >> 16):
        block = n.to_bytes(4, "big") * (1 << 14)
        sent.update(block); c.sendall(block)
writer = threading.Thread(target=send); writer.start()
f = c.makefile("rb")
while f.readline() != b"\r\n": pass
left = %d
while True:
    n = int(f.readline(), 16)
    if n == 0: break
    while n:
        block = f.read(min(n, 1 << 16)); n -= len(block); left -= len(block)
        got.update(block)
        if left %% (8 << 20) < 1 << 16: time.sleep(0.01)
    f.readline()
writer.join()
print(left, sent.digest() == got.digest())
`, s.port, size, size, size)}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "0 True\n" {
		t.Fatalf("%v: %+v %s%s", err, res.Exit, res.Stdout, res.Stderr)
	}
	if c := res.Connections; len(c) != 1 || c[0].Sent < sandbox.Bytes(size) || c[0].Received < sandbox.Bytes(size) {
		t.Errorf("%+v", c)
	}
}
