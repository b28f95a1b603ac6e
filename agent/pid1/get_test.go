//go:build linux

package pid1

import (
	"archive/tar"
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestPackLinks packs files with several names, some of them with the same inode
// number on another device: names of one file are linked, no others. A file's id
// is what the kernel says of it.
func TestPackLinks(t *testing.T) {
	t.Parallel()
	e, why := openEntry(unix.AT_FDCWD, "get_test.go")
	var st unix.Stat_t
	if err := unix.Fstat(e.fd, &st); why != "" || err != nil || e.id != (fileID{st.Dev, st.Ino}) {
		t.Fatalf("%+v is %+v, %s, %v", e.id, st, why, err)
	}
	if err := unix.Close(e.fd); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	p := &packer{tar: tar.NewWriter(&b), names: map[fileID]string{}}
	for _, f := range []struct {
		name string
		id   fileID
	}{{"a", fileID{1, 7}}, {"b", fileID{1, 7}}, {"c", fileID{2, 7}}, {"d", fileID{2, 7}}} {
		if err := p.write(&packed{header: tar.Header{Typeflag: tar.TypeReg, Name: f.name}, id: f.id, links: 2, fd: -1}); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	tr := tar.NewReader(&b)
	for h, err := tr.Next(); err == nil; h, err = tr.Next() {
		got[h.Name] = h.Linkname
	}
	if d := cmp.Diff(map[string]string{"a": "", "b": "a", "c": "", "d": "c"}, got); d != "" {
		t.Error(d)
	}
}
