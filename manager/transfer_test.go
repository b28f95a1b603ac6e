package manager_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/bridge/transfer"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

var _ transfer.Space = (*manager.Files)(nil)

// cut is a workspace whose connection breaks once so many bytes have come.
type cut struct {
	*manager.Files
	after int
	read  int64 // bytes that were asked for by offset
}

var errCut = errors.New("the line is cut")

type cutWriter struct {
	w    io.Writer
	left *int
}

func (c cutWriter) Write(p []byte) (int, error) {
	if *c.left -= len(p); *c.left < 0 {
		return 0, errCut
	}
	return c.w.Write(p)
}

func (c *cut) Get(ctx context.Context, dir string, paths []string, w io.Writer) (sandbox.Moved, error) {
	return c.Files.Get(ctx, dir, paths, cutWriter{w, &c.after})
}

func (c *cut) Read(ctx context.Context, name string, offset, length int64, w io.Writer) (int64, error) {
	c.read += length
	return c.Files.Read(ctx, name, offset, length, w)
}

// TestPullResumed cuts a pull in the middle of a large file. The next one goes
// on where it ended; another version of the file begins anew.
func TestPullResumed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	src, dst := t.TempDir(), t.TempDir()
	big := make([]byte, 8<<20)
	_, _ = rand.Read(big)
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(src, name), big, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	f, err := p.Files(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := transfer.Push(t.Context(), f, src, "d", transfer.Options{}); err != nil || m.Bytes != 16<<20 {
		t.Fatalf("%+v, %v", m, err)
	}
	if m, err := transfer.Push(t.Context(), f, src, "d", transfer.Options{}); err != nil || m.Files != 0 || m.Same != 2 {
		t.Fatalf("pushed again: %+v, %v", m, err)
	}
	if _, err := transfer.Pull(t.Context(), &cut{Files: f, after: 12 << 20}, "d", dst, transfer.PullOptions{}); !errors.Is(err, errCut) {
		t.Fatalf("cut: %v", err)
	}
	again := &cut{Files: f, after: 100 << 20}
	m, err := transfer.Pull(t.Context(), again, "d", dst, transfer.PullOptions{})
	if err != nil || m.Same != 1 || m.Files != 1 || again.read == 0 || again.read > 6<<20 {
		t.Fatalf("taken up again: %+v, %d read, %v", m, again.read, err)
	}
	for _, name := range []string{"a", "b"} {
		got, err := os.ReadFile(filepath.Join(dst, name))
		if err != nil || !bytes.Equal(got, big) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if st, err := os.Stat(filepath.Join(dst, "b")); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", st, err)
	}
	if left, _ := os.ReadDir(dst); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

// TestNamesOfBytes moves what has names that are no text, whatever has to be known
// of it before.
func TestNamesOfBytes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	f, err := p.Files(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	src, dst := t.TempDir(), t.TempDir()
	names := []string{"d\xff/a\xfe", "d\xff/a\xff", "d\xff/a\ufffd"}
	err = os.Mkdir(filepath.Join(src, "d\xff"), 0o755)
	for _, name := range names {
		err = errors.Join(err, os.WriteFile(filepath.Join(src, name), []byte(name), 0o644))
	}
	if err = errors.Join(err, os.Symlink("d\xff", filepath.Join(src, "l"))); err != nil {
		t.Fatal(err)
	}
	for _, want := range []sandbox.Moved{{Files: 5}, {Same: 5}} {
		m, err := transfer.Push(t.Context(), f, src, "w", transfer.Options{})
		if err != nil || m.Same != want.Same || m.Left > 0 {
			t.Fatalf("pushed: %+v, %v", m, err)
		}
	}
	for _, want := range []sandbox.Moved{{Files: 5}, {Same: 5}} {
		m, err := transfer.Pull(t.Context(), f, "w", dst, transfer.PullOptions{Options: transfer.Options{Each: func(transfer.Step) {}}})
		if err != nil || m.Files != want.Files || m.Same != want.Same || m.Left > 0 {
			t.Fatalf("pulled: %+v, %v", m, err)
		}
	}
	for _, name := range names {
		if b, err := os.ReadFile(filepath.Join(dst, name)); err != nil || string(b) != name {
			t.Errorf("%q holds %q, %v", name, b, err)
		}
	}
	if err := f.Move(t.Context(), "w/"+names[1], "m\xff"); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(t.Context(), "m\xff"); err != nil || info.Path != "m\xff" || info.Size != int64(len(names[1])) {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestPushClosedFolders pushes folders that their own owner may not write in, and
// later another file into one of them.
func TestPushClosedFolders(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	src := t.TempDir()
	closed := []string{filepath.Join(src, "c"), filepath.Join(src, "c/d")}
	write := func(name string) {
		t.Helper()
		err := os.MkdirAll(filepath.Dir(filepath.Join(src, name)), 0o755)
		for _, dir := range closed {
			err = errors.Join(err, os.Chmod(dir, 0o755))
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(src, name), []byte(name), 0o444))
		for _, dir := range closed {
			err = errors.Join(err, os.Chmod(dir, 0o555))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(closed[1], 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(os.Chmod(closed[0], 0o755), os.Chmod(closed[1], 0o755)) })
	f, err := p.Files(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"c/d/f", "c/g", "c/d/h"} {
		write(name)
		m, err := transfer.Push(t.Context(), f, src, "w", transfer.Options{})
		if err != nil || m.Files != 1 && i > 0 {
			t.Fatalf("%s: %+v, %v", name, m, err)
		}
		for _, dir := range []string{"w/c", "w/c/d"} {
			if info, err := f.Stat(t.Context(), dir); err != nil || info.Mode != 0o555 {
				t.Errorf("%s: %+v, %v", dir, info, err)
			}
		}
	}
}

// TestPullRaced pulls while a program in the sandbox lets a folder become a link
// out of the workspace and back, and a file a FIFO. Nothing of the outside comes,
// and nothing waits for the FIFO.
func TestPullRaced(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	script := `mkdir d; echo in > d/f; ln -s /etc l; echo in > r; mkfifo q
while test ! -e stop; do mv d x; mv l d; mv d l; mv x d; mv r s; mv q r; mv r q; mv s r; done`
	rec, err := p.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"bash", "-c", script}}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Files(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the race begins", func() bool { _, err := f.Stat(t.Context(), "q"); return err == nil })
	pulled := 0
	for i := range 60 {
		dst := t.TempDir()
		opts := transfer.PullOptions{}
		if i%2 == 1 {
			opts.Paths = []string{"d", "d/f", "d/passwd", "r"}
			opts.Only = true
		}
		if _, err := transfer.Pull(t.Context(), f, ".", dst, opts); err != nil {
			t.Fatal(err)
		}
		err := filepath.WalkDir(dst, func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if err == nil && string(b) != "in\n" {
				t.Errorf("%s holds %.40q", path, b)
			}
			pulled++
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if pulled == 0 {
		t.Error("nothing was ever pulled")
	}
	if err := p.KillExec(t.Context(), "work", rec.ID); err != nil {
		t.Fatal(err)
	}
}
