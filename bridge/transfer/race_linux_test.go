package transfer_test

import (
	"archive/tar"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/bridge/transfer"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestSwappedDestination lets a folder of the destination become a link to the
// outside and back while a pull writes there.
func TestSwappedDestination(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dst, out := filepath.Join(top, "dst"), filepath.Join(top, "out")
	for _, d := range []string{dst, out, filepath.Join(dst, "d")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(out, filepath.Join(dst, "l")); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dst, "d"), unix.AT_FDCWD, filepath.Join(dst, "l"), unix.RENAME_EXCHANGE)
			}
		}
	}()
	var entries []entry
	var tree []sandbox.FileInfo
	for i := range 50 {
		entries = append(entries, entry{tar.TypeReg, fmt.Sprintf("d/f%d", i), "x"}, entry{tar.TypeReg, fmt.Sprintf("g%d", i), "x"})
		tree = append(tree, sandbox.FileInfo{Path: fmt.Sprintf("d/f%d", i), Type: "file", Size: 9})
	}
	stream, refused, fine := archive(t, entries...), 0, 0
	for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); {
		if _, err := transfer.Pull(t.Context(), &liar{stream: stream, tree: tree}, ".", dst, transfer.PullOptions{}); err != nil {
			refused++
		} else {
			fine++
		}
	}
	close(stop)
	<-done
	if refused == 0 || fine == 0 {
		t.Logf("%d refused, %d fine: the race was hardly run", refused, fine)
	}
	if list, err := os.ReadDir(out); err != nil || len(list) > 0 {
		t.Errorf("outside holds %v, %v", list, err)
	}
}
