//go:build linux

package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// HostImage is the reference that stands for this host's own programs.
const HostImage = "host"

// Provision finds the host's own programs for a language, for a runtime of that
// name. Errors: Unsupported for an image that was named, NotFound where the host has
// no program of the language's.
func Provision(name string, lang sandbox.Language, image string) (sandbox.Image, error) {
	if image != "" {
		return sandbox.Image{}, sandbox.Errorf(sandbox.Unsupported, "the %s runtime has the programs of this host, and no image %s", name, image).
			WithHint("leave --image out, or use --runtime docker")
	}
	if argv := lang.RunCode; len(argv) > 0 && !strings.Contains(argv[0], "{") {
		if _, err := findProgram(argv[0]); err != nil {
			return sandbox.Image{}, sandbox.Errorf(sandbox.NotFound, "this host has no %s, which %s code is run by", argv[0], lang.Name).
				WithHint("install it, or use --runtime docker")
		}
	}
	id, err := hostID()
	return sandbox.Image{Ref: HostImage, ID: id}, err
}

// findProgram looks where sandboxes have programs of the host's.
func findProgram(name string) (string, error) {
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return filepath.Join(dir, name), nil
		}
	}
	return "", errors.New("not found")
}

// hostID stands for an image's digest: it changes when packages of the host do.
func hostID() (string, error) {
	sum := sha256.New()
	for _, path := range []string{"/etc/os-release", "/var/lib/dpkg/status", "/var/lib/rpm", "/lib/apk/db/installed", "/usr/bin", "/usr/local/bin"} {
		st, err := os.Stat(path)
		if err != nil {
			continue // of another distribution
		}
		fmt.Fprintf(sum, "%s %d %d\n", path, st.Size(), st.ModTime().UnixNano())
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// HeldBy says what holds a workspace to its size.
func HeldBy(w sandbox.Workspace) sandbox.HeldBy {
	switch w.Kind {
	case sandbox.WorkspaceTmpfs:
		return sandbox.HeldByFileSystem
	case sandbox.WorkspaceVolume:
		return sandbox.HeldByAgent
	default:
		return ""
	}
}
