package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// sessionOf is what is kept of a session.
func sessionOf(t *testing.T, show string) (v sandbox.SessionView) {
	t.Helper()
	if err := json.Unmarshal([]byte(show), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Sessions take their sandboxes from the pool, in each of their languages. One finds
// nothing of another's.
func TestPoolSessions(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to put a workspace into a container that runs")
	}
	for _, runtime := range []string{"docker", "bubblewrap"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			if runtime == "bubblewrap" {
				enginetest.Bubblewrap(t)
			}
			poolSessions(t, runtime)
		})
	}
}

func poolSessions(t *testing.T, runtime string) {
	kit, base := place(t)
	kit.Image(t, "python")
	ok := func(args ...string) string { t.Helper(); return said(t, kit, base, args...) }
	p := poolOf(t, kit, base, fmt.Sprintf("{python/%[1]s: 1, shell/%[1]s: 1}", runtime))
	full := func() {
		t.Helper()
		until(t, "all are ready", func() bool {
			list := shelves(t, kit, base)
			return len(list) == 2 && list[0].Ready == 1 && list[1].Ready == 1
		})
	}
	for _, name := range []string{"a", "b", "c"} {
		full()
		ok("session", "create", name, "-l", "python", "--runtime", runtime, "--workspace-size", "50m", "--memory", "300m")
		if got := ok("exec", name, "--approve", "always", "-c", traces); got != "found: []" {
			t.Errorf("session %s: %s", name, got)
		}
		full()
		// The other language has the same workspace, user and size.
		if got, want := ok("exec", name, "-l", "shell", "--", "sh", "-c", "stat -c %U:%a trace; touch more; cd; touch mine; id -un"), "sandbox:644\nsandbox"; got != want {
			t.Errorf("session %s in its second language: %q, want %q", name, got, want)
		}
		if got := ok("exec", name, "-c", "import os; print(sorted(os.listdir()), os.stat('more').st_uid == os.getuid())"); got != "['more', 'trace'] True" {
			t.Errorf("session %s in its first language again: %s", name, got)
		}
		over := start(t, kit, base, "exec", name, "-l", "shell", "--", "sh", "-c", "while :; do head -c 1M /dev/zero >>big; done")
		if code := over.code(t); code == 0 || !strings.Contains(over.errs.String(), "--workspace-size") {
			t.Errorf("session %s, past its workspace's size: code %d, %s", name, code, over.errs)
		}
	}
	for _, s := range shelves(t, kit, base) {
		if s.Taken != 3 || s.Missed != 0 {
			t.Errorf("of the pool there was taken %+v", s)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		ok("session", "rm", name)
	}
	end(t, p)
	if left := sandboxes(base); len(left) > 0 {
		t.Errorf("left of the pool and the sessions: %q", left)
	}
}

// Images that are named are kept ready once they were asked for: for runs, with a
// language and without, and for sessions.
func TestPoolImages(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to put a workspace into a container that runs")
	}
	kit, base := place(t)
	image := kit.Image(t, "shell").Ref
	p := poolOf(t, kit, base, "{python/docker: 1}")
	taken := func(language string) (n, ready int) {
		for _, s := range shelves(t, kit, base) {
			if s.Image == image && s.Language == language {
				return s.Taken, s.Ready
			}
		}
		return 0, 0
	}
	for language, args := range map[string][]string{
		"":       {"run", "--runtime", "docker", "--image", image, "--", "cat", "/etc/debian_version"},
		"python": {"run", "--runtime", "docker", "-l", "python", "--image", image, "--approve", "always", "--", "cat", "/etc/debian_version"},
	} {
		first := said(t, kit, base, args...)
		until(t, "one of the image is ready", func() bool { _, ready := taken(language); return ready == 1 })
		if got := said(t, kit, base, args...); got != first || got == "" {
			t.Errorf("language %q: %q from the pool, and %q before", language, got, first)
		}
		if n, _ := taken(language); n != 1 {
			t.Errorf("language %q: %d were taken from the pool", language, n)
		}
	}
	until(t, "one of the image is ready", func() bool { _, ready := taken("python"); return ready == 1 })
	said(t, kit, base, "session", "create", "work", "-l", "python", "--runtime", "docker", "--image", image)
	if got := said(t, kit, base, "exec", "work", "--approve", "always", "--", "sh", "-c", "echo x > f; cat f"); got != "x" {
		t.Errorf("in a session: %q", got)
	}
	if n, _ := taken("python"); n != 2 {
		t.Errorf("%d were taken from the pool with a session's", n)
	}
	said(t, kit, base, "session", "rm", "work")
	end(t, p)
	if left := sandboxes(base); len(left) > 0 {
		t.Errorf("left of the pool: %q", left)
	}
}

// A session that has a sandbox of the pool keeps it, and its workspace, whatever
// becomes of the pool. Its changes are recorded, taken back, copied.
func TestPoolSessionOutlives(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to put a workspace into a container that runs")
	}
	kit, base := place(t)
	ok := func(args ...string) string { t.Helper(); return said(t, kit, base, args...) }
	p := poolOf(t, kit, base, "{shell/docker: 2}")
	ok("session", "create", "work", "-l", "shell", "--runtime", "docker")
	first := ok("exec", "work", "--", "sh", "-c", "echo one > file; cat /proc/self/mountinfo | grep -c ' /workspace '")
	if first != "2" {
		t.Fatalf("its workspace was not mounted into a sandbox of the pool: %s mounts", first)
	}
	box := sessionOf(t, ok("session", "show", "work", "--json")).Sandboxes[0].ID
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.code(t)
	collected(t, kit, base)
	_, neighbour := place(t)
	collected(t, kit, neighbour) // who has another state, and other folders, on the same engine
	if got := state(t, kit, string(box)); got != "running" {
		t.Fatalf("after the pool was killed and swept its sandbox is %s", got)
	}
	ok("exec", "work", "--", "sh", "-c", "echo two > file; echo x > new")
	if v := sessionOf(t, ok("session", "show", "work", "--json")); v.Sandboxes[0].ID != box {
		t.Errorf("it has another sandbox than before")
	}
	changes := ok("changes", "work")
	if !strings.Contains(changes, "file") || !strings.Contains(changes, "new") {
		t.Errorf("changes: %s", changes)
	}
	ok("session", "snapshot", "work", "kept")
	if got := ok("exec", "work", "--", "cat", "file", "new"); got != "two\nx" {
		t.Errorf("in the sandbox that came after a snapshot: %q", got)
	}
	ok("exec", "work", "--", "rm", "file")
	ok("session", "fork", "work", "copy", "--snapshot", "kept")
	if got := ok("exec", "copy", "--", "cat", "file"); got != "two" {
		t.Errorf("in a copy: %q", got)
	}
	ok("session", "rm", "work")
	ok("session", "rm", "copy")
	collected(t, kit, base)
	left, err := kit.API.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("name", "caisson-"+string(box)))})
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
