package gate

import (
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// places are folders of a sandbox that programs can write in.
type places []string

// room is what a sandbox's image says of paths.
type room struct {
	places
	link string // [sandbox.Image.Link]
}

// roomOf is that of a sandbox of an image. A link that something is mounted over or
// below leads elsewhere: it is none.
func roomOf(img sandbox.Image) room {
	r := room{sandbox.Writable(img.Volumes), img.Link}
	for _, place := range r.places {
		if r.link != "" && (sandbox.Within(r.link, []string{place}) || sandbox.Within(place, []string{r.link})) {
			r.link = ""
		}
	}
	return r
}

// followed is an absolute path as it is without the image's link to the workspace.
func (r room) followed(name string) string { return sandbox.Followed(name, r.link) }

// aliases are folders by which a program gets at others: at the files that it has
// open, and at its own folder.
var aliases = []string{"/proc", "/dev"}

// writable reports whether programs can write below a folder. What lies below the
// folders of a running system is taken to be theirs as well.
func (p places) writable(dir string) bool {
	if !path.IsAbs(dir) {
		return true // relative to the workspace, or to where the program goes
	}
	dir = path.Clean(dir)
	return dir == "/" || sandbox.Within(dir, p) || sandbox.Within(dir, aliases) || sandbox.Within(dir, []string{"/home", "/run", "/var/run"})
}

// ofImage reports whether a list of files or folders has only such as programs cannot
// write, by their whole names.
func (p places) ofImage(list string) bool {
	return !strings.ContainsAny(list, "$; ") && !slices.ContainsFunc(strings.Split(list, ":"), p.writable)
}

// envFinding is what the rules are told of one variable.
type envFinding = map[string]any

// judgeEnv looks at a run's own variables. pythonPath are the folders of the
// workspace that Python is told to look in.
func (p places) judgeEnv(env []string) (found []envFinding, pythonPath []string) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		class := ""
		switch {
		case name == "PYTHONPATH":
			for _, dir := range strings.Split(value, ":") {
				rel, in := inWorkspace(dir)
				switch {
				case in:
					pythonPath = append(pythonPath, rel)
				case p.writable(dir):
					class = "search"
				}
			}
		case name == "PATH":
			for _, dir := range strings.Split(value, ":") {
				if p.writable(dir) {
					class = "search"
				}
			}
		case name == "HOME":
			if value != sandbox.HomeDir && p.writable(value) {
				class = "search"
			}
		case value != "" && p.loads(name, value):
			class = "startup"
		}
		if class != "" {
			found = append(found, envFinding{"name": name, "value": value, "class": class})
		}
	}
	return found, pythonPath
}

// beside are the folders whose files can be read as those of the workspace.
var beside = []string{"/tmp", "/var/tmp", sandbox.HomeDir}

// isBeside reports whether a path is absolute and in one of them.
func isBeside(name string) bool { return path.IsAbs(name) && sandbox.Within(path.Clean(name), beside) }

// inWorkspace gives a path relative to the workspace; a relative one is taken
// to be so already.
func inWorkspace(p string) (string, bool) {
	if p == "" {
		return ".", true
	}
	if !path.IsAbs(p) {
		p = path.Join(sandbox.WorkspaceDir, p)
	}
	p = path.Clean(p)
	if p == sandbox.WorkspaceDir {
		return ".", true
	}
	return strings.CutPrefix(p, sandbox.WorkspaceDir+"/")
}
