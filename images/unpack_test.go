package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestUnpack has what an image holds, without what makes a program another user,
// and without devices.
func TestUnpack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "root")
	then := time.Unix(1e9, 0)
	size, err := unpack(bytes.NewReader(tarOf(t,
		tar.Header{Name: "usr/", Typeflag: tar.TypeDir, Mode: 0o555, ModTime: then}, tar.Header{Name: "usr/su", Uname: "usr/su", Mode: 0o4755, ModTime: then},
		tar.Header{Name: "usr/again", Typeflag: tar.TypeLink, Linkname: "usr/su"}, tar.Header{Name: "bin", Typeflag: tar.TypeSymlink, Linkname: "/usr"},
		tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, tar.Header{Name: "pipe", Typeflag: tar.TypeFifo},
	)), dir, []string{"/var/tmp"})
	if err != nil || size != sandbox.Bytes(len("usr/su")) {
		t.Fatalf("%v, %d bytes", err, size)
	}
	var got []string
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		got = append(got, strings.TrimPrefix(name, dir)+" "+st.Mode().String())
		return err
	})
	want := " drwxr-xr-x, /bin Lrwxrwxrwx, /usr drwxr-xr-x, /usr/again -rwxr-xr-x, /usr/su -rwxr-xr-x, /var drwxr-xr-x, /var/tmp drwxr-xr-x"
	if err != nil || strings.Join(got, ", ") != want {
		t.Errorf("%v\n%s\n%s", err, strings.Join(got, ", "), want)
	}
	if st, err := os.Stat(filepath.Join(dir, "usr/su")); err != nil || !st.ModTime().Equal(then) {
		t.Errorf("%v: the time of a file is lost, and what is compiled of it with it", err)
	}
}

// TestUnpackInside writes nothing beside the folder, whatever an image says.
func TestUnpackInside(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string][]tar.Header{
		"a name":          {{Name: "../evil"}},
		"a name below":    {{Name: "a/../../evil"}},
		"through a link":  {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "out/evil"}},
		"over a link":     {{Name: "evil", Typeflag: tar.TypeSymlink, Linkname: "../evil"}, {Name: "evil"}},
		"a hard link":     {{Name: "in", Typeflag: tar.TypeLink, Linkname: "../secret"}},
		"a folder":        {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "out/evil/", Typeflag: tar.TypeDir, Mode: 0o755}},
		"an absolute one": {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, {Name: "out/evil"}},
	} {
		base := t.TempDir()
		secret := filepath.Join(base, "secret")
		if err := os.WriteFile(secret, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := unpack(bytes.NewReader(tarOf(t, entries...)), filepath.Join(base, "root"), nil); err == nil {
			t.Errorf("%s: it was unpacked", name)
		}
		for _, evil := range []string{filepath.Join(base, "evil"), "/tmp/evil"} {
			if _, err := os.Lstat(evil); err == nil {
				t.Errorf("%s: there is %s", name, evil)
			}
		}
	}
}

// TestRoots finds the newest of a name, keeps what has no newer one, and takes a
// folder without its record for nothing.
func TestRoots(t *testing.T) {
	t.Parallel()
	s := &Store{cfg: Config{StateDir: t.TempDir()}}
	put := func(id, ref string, age time.Duration) {
		t.Helper()
		tree := filepath.Join(t.TempDir(), "tree")
		if err := os.Mkdir(tree, 0o700); err != nil {
			t.Fatal(err)
		}
		root := sandbox.ImageRoot{Image: sandbox.Image{Ref: ref, ID: "sha256:" + id}, Path: s.path("roots", id), Made: time.Unix(1e9, 0).Add(-age)}
		if err := keepRoot(root, tree); err != nil {
			t.Fatal(err)
		}
	}
	put("older", "a:1", time.Hour)
	put("newer", "a:1", 0)
	put("other", "b:1", 2*time.Hour)
	if err := os.Mkdir(s.path("roots", "torn"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a:1": "newer", "sha256:older": "older", "b:1": "other"} {
		if root, err := FindRoot(s.cfg.StateDir, name); err != nil || root.Path != s.path("roots", want) {
			t.Errorf("%s: %v, %s", name, err, root.Path)
		}
	}
	if _, err := FindRoot(s.cfg.StateDir, "sha256:torn"); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("half a root: %v", err)
	}
	for range 2 {
		if found, err := s.pruneRoots(true); err != nil || len(found) != 1 || found[0].Name != s.path("roots", "older") {
			t.Errorf("a look: %v, %v", found, err)
		}
	}
	if _, err := s.pruneRoots(false); err != nil {
		t.Fatal(err)
	}
	if roots, err := s.Roots(); err != nil || len(roots) != 2 {
		t.Errorf("%v, %v", roots, err)
	}
	if _, err := os.Stat(s.path("roots", "older")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
