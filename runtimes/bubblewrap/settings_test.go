//go:build linux

package bubblewrap

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/runtimes/local"
)

// What everybody may read and is small is copied, with its mode; a secret, a large file, a
// pipe, a folder and what is not below /etc stay mounts.
func TestSplit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, size int, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
	}
	write("small", 10, 0o644)
	write("program", 10, 0o755)
	write("secret", 10, 0o640)
	write("large", mostCopied+1, 0o644)
	write("elsewhere", 10, 0o644)
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	var binds []local.Bind
	for _, name := range []string{"small", "secret", "large", "pipe", "folder", "program", "missing"} {
		binds = append(binds, local.Bind{Source: filepath.Join(dir, name), Target: "/etc/" + name})
	}
	binds = append(binds, local.Bind{Source: filepath.Join(dir, "elsewhere"), Target: "/usr/elsewhere"})
	rest, copies := split(binds)
	for _, c := range copies {
		defer c.file.Close()
	}
	var stay []string
	for _, b := range rest {
		stay = append(stay, filepath.Base(b.Target))
	}
	if want := []string{"secret", "large", "pipe", "folder", "missing", "elsewhere"}; !slices.Equal(stay, want) {
		t.Errorf("mounts are %q, not %q", stay, want)
	}
	args := copyArgs(copies, firstCopy)
	if want := []string{"--perms", "0644", "--file", "6", "/etc/small", "--perms", "0755", "--file", "7", "/etc/program"}; !slices.Equal(args, want) {
		t.Errorf("copied by %q, not %q", args, want)
	}
}
