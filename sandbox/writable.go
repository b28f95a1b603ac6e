package sandbox

import (
	"path"
	"slices"
	"strings"
)

// HomeDir is the home of a sandbox's users.
const HomeDir = "/home/sandbox"

// Writable lists the folders of a sandbox that its programs can write in: what
// lies elsewhere is its image's, and stays so. volumes are its [Image.Volumes]; a
// plan makes them writable as well.
func Writable(volumes []string) []string {
	places := []string{WorkspaceDir, "/tmp", "/var/tmp", HomeDir, "/dev/shm"}
	for _, v := range volumes {
		if v = path.Clean("/" + v); !slices.Contains(places, v) {
			places = append(places, v)
		}
	}
	return places
}

// Followed is a clean absolute path with what lies below link, an [Image.Link], put
// below the workspace. Others, and all where link is "", stay as they are.
func Followed(name, link string) string {
	name = path.Clean(name)
	if rest, below := strings.CutPrefix(name, link); link != "" && below && (rest == "" || rest[0] == '/') {
		return WorkspaceDir + rest
	}
	return name
}

// Within reports whether a clean absolute path is one of the folders or below.
func Within(name string, folders []string) bool {
	for _, f := range folders {
		if name == f || f == "/" || strings.HasPrefix(name, f+"/") {
			return true
		}
	}
	return false
}
