package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// behind reports whether a process goes on behind a command on a place.
func behind(base string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range all {
		env, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(env), "CAISSON_STATE_DIR="+base+"/state\x00") && strings.Contains("\x00"+string(env), "\x00"+envBehind+"=") {
			return true
		}
	}
	return false
}

// An exec in the background whose starts are judged has a process behind the command
// that does so, until it ends and no longer.
func TestJudgeBehindTheCommand(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	do := func(code int, args ...string) string {
		t.Helper()
		p := startWith(t, kit, base, []string{"CAISSON_STARTS=judge"}, args...)
		out, _ := io.ReadAll(p.out) // to the end, so that nobody holds it open
		if got := p.code(t); got != code {
			t.Fatalf("%q: code %d, %s%s", args, got, out, p.errs)
		}
		return strings.TrimSpace(string(out))
	}
	gone := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); behind(base); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("a process stays behind")
			}
		}
	}
	do(0, "session", "create", "work", "--language", "shell")
	defer do(0, "session", "rm", "work", "--force")
	do(126, "exec", "work", "--detach", "--", "/nothing")
	gone()
	const text = "while [ ! -e go ]; do read -t 0.1 x <> /dev/zero; done; /usr/bin/env -u A sh -c 'exit 3'; echo $?; read -r c <go; $c; echo after"
	id := do(0, "exec", "work", "--detach", "--approve", "always", "--", "bash", "-c", text)
	if !sandbox.ID(id).Valid() || !behind(base) {
		t.Fatalf("%q, behind: %t", id, behind(base))
	}
	do(0, "exec", "work", "--", "sh", "-c", "echo 'rm -rf --no-preserve-root /' >part; mv part go")
	if out := do(126, "logs", "work", id, "--follow"); out != "3" {
		t.Errorf("it said %q", out)
	}
	gone()
	var v sandbox.SessionView
	if err := json.Unmarshal([]byte(do(0, "session", "show", "work", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	for _, e := range v.Execs {
		if e.ID != sandbox.ID(id) {
			continue
		}
		var told []string
		for _, s := range e.Starts {
			told = append(told, filepath.Base(s.Path)+" "+string(s.Verdict))
		}
		if got := strings.Join(told, ", "); e.StartsUnjudged != 0 || got != "env allow, sh allow, rm deny" {
			t.Errorf("%+v %s", e.Exit, got)
		}
	}
}

// A server that comes behind one that was killed judges on what that one's execs in the
// background start, and what its shells do.
func TestJudgeBehindTheServer(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	local, judges := "unix://"+base+"/srv.sock", []string{"CAISSON_STARTS=judge", "CAISSON_ON_DENIED_START=fail"}
	serve := func() *process {
		t.Helper()
		p := startWith(t, kit, base, judges, "serve", "--listen", local)
		p.await(t, local)
		return p
	}
	do := func(args ...string) string { return said(t, kit, base, append([]string{"--host", local}, args...)...) }
	server := serve()
	do("session", "create", "work", "--language", "shell")
	do("shell", "open", "work", "main")
	const text = "/usr/bin/env -u A true; echo $?; while [ ! -e go ]; do read -t 0.1 x <> /dev/zero; done; until /usr/bin/env -u B true; do read -t 0.1 x <> /dev/zero; done 2>/dev/null; read -r c <go; $c; echo $?"
	id := do("exec", "work", "--detach", "--approve", "always", "--", "bash", "-c", text)
	until(t, "it begins", func() bool { return do("logs", "work", id) == "0" })
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	server = serve()
	do("exec", "work", "--", "sh", "-c", "echo 'rm -rf --no-preserve-root /' >part; mv part go")
	if out := do("logs", "work", id, "--follow"); out != "0\n126" {
		t.Errorf("it said %q", out)
	}
	var v sandbox.SessionView
	if err := json.Unmarshal([]byte(do("session", "show", "work", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, e := range v.Execs {
		for _, s := range e.Starts {
			if e.ID == sandbox.ID(id) {
				told[filepath.Base(s.Path)+" "+string(s.Verdict)]++
			}
		}
	}
	if told["env allow"] != 2 || told["true allow"] != 2 || told["rm deny"] != 1 {
		t.Errorf("told %v", told)
	}
	var res sandbox.Result
	if err := json.Unmarshal([]byte(do("shell", "run", "work", "main", "--json", "--approve", "always", "/usr/bin/env -u C true; $(awk 'BEGIN{printf \"%c%c\", 114, 109}') -rf --no-preserve-root /; echo $?")), &res); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(res.Stdout), "126\n") || len(res.Starts) != 4 || res.Starts[len(res.Starts)-1].Verdict != sandbox.Deny {
		t.Errorf("%q, told %+v", res.Stdout, res.Starts)
	}
	do("session", "rm", "work", "--force")
	if err := server.Process.Signal(os.Interrupt); err != nil || server.code(t) != 0 {
		t.Errorf("the server: %v, %s", err, server.errs)
	}
}
