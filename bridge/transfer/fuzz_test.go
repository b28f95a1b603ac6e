package transfer_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/bridge/transfer"
)

// FuzzStream pulls whatever bytes. They end, and nothing outside the destination
// is made.
func FuzzStream(f *testing.F) {
	t := &testing.T{}
	f.Add(archive(t, entry{tar.TypeReg, "a/b", "text"}, entry{tar.TypeSymlink, "l", "a/b"}, entry{tar.TypeLink, "h", "a/b"}))
	f.Add(archive(t, entry{tar.TypeSymlink, "a", ".."}, entry{tar.TypeReg, "a/b", "text"}, entry{tar.TypeDir, "d", ""}))
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		top := t.TempDir()
		_, err := transfer.Pull(t.Context(), &liar{stream: stream}, ".", filepath.Join(top, "dst"), transfer.PullOptions{})
		if err != nil && len(err.Error()) > 10_000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		if list, err := os.ReadDir(top); err != nil || len(list) != 1 {
			t.Errorf("outside: %v, %v", list, err)
		}
	})
}
