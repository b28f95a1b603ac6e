package images

import (
	"archive/tar"
	"bytes"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func tarOf(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range entries {
		data := []byte(h.Uname) // a place for the content
		h.Uname, h.Size = "", int64(len(data))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func reg(name, data string, mode int64, mtime time.Time) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: "./" + name, Mode: mode, ModTime: mtime, Uname: data}
}

func dir(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: "./" + name + "/", Mode: 0o755, ModTime: time.Now()}
}

func namesOf(t testing.TB, layer []byte) (names []string, headers map[string]*tar.Header) {
	t.Helper()
	headers = map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		names, headers[h.Name] = append(names, h.Name), h
	}
}

var start = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func TestLayerHoldsNothingOfTheAssembly(t *testing.T) {
	t.Parallel()
	packaged := time.Date(2022, 2, 2, 2, 2, 2, 0, time.UTC)
	in := tarOf(t,
		dir("."), dir("dev"), tar.Header{Typeflag: tar.TypeChar, Name: "./dev/null", Mode: 0o666},
		dir("etc"), reg("etc/resolv.conf", "nameserver 1", 0o644, packaged), reg("etc/shadow", "root:x", 0o640, start),
		reg("etc/made", "m", 0o644, start.Add(time.Hour)), reg("usr/bin/su", "s", 0o4755, packaged),
		dir("var/log"), reg("var/log/dpkg.log", "l", 0o644, start), dir("var/cache"), reg("var/cache/x/y", "c", 0o644, start),
		dir("usr/share/doc/x"), reg("usr/share/doc/x/README", "r", 0o644, packaged), reg("usr/share/doc/x/copyright", "c", 0o644, packaged),
		reg("usr/share/man/man1/x.1", "m", 0o644, packaged),
	)
	var out bytes.Buffer
	f := filter{started: start}
	if err := f.copy(&out, bytes.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	names, headers := namesOf(t, out.Bytes())
	want := []string{"workspace/", "dev/", "etc/", "etc/made", "usr/bin/su", "var/log/", "var/cache/", "usr/share/doc/x/", "usr/share/doc/x/copyright"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if m := headers["usr/bin/su"].Mode; m != 0o755 {
		t.Errorf("su has mode %o", m)
	}
	if at := headers["usr/bin/su"].ModTime; !at.Equal(packaged) {
		t.Errorf("a packaged file has time %v, want its own: compiled Python holds it", at)
	}
	if at := headers["etc/made"].ModTime; !at.Equal(epoch) {
		t.Errorf("a file of the assembly has time %v, want the epoch", at)
	}
}

func TestLayerHoldsWhatTheBaseLacks(t *testing.T) {
	t.Parallel()
	old := start.Add(-time.Hour)
	var bottom bytes.Buffer
	b := filter{started: start}
	if err := b.copy(&bottom, bytes.NewReader(tarOf(t, dir("usr"), reg("usr/same", "1", 0o644, old),
		reg("usr/size", "1", 0o644, old), reg("usr/bytes", "1", 0o644, old), reg("usr/mode", "1", 0o644, old)))); err != nil {
		t.Fatal(err)
	}
	var top bytes.Buffer
	f := filter{base: b.index, started: start}
	if err := f.copy(&top, bytes.NewReader(tarOf(t, dir("usr"), reg("usr/same", "1", 0o644, old), reg("usr/size", "22", 0o644, old),
		reg("usr/bytes", "2", 0o644, old), reg("usr/mode", "1", 0o755, old), reg("usr/new", "n", 0o644, old),
		tar.Header{Typeflag: tar.TypeLink, Name: "./usr/twin", Linkname: "./usr/new"}))); err != nil {
		t.Fatal(err)
	}
	names, headers := namesOf(t, top.Bytes())
	if diff := cmp.Diff([]string{"usr/size", "usr/bytes", "usr/mode", "usr/new", "usr/twin"}, names); diff != "" {
		t.Error(diff)
	}
	if l := headers["usr/twin"].Linkname; l != "usr/new" {
		t.Errorf("the hard link leads to %q", l)
	}
}

func TestHardLinkOutOfItsLayer(t *testing.T) {
	t.Parallel()
	old := start.Add(-time.Hour)
	b := filter{started: start}
	if err := b.copy(io.Discard, bytes.NewReader(tarOf(t, reg("a", "1", 0o644, old)))); err != nil {
		t.Fatal(err)
	}
	f := filter{base: b.index, started: start}
	err := f.copy(io.Discard, bytes.NewReader(tarOf(t, reg("a", "1", 0o644, old), tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "a"})))
	if err == nil {
		t.Error("a link to a file of another layer was written; the engine cannot apply it")
	}
}

// TestKeptLayerReadsBack holds that a layer that is read from its file is the
// one that was written: the image's ID depends on it.
func TestKeptLayerReadsBack(t *testing.T) {
	t.Parallel()
	needRoot(t)
	name := filepath.Join(t.TempDir(), "tree.tar")
	writeFile(t, name, tarOf(t, dir("usr"), reg("usr/a", "1", 0o4755, start), reg("usr/b", "2", 0o644, time.Now())))
	s := &Store{tool: mmdebstrap{command: fakeTool(t, "cat "+name)}}
	wrote, err := s.layer(t.Context(), tree{work: t.TempDir()}, filepath.Join(t.TempDir(), "layer.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	read, err := readLayer(wrote.file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wrote, read, cmp.AllowUnexported(layer{}, stamp{})); diff != "" {
		t.Error(diff)
	}
}
