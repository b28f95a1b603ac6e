package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestRemoteEngine runs on an engine that shares no folder with the manager: one
// run, and an open sandbox that ends a swarm at its timeout and goes on.
func TestRemoteEngine(t *testing.T) {
	t.Parallel()
	m := enginetest.NewRemote(t, "shell").Manager(t)
	res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Code: "echo out; echo err >&2; exit 3"}, sandbox.Streams{})
	if err != nil || res.Code != 3 || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" {
		t.Fatalf("%+v, %v", res, err)
	}
	out := newSite(t)
	res, err = m.Run(t.Context(), sandbox.Run{Language: "shell", Network: sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"127.0.0.1:" + out.port}}, Code: `
at=${http_proxy#http://}
for port in ` + out.port + ` 1; do
	exec 3<>"/dev/tcp/${at%:*}/${at#*:}"
	printf 'GET http://127.0.0.1:%s/far HTTP/1.0\r\n\r\n' "$port" >&3
	tail -n 1 <&3
done`}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "127.0.0.1:"+out.port+" /far\ncaisson: 127.0.0.1:1: the sandbox may not reach it: it is not on the list\n" || len(res.Connections) != 2 {
		t.Errorf("the way out: %v, %q %q, %+v", err, res.Stdout, res.Stderr, res.Connections)
	}
	s, err := m.Open(t.Context(), manager.OpenOptions{Language: "shell"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	res, err = s.Exec(t.Context(), sandbox.Run{Code: "for i in 1 2 3 4 5; do setsid sleep 300 & done; echo up; sleep 300", ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(10 * time.Second)}}, sandbox.Streams{})
	if err != nil || res.Reason != sandbox.ReasonTimeout || string(res.Stdout) != "up\n" {
		t.Errorf("a swarm: %+v, %v", res, err)
	}
	res, err = s.Exec(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "grep -l sleep /proc/[0-9]*/comm | wc -l"}}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "0\n" || res.Replaced {
		t.Errorf("after it: %q %+v, %v", res.Stdout, res, err)
	}
}

// TestSSHEngine runs on an engine that is reached through ssh.
func TestSSHEngine(t *testing.T) {
	m := enginetest.NewRemote(t, "shell").SSH(t).Manager(t)
	res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Code: "cat; echo err >&2; exit 3"}, sandbox.Streams{Stdin: strings.NewReader("in\n")})
	if err != nil || res.Code != 3 || string(res.Stdout) != "in\n" || string(res.Stderr) != "err\n" {
		t.Errorf("%+v, %v", res, err)
	}
}
