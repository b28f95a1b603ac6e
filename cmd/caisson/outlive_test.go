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
