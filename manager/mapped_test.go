package manager_test

import (
	"errors"
	"os"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// With an engine whose containers' users are others outside, a session can write
// in its workspace, and so can its fork. A folder of the host has an owner that
// nobody in a sandbox can be, and is refused.
func TestEngineThatMapsUsers(t *testing.T) {
	t.Parallel()
	p := newPlaceOn(t, enginetest.NewMapped(t, "shell"))
	sh := func(name, script string) {
		t.Helper()
		res, err := p.ExecIn(t.Context(), name, sandbox.Run{Language: "shell", Command: []string{"sh", "-ec", script}}, sandbox.Streams{})
		if err != nil || res.Code != 0 {
			t.Errorf("%s: %v, %+v, %s", name, err, res.Exit, res.Stderr)
		}
	}
	if _, err := p.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work", Language: "shell"}); err != nil {
		t.Fatal(err)
	}
	sh("work", `mkdir d; echo 1 >d/a; echo 2 >/tmp/b; echo 3 >~/c; test "$(stat -c %u d/a)" = "$(id -u)"`)
	if _, _, err := p.Fork(t.Context(), "work", sandbox.ForkOptions{Name: "fork"}); err != nil {
		t.Fatal(err)
	}
	sh("fork", "echo 2 >>d/a; rm d/a; rmdir d; echo 1 >e")
	sh("work", "echo 2 >>d/a; mv d f")
	folder := sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: t.TempDir()}
	if err := os.Chown(folder.Source, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	if _, err := p.CreateSession(t.Context(), sandbox.SessionOptions{Name: "host", Workspace: folder}); !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("a folder of the host: %v", err)
	}
	if _, err := p.Run(t.Context(), sandbox.Run{Command: []string{"true"}, Workspace: folder}, sandbox.Streams{}); !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("a folder of the host, for one run: %v", err)
	}
}
