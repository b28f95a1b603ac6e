package e2b

import (
	"path"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// homeDir is where clients take a sandbox's files to be. It is the workspace, which
// the image of the profile has a link to.
const homeDir = "/home/user"

// reachable are folders besides that files may be in.
var reachable = []string{sandbox.WorkspaceDir, sandbox.HomeDir, "/tmp", "/var/tmp"}

// within reports whether a clean path is dir or below it, and what is left of it.
func within(name, dir string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, dir)
	return strings.TrimPrefix(rest, "/"), ok && (rest == "" || rest[0] == '/')
}

// placeOf is a client's path as caisson has it. Errors: Denied for what is outside
// of where a program may write.
func placeOf(name string) (string, error) {
	if strings.IndexByte(name, 0) >= 0 {
		return "", sandbox.Errorf(sandbox.Invalid, "a path with a zero byte")
	}
	if rest, ok := within(name, "~"); ok {
		name = rest
	}
	if !path.IsAbs(name) {
		name = path.Join(homeDir, name)
	}
	name = path.Clean(name)
	if rest, ok := within(name, homeDir); ok {
		return path.Join(sandbox.WorkspaceDir, rest), nil
	}
	for _, dir := range reachable {
		if _, ok := within(name, dir); ok {
			return name, nil
		}
	}
	return "", sandbox.Errorf(sandbox.Denied, "%s is outside of what a sandbox can write", name).WithHint("use a path below %s or /tmp; a command can read the rest", homeDir)
}

// shown is a path of caisson's as the client knows it.
func shown(name string) string {
	if !path.IsAbs(name) {
		return path.Join(homeDir, name)
	}
	if rest, ok := within(name, sandbox.WorkspaceDir); ok {
		return path.Join(homeDir, rest)
	}
	return name
}
