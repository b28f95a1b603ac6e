//go:build linux

package pid1

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// An entry takes the place of one that somebody else makes while it is put.
func TestReplaceMeanwhile(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	u := &unpacker{root: root}
	tries := 0
	err = u.replace("a", func(name string) error {
		if tries++; tries == 1 {
			if err := root.WriteFile("a", []byte("theirs"), 0o600); err != nil {
				return err
			}
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString("ours")
		return errors.Join(err, f.Close())
	})
	got, readErr := root.ReadFile("a")
	if err != nil || readErr != nil || string(got) != "ours" || tries != 2 {
		t.Errorf("%v, %v: %q after %d tries", err, readErr, got, tries)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".caisson-*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	if err := u.replace("b", func(string) error { return fs.ErrPermission }); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}
