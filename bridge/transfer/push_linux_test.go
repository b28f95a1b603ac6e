package transfer

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onDevice is a file as another mount shows it: the number of its inode is chosen.
type onDevice struct {
	fs.FileInfo
	sys syscall.Stat_t
}

func (o onDevice) Sys() any { return &o.sys }

// TestPushLinks packs files with several names, some of them with the same inode
// number on another device: names of one file are linked, no others.
func TestPushLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p := &push{root: root}
	for _, f := range []struct {
		name, text string
		dev, ino   uint64
	}{{"a", "one", 1, 7}, {"b", "one", 1, 7}, {"c", "two", 2, 7}, {"d", "two", 2, 7}, {"e", "six", 2, 8}} {
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := root.Lstat(f.name)
		if err != nil {
			t.Fatal(err)
		}
		o := onDevice{FileInfo: info, sys: *info.Sys().(*syscall.Stat_t)}
		o.sys.Dev, o.sys.Ino, o.sys.Nlink = f.dev, f.ino, 2
		p.add(f.name, f.name, o)
	}
	var b bytes.Buffer
	if err := p.pack(&b); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	tr := tar.NewReader(&b)
	for h, err := tr.Next(); err == nil; h, err = tr.Next() {
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(text)
		if h.Typeflag == tar.TypeLink {
			got[h.Name] = "-> " + h.Linkname
		}
	}
	want := map[string]string{"a": "one", "b": "-> a", "c": "two", "d": "-> c", "e": "six"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
