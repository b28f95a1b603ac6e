package main

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/internal/freeport"
	"github.com/caisson-dev/caisson/sandbox"
)

// e2bServer starts a server that E2B's clients can ask, and returns what to run a
// script of theirs with.
func e2bServer(t *testing.T, kit *enginetest.Kit, base, modules string) (srv *process, env []string) {
	t.Helper()
	srv = start(t, kit, base, "serve", "--listen", freeport.Address(), "--wire", "e2b")
	line, err := srv.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%v; %s", err, srv.errs)
	}
	address := strings.TrimSpace(line)
	token := func(owner string, more ...string) string {
		all := said(t, kit, base, append([]string{"token", "create", "--owner", owner}, more...)...)
		return all[strings.LastIndex(all, "\n")+1:]
	}
	return srv, append(os.Environ(), "NODE_PATH="+modules, "E2B_API_URL="+address, "E2B_SANDBOX_URL="+address, "E2B_API_KEY="+token("ann"), "OTHER_KEY="+token("bob"), "APPROVER_KEY="+token("ann", "--role", "approver"))
}

// TestE2B has E2B's own SDK do all that docs/e2b.md says is served.
func TestE2B(t *testing.T) {
	t.Parallel()
	node, modules := enginetest.Tool(t, "node", "nodejs"), sdk(t, "e2b")
	kit, base := place(t)
	kit.Image(t, "python@e2b")
	kit.Image(t, "shell")
	srv, env := e2bServer(t, kit, base, modules)
	script := exec.CommandContext(t.Context(), node, "testdata/sdk/e2b.cjs")
	script.Env = env
	out, err := script.CombinedOutput()
	text, readErr := os.ReadFile("testdata/sdk/e2b.cjs")
	if readErr != nil {
		t.Fatal(readErr)
	}
	var steps []string
	for _, m := range regexp.MustCompile(`(?m)^  async (\w+)\(sbx\)`).FindAllSubmatch(text, -1) {
		steps = append(steps, string(m[1]))
	}
	if err != nil || !slices.Equal(strings.Fields(string(out)), steps) {
		t.Fatalf("%v after %s; %s", err, out, srv.errs)
	}
	audit := said(t, kit, base, "audit", "list", "--json")
	for _, kind := range []string{sandbox.EventExecDenied, sandbox.EventExecStarted, sandbox.EventSandboxPaused, sandbox.EventSessionRemoved} {
		if !regexp.MustCompile(`"kind":"` + regexp.QuoteMeta(kind) + `".*"owner":"ann"`).MatchString(audit) {
			t.Errorf("the audit has no %s of ann's", kind)
		}
	}
}

// TestE2BRestart kills a server under a client: its sandbox, its command and what it
// was handed out are good on the next one.
func TestE2BRestart(t *testing.T) {
	t.Parallel()
	node, modules := enginetest.Tool(t, "node", "nodejs"), sdk(t, "e2b")
	kit, base := place(t)
	kit.Image(t, "python@e2b")
	srv, env := e2bServer(t, kit, base, modules)
	script := exec.CommandContext(t.Context(), node, "testdata/sdk/e2b_restart.cjs")
	script.Env = env
	in, err := script.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := script.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := &lockedText{}
	script.Stderr = errs
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v: %s; %s", line, err, errs, srv.errs)
	}
	if err := srv.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = srv.Wait() // it was killed
	address := ""
	for _, kv := range env {
		if at, ok := strings.CutPrefix(kv, "E2B_API_URL=http://"); ok {
			address = at
		}
	}
	next := start(t, kit, base, "serve", "--listen", address, "--wire", "e2b")
	if _, err := next.out.ReadString('\n'); err != nil {
		t.Fatalf("%v; %s", err, next.errs)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); line != "done\n" || script.Wait() != nil {
		t.Errorf("%q, %v: %s; %s", line, err, errs, next.errs)
	}
}
