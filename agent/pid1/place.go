//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/caisson-dev/caisson/agent/wire"
)

// place is a path that a caller named: a folder that programs may write in, and
// a name below it.
type place struct{ dir, name string }

// placeOf reads a path. What leads out of its folder by its text alone is
// refused here, what does so by links by os.Root.
func placeOf(asked string) (place, error) {
	clean := path.Clean(asked)
	for _, dir := range wire.Beside {
		if rest, ok := strings.CutPrefix(clean, dir); ok && (rest == "" || rest[0] == '/') {
			return place{dir, path.Clean("." + rest)}, nil
		}
	}
	name, err := below(asked)
	return place{wire.WorkspaceDir, name}, err
}

// shown is the path of an entry below the folder in answers: an absolute one
// beside the workspace.
func (p place) shown(name wire.Name) wire.Name {
	if p.dir == wire.WorkspaceDir {
		return name
	}
	return wire.Name(path.Join(p.dir, string(name)))
}

// in runs do with the folder open and a role's rights.
func (a *Agent) in(dir, role string, do func(*os.Root) error) error {
	var err error
	acting := a.as(role, func() {
		var root *os.Root
		if root, err = os.OpenRoot(dir); err == nil {
			err = errors.Join(do(root), root.Close())
		}
	})
	return errors.Join(err, acting)
}

// inWorkspace runs do with the workspace open and a role's rights.
func (a *Agent) inWorkspace(role string, do func(*os.Root) error) error {
	return a.in(wire.WorkspaceDir, role, do)
}

// onlyWorkspace refuses what is done to the workspace alone.
func (p place) onlyWorkspace() error {
	if p.dir != wire.WorkspaceDir {
		return fmt.Errorf("%s lies outside the workspace", path.Join(p.dir, p.name))
	}
	return nil
}
