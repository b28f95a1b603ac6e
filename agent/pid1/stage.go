//go:build linux

package pid1

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/internal/known"
)

// stage writes an exec's staged files where its user can read and not write
// them.
func (a *Agent) stage(req *wire.Exec) error {
	if !staged(req) {
		return nil
	}
	dir := path.Join(wire.StageDir, req.ID)
	if err := os.Mkdir(dir, 0o711); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	for _, f := range req.Stage {
		if err := os.MkdirAll(path.Join(dir, path.Dir(f.Name)), 0o755); err != nil {
			return fmt.Errorf("stage: %w", err)
		}
		if err := os.WriteFile(path.Join(dir, f.Name), slices.Concat(known.Text(f.Known), f.Data), 0o444); err != nil {
			return fmt.Errorf("stage: %w", err)
		}
	}
	return nil
}

// staged reports whether an exec has a folder of its own.
func staged(req *wire.Exec) bool { return len(req.Stage) > 0 || req.Tools || req.Answer > 0 }

func (a *Agent) unstage(req *wire.Exec) {
	if staged(req) {
		_ = os.RemoveAll(path.Join(wire.StageDir, req.ID)) // what stays is read-only and small, and goes with the sandbox
	}
}

// checkExec reports what is wrong with a request.
func checkExec(req *wire.Exec) error {
	if !validID(req.ID) {
		return fmt.Errorf("exec id %q", req.ID)
	}
	if (len(req.Argv) == 0) == (req.Shell == "") {
		return fmt.Errorf("exactly one of a command and a shell is needed")
	}
	if req.Shell != "" && (!req.Stdin || !req.Drop || kindsOf(req.Shell) == nil) {
		return fmt.Errorf("shell %q without an input, or of no kind that there is", req.Shell)
	}
	if req.Terminal != nil && (!req.Stdin || !req.Drop || req.Shell != "") {
		return fmt.Errorf("a terminal without an input, or of a shell")
	}
	if req.Role != "" && req.Role != "user" && req.Role != roleRunner {
		return fmt.Errorf("role %q", req.Role)
	}
	for _, s := range req.Argv {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("an argument has a NUL byte")
		}
	}
	for _, s := range req.Env {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("an environment variable has a NUL byte")
		}
	}
	size := 0
	for _, f := range req.Stage {
		if f.Name == "." || !filepath.IsLocal(f.Name) || path.Clean(f.Name) != f.Name || strings.IndexByte(f.Name, 0) >= 0 {
			return fmt.Errorf("staged file name %q", f.Name)
		}
		text := known.Text(f.Known)
		if f.Known != "" && text == nil {
			return fmt.Errorf("staged file %q begins with a text %q, which is not known", f.Name, f.Known)
		}
		size += len(text) + len(f.Data)
	}
	if size > wire.MaxStage {
		return fmt.Errorf("%d bytes staged, at most %d", size, wire.MaxStage)
	}
	return nil
}

// validID reports whether id has the form of a sandbox.ID, which this package
// does not import.
func validID(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
}
