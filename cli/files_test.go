package cli

import (
	"bytes"
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// lyingFiles is a workspace in the wrong hands: it lists what it likes.
type lyingFiles struct {
	api.Files
	top     sandbox.FileInfo
	entries []sandbox.FileInfo
}

func (l lyingFiles) Stat(context.Context, string) (sandbox.FileInfo, error) { return l.top, nil }

func (l lyingFiles) Tree(context.Context, string, int) iter.Seq2[sandbox.FileInfo, error] {
	return func(yield func(sandbox.FileInfo, error) bool) {
		for _, e := range l.entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (l lyingFiles) Read(_ context.Context, _ string, _, _ int64, w io.Writer) (int64, error) {
	n, err := io.WriteString(w, "taken")
	return int64(n), err
}

// TestGetTreeStaysInside checks that no listing makes `files get` write outside
// its destination, not even through what was there before.
func TestGetTreeStaysInside(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"../out", "top/../../out", "../../out", "/etc/out", "top/link/out", "top/link", "top/dangling", ".", "..", "", "other/../../../out",
	} {
		for _, kind := range []string{"file", "dir"} {
			base := t.TempDir()
			dst, out := filepath.Join(base, "dst"), filepath.Join(base, "outside")
			for _, dir := range []string{dst, out} {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for link, to := range map[string]string{"link": out, "dangling": filepath.Join(out, "new")} {
				if err := os.Symlink(to, filepath.Join(dst, link)); err != nil {
					t.Fatal(err)
				}
			}
			f := lyingFiles{top: sandbox.FileInfo{Path: "top", Type: "dir"}, entries: []sandbox.FileInfo{{Path: name, Type: kind, Mode: 0o777}}}
			_ = getTree(t.Context(), Config{IO: IOStreams{Err: io.Discard}}, f, "top", dst, false) // refusing is fine, writing elsewhere is not
			for _, dir := range []string{base, out} {
				list, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range list {
					if e.Name() != "dst" && e.Name() != "outside" {
						t.Errorf("%s %q made %s", kind, name, filepath.Join(dir, e.Name()))
					}
				}
			}
		}
	}
	if _, err := os.Lstat("/etc/out"); err == nil {
		t.Error("it made /etc/out")
	}
}

// TestGetTreeLeavesOut checks that links and devices are named, not made, and
// that their names cannot move the cursor.
func TestGetTreeLeavesOut(t *testing.T) {
	t.Parallel()
	dst := filepath.Join(t.TempDir(), "dst")
	f := lyingFiles{top: sandbox.FileInfo{Path: ".", Type: "dir"}, entries: []sandbox.FileInfo{
		{Path: "l\x1b[2J", Type: "link", Target: "/etc/passwd"}, {Path: "dev", Type: "other"}, {Path: "f", Type: "file", Mode: 0o7777},
	}}
	var said bytes.Buffer
	if err := getTree(t.Context(), Config{IO: IOStreams{Err: &said}}, f, ".", dst, false); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(said.String(), 0x1b) || strings.Count(said.String(), "left out") != 2 {
		t.Errorf("it said %q", said.String())
	}
	st, err := os.Stat(filepath.Join(dst, "f"))
	if list, _ := os.ReadDir(dst); err != nil || len(list) != 1 || st.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeSticky) != 0 {
		t.Errorf("made %v, mode %v, %v", list, st.Mode(), err)
	}
}
