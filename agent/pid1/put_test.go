//go:build linux

package pid1

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// What was there stays until all of its successor is there; of what was cut off
// nothing is left.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	u := &unpacker{root: root, dir: "."}
	put := func(content []byte, entries ...tar.Header) error {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range entries {
			h.Mode = 0o644
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if h.Size > 0 {
				if _, err := w.Write(content); err != nil {
					t.Fatal(err)
				}
			}
		}
		_, _, err := u.all(tar.NewReader(&b))
		return err
	}
	whole, part := tar.Header{Name: "a", Size: 3}, tar.Header{Name: "a", Size: 4}
	if err := put([]byte("old"), whole); err != nil {
		t.Fatal(err)
	}
	fresh := part
	fresh.Name = "fresh"
	for _, h := range []tar.Header{part, fresh} {
		if err := put([]byte("cut"), h); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a part: %v", err)
		}
	}
	if err := put(nil, tar.Header{Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}); err != nil {
		t.Error(err)
	}
	if err := put(nil, tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "b"}); err != nil {
		t.Errorf("a link to itself: %v", err)
	}
	if err := errors.Join(root.Mkdir("empty", 0o755), root.MkdirAll("full/x", 0o755)); err != nil {
		t.Fatal(err)
	}
	whole.Name = "empty"
	if err := put([]byte("new"), whole); err != nil {
		t.Errorf("in the place of an empty folder: %v", err)
	}
	whole.Name = "full"
	if err := put([]byte("new"), whole); err == nil {
		t.Error("it takes the place of a folder")
	}
	var names []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"a", "b", "empty", "full"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v: %q", err, names)
	}
	for name, want := range map[string]string{"a": "old", "b": "old", "empty": "new"} {
		if got, err := root.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
