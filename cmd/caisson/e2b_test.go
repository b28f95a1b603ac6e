package main

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/internal/freeport"
	"github.com/caisson-dev/caisson/sandbox"
)

// e2bServer starts a server that E2B's clients can ask, and returns its address.
func e2bServer(t *testing.T, kit *enginetest.Kit, base string) (srv *process, address string) {
	t.Helper()
	srv = start(t, kit, base, "serve", "--listen", freeport.Address(), "--wire", "e2b")
	line, err := srv.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%v; %s", err, srv.errs)
	}
	return srv, strings.TrimSpace(line)
}

// e2bClient runs a script of theirs with tokens of two owners.
func e2bClient(t *testing.T, kit *enginetest.Kit, base, address, owner, other, script string, args ...string) *exec.Cmd {
	t.Helper()
	node, modules := enginetest.Tool(t, "node", "nodejs"), sdk(t, "e2b")
	token := func(owner string, more ...string) string {
		all := said(t, kit, base, append([]string{"token", "create", "--owner", owner}, more...)...)
		return all[strings.LastIndex(all, "\n")+1:]
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules, "E2B_API_URL="+address, "E2B_SANDBOX_URL="+address, "E2B_API_KEY="+token(owner),
		"OTHER_KEY="+token(other), "APPROVER_KEY="+token(owner, "--role", "approver"), "E2B_VALIDATE_API_KEY=false")
	return cmd
}

// TestE2B has E2B's own SDK do all that docs/e2b.md says is served, and an old one
// beside it what that knows: two clients at once.
func TestE2B(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"e2b", "e2b-2.45"} {
		sdk(t, name)
	}
	kit, base := place(t)
	kit.Image(t, "python@e2b")
	kit.Image(t, "shell")
	text, err := os.ReadFile("testdata/sdk/e2b.cjs")
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, m := range regexp.MustCompile(`(?m)^  async (\w+)\(sbx\)`).FindAllSubmatch(text, -1) {
		steps = append(steps, string(m[1]))
	}
	srv, address := e2bServer(t, kit, base)
	old := slices.DeleteFunc(slices.Clone(steps), func(step string) bool { return step == "rests" || step == "asked" }) // onResume came later; what waits is the server's
	var both sync.WaitGroup
	for _, c := range []struct {
		name, owner, other string
		steps              []string
	}{{"e2b", "ann", "bob", steps}, {"e2b-2.45", "carol", "dave", old}} {
		client := e2bClient(t, kit, base, address, c.owner, c.other, "testdata/sdk/e2b.cjs", c.steps...)
		client.Env = append(client.Env, "E2B_SDK="+c.name)
		both.Go(func() {
			if out, err := client.CombinedOutput(); err != nil || !slices.Equal(strings.Fields(string(out)), c.steps) {
				t.Errorf("%s: %v after %s; %s", c.name, err, out, srv.errs)
			}
		})
	}
	both.Wait()
	audit := said(t, kit, base, "audit", "list", "--json")
	for _, kind := range []string{sandbox.EventExecDenied, sandbox.EventExecStarted, sandbox.EventSandboxPaused, sandbox.EventSessionRemoved} {
		if !regexp.MustCompile(`"kind":"` + regexp.QuoteMeta(kind) + `".*"owner":"ann"`).MatchString(audit) {
			t.Errorf("the audit has no %s of ann's", kind)
		}
	}
	if strings.Contains(audit, `"mode":"bridge"`) {
		t.Error("a sandbox has the internet that nobody asked for")
	}
}

// TestE2BRestart kills a server under a client: its sandbox, its command and what it
// was handed out are good on the next one.
func TestE2BRestart(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	kit.Image(t, "python@e2b")
	srv, address := e2bServer(t, kit, base)
	script := e2bClient(t, kit, base, address, "ann", "bob", "testdata/sdk/e2b_restart.cjs")
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
	next := start(t, kit, base, "serve", "--listen", strings.TrimPrefix(address, "http://"), "--wire", "e2b")
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
