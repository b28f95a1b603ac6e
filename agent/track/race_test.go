//go:build linux

package track_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/track"
	"github.com/caisson-dev/caisson/agent/wire"
)

// outside is a folder that nothing may reach through the tree.
func outside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// swap exchanges two names over and over until the test has ended: a folder and
// a link to one outside.
func swap(t *testing.T, a, b string) {
	t.Helper()
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			}
		}
	})
	t.Cleanup(func() { close(stop); done.Wait() })
}

// TestSwappedFolder lets a folder become a link to the outside and back while it
// is looked at, read, and restored. Nothing outside is read or written.
func TestSwappedFolder(t *testing.T) {
	t.Parallel()
	tree, out := t.TempDir(), outside(t)
	d, l := filepath.Join(tree, "d"), filepath.Join(tree, "l")
	if err := os.Mkdir(d, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d, "f"), []byte("inside"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, l); err != nil {
		t.Fatal(err)
	}
	tr := track.New(track.Config{Root: tree, Watch: true})
	defer tr.Close()
	swap(t, d, l)
	read, refused, restored := 0, 0, 0
	all := func() bool { return read > 0 && refused > 0 && restored > 0 }
	for begun := time.Now(); time.Since(begun) < time.Second || !all() && time.Since(begun) < time.Minute; {
		f, err := tr.Open("d/f")
		if err != nil {
			refused++
		} else {
			b, err := io.ReadAll(f)
			f.Close()
			if err != nil || string(b) == "secret" {
				t.Fatalf("read %q, %v", b, err)
			}
			read++
		}
		r := tr.Restorer()
		if r.Make(wire.Entry{Path: "d/f", Kind: wire.KindFile, Mode: 0o644}, strings.NewReader("inside")) == nil {
			restored++
		}
		_ = r.Make(wire.Entry{Path: "d/new", Kind: wire.KindFile, Mode: 0o644}, strings.NewReader("inside"))
		_ = r.Make(wire.Entry{Path: "d/sub", Kind: wire.KindDir, Mode: 0o755}, nil)
		_ = r.Make(wire.Entry{Path: "d/f2", Kind: wire.KindFile, Target: "d/f"}, nil)
		_ = r.Make(wire.Entry{Path: "d/f2"}, nil)
		_ = r.Finish()
		o, err := tr.Observe(restored%2 == 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range o.Entries {
			if strings.HasPrefix(e.Path, "l/f") && e.Kind != wire.KindGone && e.Size != int64(len("inside")) {
				t.Fatalf("%+v", e)
			}
		}
		o.Done(true)
	}
	if !all() {
		t.Errorf("%d read, %d refused, %d restored: the race was not run", read, refused, restored)
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside holds %v, %v", entries, err)
	}
	if b, err := os.ReadFile(filepath.Join(out, "f")); err != nil || string(b) != "secret" {
		t.Errorf("outside was written: %q, %v", b, err)
	}
}

// TestNeverOpened puts FIFOs, sockets and links where files are looked for. None
// is opened: a FIFO that was would let its writer through.
func TestNeverOpened(t *testing.T) {
	t.Parallel()
	tree, out := t.TempDir(), outside(t)
	fifo := filepath.Join(tree, "fifo")
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(out, "f"), filepath.Join(tree, "link")); err != nil {
		t.Fatal(err)
	}
	sock, err := net.Listen("unix", filepath.Join(tree, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	names := []string{"fifo", "link", "sock", "../" + filepath.Base(out) + "/f", "/etc/passwd", "link/x", "."}
	// A device whose opening could not be missed, where it can be made: a terminal
	// that is nobody's.
	if unix.Mknod(filepath.Join(tree, "dev"), unix.S_IFCHR|0o666, int(unix.Mkdev(5, 0))) == nil {
		names = append(names, "dev")
	}
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // until somebody reads
		if err == nil {
			f.Close()
		}
	}()
	tr := track.New(track.Config{Root: tree, Watch: true})
	defer tr.Close()
	for range 50 {
		o, err := tr.Observe(true, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Done(true)
		for _, e := range o.Entries {
			if want := map[string]string{"fifo": "fifo", "sock": "socket", "dev": "device"}[e.Path]; want != "" && (e.Kind != wire.KindOther || e.Target != want) {
				t.Errorf("%+v", e)
			}
		}
		for _, name := range names {
			if f, err := tr.Open(name); err == nil {
				t.Fatalf("%s was opened: %v", name, f.Name())
			}
		}
	}
	select {
	case <-woken:
		t.Error("the FIFO was opened")
	case <-time.After(100 * time.Millisecond):
	}
	f, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0) // lets the writer go
	if err != nil {
		t.Fatal(err)
	}
	<-woken
	f.Close()
}

// TestOverflow touches more than the kernel remembers: the tree is walked, and
// everything is found.
func TestOverflow(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	tr := track.New(track.Config{Root: tree, Watch: true})
	defer tr.Close()
	o, err := tr.Observe(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Done(true)
	const files = 12000
	for i := range files {
		if err := os.WriteFile(filepath.Join(tree, "f"+string(rune('a'+i%26))+time.Duration(i).String()), []byte{1}, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if o, err = tr.Observe(false, nil); err != nil {
		t.Fatal(err)
	}
	if o.Walked == "" || len(o.Entries) != files+1 {
		t.Errorf("%d entries, walked %q", len(o.Entries), o.Walked)
	}
	o.Done(false) // lost: the next one tells it again
	if o, err = tr.Observe(false, nil); err != nil {
		t.Fatal(err)
	}
	if len(o.Entries) < files {
		t.Errorf("after a loss: %d entries", len(o.Entries))
	}
	o.Done(true)
	if n := tr.Touched(); n != 0 {
		t.Errorf("%d touched by nobody", n)
	}
}
