package manager_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// watchesOf counts the watches that a process has.
func watchesOf(t *testing.T, pid int) int {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fdinfo/", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range fds {
		b, err := os.ReadFile(dir + fd.Name())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		n += strings.Count(string(b), "inotify wd:")
	}
	return n
}

// TestWatchesBounded makes more folders than a sandbox may watch: its agent holds
// no more watches of the host's than that, whoever asks for them.
func TestWatchesBounded(t *testing.T) {
	t.Parallel()
	const most = 4096
	p := newPlace(t)
	f := openFiles(t, p, sandbox.SessionOptions{})
	v, err := p.Session(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	pid := p.kit.AgentPID(t, v.Sandboxes[0].ID)
	if got, _ := p.changed(t, "work", "mkdir $(seq 5000)", ""); strings.Count(got, "created") != 5000 {
		t.Errorf("%d of 5000 folders are told of", strings.Count(got, "created"))
	}
	if n := watchesOf(t, pid); n < most/2 || n > most {
		t.Errorf("the agent holds %d watches", n)
	}
	for e, err := range f.Watch(t.Context(), ".", true) {
		if !errors.Is(err, sandbox.Exhausted) {
			t.Fatalf("watched beside that: %+v, %v", e, err)
		}
	}
	if n := watchesOf(t, pid); n > most {
		t.Errorf("the agent holds %d watches", n)
	}
	if got, _ := p.changed(t, "work", "echo 1 > 4999/f", ""); got != "created 4999/f own" {
		t.Errorf("in a folder that is not watched: %s", got)
	}
}
