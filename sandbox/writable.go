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

// Within reports whether a clean absolute path is one of the folders or below.
func Within(name string, folders []string) bool {
	for _, f := range folders {
		if name == f || f == "/" || strings.HasPrefix(name, f+"/") {
			return true
		}
	}
	return false
}
