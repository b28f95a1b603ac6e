package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestTerminalOfTheDead kills who runs something in a terminal: the session that was
// made for it goes, with the sandbox and the workspace, by the next command, or by the
// server whose client it was.
func TestTerminalOfTheDead(t *testing.T) {
	t.Parallel()
	for _, far := range []bool{false, true} {
		t.Run(map[bool]string{false: "here", true: "by a server"}[far], func(t *testing.T) {
			t.Parallel()
			kit, base := place(t)
			args := []string{"run", "-t", "--timeout", "5m", "--", "sh", "-c", "stty -opost; echo begun; sleep 600 & sleep 600"}
			if far {
				srv := start(t, kit, base, "serve", "--listen", "unix://"+base+"/srv.sock")
				if line, err := srv.out.ReadString('\n'); err != nil {
					t.Fatalf("%q, %v; %s", line, err, srv.errs)
				}
				args = append([]string{"--host", "unix://" + base + "/srv.sock"}, args...)
			}
			p := start(t, kit, base, args...)
			p.await(t, "begun")
			ids := sandboxes(base)
			sessions := func() string { return said(t, kit, base, "session", "list") }
			if list := sessions(); len(ids) == 0 || !strings.Contains(list, "run-") {
				t.Fatalf("while it runs there are %q and %s", ids, list)
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = p.Wait() // it was killed
			if !far {
				said(t, kit, base, "session", "create", "other")
				said(t, kit, base, "exec", "other", "--", "true")
				said(t, kit, base, "session", "rm", "other")
			}
			until(t, "all of it is gone", func() bool {
				running := slices.ContainsFunc(ids, func(id string) bool { return state(t, kit, id) != "gone" })
				return !running && !strings.Contains(sessions(), "run-")
			})
			if left := said(t, kit, base, "gc", "--dry-run"); strings.Contains(left, "volume") {
				t.Errorf("there is left: %s", left)
			}
		})
	}
}

// TestClientDiesBetweenExecs kills who tests something by a server while the reviser
// thinks, and nothing runs: the session of the tests goes.
func TestClientDiesBetweenExecs(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	kit.Image(t, "python")
	// The reviser outlives who asked it, until the test's folder has gone.
	for name, text := range map[string]string{
		"sol.py": "def add(a, b): return a - b\n", "test_sol.py": "from sol import add\ndef test_add(): assert add(1, 2) == 3\n",
		"thinks.sh": "echo > " + base + "/thinks; while test -e " + base + "/thinks; do sleep 0.1; done\n",
	} {
		if err := os.WriteFile(base+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := "unix://" + base + "/srv.sock"
	srv := start(t, kit, base, "serve", "--listen", host)
	srv.await(t, host)
	p := start(t, kit, base, "--host", host, "test", "--solution", base+"/sol.py", "--tests", base+"/test_sol.py", "--reviser", "sh "+base+"/thinks.sh", "--timeout", "5m")
	until(t, "the reviser thinks", func() bool { _, err := os.Stat(base + "/thinks"); return err == nil })
	ids := sandboxes(base)
	if len(ids) != 1 {
		t.Fatalf("meanwhile there are %v; %s", ids, p.errs)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // it was killed
	until(t, "its session is gone", func() bool {
		var list struct{ Items []sandbox.SessionView }
		return ask(t, host, "GET", "/v1/sessions", "", nil, &list) == 200 && len(list.Items) == 0 && state(t, kit, ids[0]) == "gone"
	})
}
