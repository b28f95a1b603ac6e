//go:build linux

package pid1

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/agent/track"
	"github.com/caisson-dev/caisson/agent/wire"
)

// TestSparse reads files with holes: all of their bytes come, and those of the
// holes are not read.
func TestSparse(t *testing.T) {
	t.Parallel()
	const block = 64 << 10
	for name, data := range map[string][]int64{
		"nothing": nil, "a hole": nil, "at the start": {0}, "at the end": {9}, "between": {3, 4, 7}, "all of it": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
	} {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		want := make([]byte, 10*block)
		if name == "nothing" {
			want = nil
		}
		if err := f.Truncate(int64(len(want))); err != nil {
			t.Fatal(err)
		}
		for _, at := range data {
			copy(want[at*block:], bytes.Repeat([]byte{byte(at + 1)}, block))
			if _, err := f.WriteAt(want[at*block:(at+1)*block], at*block); err != nil {
				t.Fatal(err)
			}
		}
		s := sparse{f: f}
		got, err := io.ReadAll(&s)
		if err != nil || !bytes.Equal(got, want) || s.read != int64(len(data)*block) {
			t.Errorf("%s: %d of %d bytes, %d read from the file, %v", name, len(got), len(want), s.read, err)
		}
	}
}

// TestContentBudget answers with what is within the bounds.
func TestContentBudget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tr := track.New(track.Config{Root: dir})
	for name, n := range map[string]int{"1": 1000, "2": 5000, "3": 1000, "4": 1000} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(b *budget, name string) []byte {
		var buf bytes.Buffer
		out := bufio.NewWriter(&buf)
		if err := sendContent(out, tr, name, false, b); err != nil {
			t.Fatal(err)
		}
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	sum := sha256.Sum256(make([]byte, 1000))
	whole := append(append(binary.AppendUvarint(nil, 1000), make([]byte, 1000)...), append([]byte{0, wire.ContentOK}, sum[:]...)...)
	unread := []byte{0, wire.ContentUnread}
	b := newBudget(&wire.Observe{Bytes: 2500})
	for name, want := range map[string][]byte{"1": whole, "2": unread, "3": whole} {
		if got := answer(b, name); !bytes.Equal(got, want) {
			t.Errorf("file %s: %d bytes, not %d", name, len(got), len(want))
		}
	}
	if got := answer(b, "4"); !bytes.Equal(got, unread) {
		t.Errorf("beyond what is left: %d bytes", len(got))
	}
	b = newBudget(&wire.Observe{})
	if got := answer(b, "4"); !bytes.Equal(got, whole) {
		t.Errorf("without bounds: %d bytes", len(got))
	}
	b.gone.Store(true)
	if got := answer(b, "4"); !bytes.Equal(got, unread) || !b.over() {
		t.Errorf("for a client that is gone: %d bytes", len(got))
	}
}
