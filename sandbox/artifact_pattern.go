package sandbox

import (
	"path"
	"path/filepath"
	"strings"
)

// ArtifactPattern is a pattern of files to collect, part by part: see
// [Run].Artifacts.
type ArtifactPattern []string

// ParseArtifactPattern reads one. Errors: Invalid for what can match nothing.
func ParseArtifactPattern(p string) (ArtifactPattern, error) {
	_, err := path.Match(strings.ReplaceAll(p, "**", "*"), "x")
	clean := path.Clean(strings.TrimPrefix(p, WorkspaceDir+"/"))
	if err != nil || p == "" || !filepath.IsLocal(clean) {
		return nil, Errorf(Invalid, "%q is not a pattern of files in the workspace", p).WithHint("write one such as out/** or *.png")
	}
	return strings.Split(clean, "/"), nil
}

// Matches reports whether a path of the workspace is meant.
func (p ArtifactPattern) Matches(name string) bool { return matches(p, strings.Split(name, "/")) }

func matches(pattern, name []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(name) + 1 {
				if matches(pattern[1:], name[i:]) {
					return i > 0 || len(pattern) > 1 || len(name) > 0
				}
			}
			return false
		}
		if len(name) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], name[0]); err != nil || !ok {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return len(name) == 0
}

// Below names the folder that all that matches lies below, and how deep; 0 is any
// depth.
func (p ArtifactPattern) Below() (dir string, depth int) {
	n := 0
	for n < len(p)-1 && !strings.ContainsAny(p[n], `*?[\`) {
		n++
	}
	depth = len(p) - n
	for _, part := range p[n:] {
		if part == "**" {
			depth = 0
		}
	}
	return path.Join(append([]string{"."}, p[:n]...)...), depth
}
