package transfer_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/bridge/transfer"
	"github.com/caisson-dev/caisson/sandbox"
)

// liar is a workspace whose agent has been taken: it sends what it likes.
type liar struct {
	transfer.Space
	stream []byte
	tree   []sandbox.FileInfo
}

func (l *liar) Get(_ context.Context, _ string, _ []string, w io.Writer) (sandbox.Moved, error) {
	_, err := w.Write(l.stream)
	return sandbox.Moved{}, err
}

func (l *liar) Tree(context.Context, string, int) iter.Seq2[sandbox.FileInfo, error] {
	return func(yield func(sandbox.FileInfo, error) bool) {
		for _, e := range l.tree {
			if !yield(e, nil) {
				return
			}
		}
	}
}

type entry struct {
	kind       byte
	name, body string // a link's target
}

func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Mode: 0o7777, ModTime: time.Unix(1e9, 123456789), Format: tar.FormatPAX}
		if e.kind == tar.TypeReg {
			h.Size = int64(len(e.body))
		} else {
			h.Linkname = e.body
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			if _, err := w.Write([]byte(e.body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestForgedStream pulls what no honest sandbox sends. Nothing outside the
// destination is read, written or made.
func TestForgedStream(t *testing.T) {
	t.Parallel()
	const r, l, h, d = tar.TypeReg, tar.TypeSymlink, tar.TypeLink, tar.TypeDir
	for name, entries := range map[string][]entry{
		"up":                 {{r, "../secret", "x"}},
		"absolute":           {{r, "/secret", "x"}},
		"through a link":     {{l, "a", ".."}, {r, "a/secret", "x"}},
		"a link and on":      {{l, "a", "b"}, {l, "b", ".."}, {r, "a/secret", "x"}, {r, "b/secret", "x"}},
		"absolute link":      {{l, "a", "/etc"}, {r, "a/secret", "x"}},
		"over a link":        {{l, "secret2", "../secret"}, {r, "secret2", "x"}},
		"hard link up":       {{h, "a", "../secret"}, {r, "a", "x"}},
		"hard link of own":   {{h, "a", "mine"}, {r, "a", "x"}},
		"a device":           {{tar.TypeChar, "null", ""}},
		"a fifo":             {{tar.TypeFifo, "f", ""}},
		"dir over link":      {{l, "a", "../out"}, {d, "a", ""}, {r, "a/f", "x"}},
		"up behind a link":   {{d, "d", ""}, {l, "d/up", ".."}, {l, "a", "d/up/../secret"}},
		"up below a link":    {{l, "d/e/s", "../.."}, {l, "d/e/s/a", "../secret"}},
		"another name of up": {{l, "d/up", "../secret"}, {h, "a", "d/up"}, {r, "b", "x"}},
		"dot dot inside":     {{d, "a", ""}, {r, "a/../../secret", "x"}},
		"nothing":            {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			dst := filepath.Join(top, "dst")
			for _, dir := range []string{dst, filepath.Join(top, "out")} {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			mine := []string{filepath.Join(top, "secret"), filepath.Join(dst, "mine")}
			for _, f := range mine {
				if err := os.WriteFile(f, []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var tree []sandbox.FileInfo
			for _, e := range entries {
				kind := map[byte]string{r: "file", h: "file", l: "link", d: "dir"}[e.kind]
				if n := filepath.Clean(e.name); kind != "" && filepath.IsLocal(n) {
					tree = append(tree, sandbox.FileInfo{Path: n, Type: kind, Size: 99})
				}
			}
			tree = append(tree, sandbox.FileInfo{Path: "z", Type: "file"})
			_, err := transfer.Pull(t.Context(), &liar{stream: archive(t, entries...), tree: tree}, ".", dst, transfer.PullOptions{})
			t.Logf("%v", err)
			for _, f := range mine {
				if b, err := os.ReadFile(f); err != nil || string(b) != "mine" {
					t.Errorf("%s is %q, %v", f, b, err)
				}
			}
			for _, dir := range []string{top, filepath.Join(top, "out")} {
				list, _ := os.ReadDir(dir)
				if want := map[bool]int{true: 3, false: 0}[dir == top]; len(list) != want {
					t.Errorf("%s holds %v", dir, list)
				}
			}
			_ = filepath.WalkDir(dst, func(name string, _ os.DirEntry, _ error) error {
				if to, err := filepath.EvalSymlinks(name); err == nil && !strings.HasPrefix(to, dst) {
					t.Errorf("%s leads to %s", name, to)
				}
				return nil
			})
		})
	}
}

// TestPullModes pulls entries of which the mode alone is another, and then nothing.
func TestPullModes(t *testing.T) {
	t.Parallel()
	dst := t.TempDir()
	at := time.Unix(1e9, 123456789)
	names := []string{"d", "f"}
	if err := errors.Join(os.Mkdir(filepath.Join(dst, "d"), 0o755), os.WriteFile(filepath.Join(dst, "f"), []byte("text"), 0o644),
		os.Chtimes(filepath.Join(dst, "f"), at, at)); err != nil {
		t.Fatal(err)
	}
	l := &liar{
		stream: archive(t, entry{tar.TypeDir, "d", ""}, entry{tar.TypeReg, "f", "text"}),
		tree:   []sandbox.FileInfo{{Path: "d", Type: "dir", Mode: 0o777}, {Path: "f", Type: "file", Size: 4, MTime: at, Mode: 0o777}},
	}
	for _, want := range []sandbox.Moved{{Files: 2, Bytes: 4}, {Same: 2}} {
		got, err := transfer.Pull(t.Context(), l, ".", dst, transfer.PullOptions{})
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v %s", err, d)
		}
		for _, name := range names {
			if st, err := os.Stat(filepath.Join(dst, name)); err != nil || st.Mode().Perm() != 0o777 {
				t.Errorf("%s: %v, %v", name, st.Mode(), err)
			}
		}
	}
}

// TestPushNames pushes names that are no text.
func TestPushNames(t *testing.T) {
	t.Parallel()
	dir, want := t.TempDir(), []string{"a\xff", "d\xff/x", "d\xff/y\xfe/z"}
	for _, name := range want {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(dir, name), nil, 0o644)); err != nil {
			t.Skipf("this file system wants text: %v", err)
		}
	}
	sink := &kept{}
	if _, err := transfer.Push(t.Context(), sink, dir, ".", transfer.Options{All: true, Force: true}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, sink.files); d != "" {
		t.Error(d)
	}
}

// TestForgedTar makes archives for others of what no honest sandbox sends.
func TestForgedTar(t *testing.T) {
	t.Parallel()
	const r, l, h, d = tar.TypeReg, tar.TypeSymlink, tar.TypeLink, tar.TypeDir
	for name, c := range map[string]struct {
		entries []entry
		left    int // out; -1 for a refusal
	}{
		"honest":            {[]entry{{d, "d", ""}, {r, "d/f", "x"}, {l, "d/l", "../d/f"}, {h, "g", "d/f"}}, 0},
		"up":                {[]entry{{l, "a", ".."}}, 1},
		"up behind a link":  {[]entry{{l, "d/up", ".."}, {l, "a", "d/up/../x"}}, 1},
		"below a link":      {[]entry{{l, "d/up", ".."}, {r, "d/up/f", "x"}}, -1},
		"below a left link": {[]entry{{l, "d/up", "../.."}, {d, "d/up/f", ""}}, -1},
		"a link's name":     {[]entry{{l, "d/up", "../x"}, {h, "a", "d/up"}}, -1},
	} {
		moved, err := transfer.Tar(t.Context(), &liar{stream: archive(t, c.entries...)}, ".", nil, io.Discard)
		if refused := errors.Is(err, sandbox.Unavailable); refused != (c.left < 0) || err != nil && !refused || !refused && moved.Left != c.left {
			t.Errorf("%s: %+v, %v", name, moved, err)
		}
	}
}

// TestForgedTree lists names that lead out.
func TestForgedTree(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../x", "/etc/passwd", ".."} {
		l := &liar{tree: []sandbox.FileInfo{{Path: name, Type: "file"}}}
		_, err := transfer.Pull(t.Context(), l, ".", t.TempDir(), transfer.PullOptions{Options: transfer.Options{Ignore: true}})
		if !errors.Is(err, sandbox.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, stream := range [][]byte{nil, []byte("no archive at all, but bytes"), archive(t, entry{tar.TypeReg, "f", "0123456789"})[:520]} {
		dst := t.TempDir()
		if _, err := transfer.Pull(t.Context(), &liar{stream: stream}, ".", dst, transfer.PullOptions{}); err == nil && len(stream) > 0 {
			t.Errorf("%.20q was fine", stream)
		}
		if list, _ := os.ReadDir(dst); len(list) > 0 {
			t.Errorf("left behind: %v", list)
		}
	}
}

// TestIgnore compares the reading of .gitignore files with git's own.
func TestIgnore(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here to compare with")
	}
	r := rand.New(rand.NewPCG(7, 7))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	for round := range 40 {
		dir := t.TempDir()
		names := []string{"a", "b", "ab", "a.log", "b.tmp", "x", "build", "c d", "é", "[x]", "a*b"}
		var files []string
		for range 25 {
			name := pick(names...)
			for r.IntN(2) == 0 {
				name = pick(names...) + "/" + name
			}
			p := filepath.Join(dir, name)
			if os.MkdirAll(filepath.Dir(p), 0o755) == nil && os.WriteFile(p, nil, 0o644) == nil {
				files = append(files, name)
			}
		}
		line := func() string {
			p := pick("a", "b", "*.log", "*.tmp", "build", "a*", "?", "**/x", "a/**", "a/**/b", "[ab]", "[!a]", "c d", "é", `\[x\]`, `a\*b`, "**", "x ", "#c", "")
			if r.IntN(4) == 0 {
				p = pick("a", "build", "*") + "/" + p
			}
			return pick("", "", "", "!", "/") + p + pick("", "", "/")
		}
		var text [2]string
		for i := range text {
			for range 1 + r.IntN(5) {
				text[i] += line() + "\n"
			}
		}
		ignores := map[string]string{".": text[0]}
		if st, err := os.Stat(filepath.Join(dir, "a")); err == nil && st.IsDir() {
			ignores["a"] = text[1]
		}
		for d, text := range ignores {
			if err := os.WriteFile(filepath.Join(dir, d, ".gitignore"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		out, err := exec.Command("git", "-C", dir, "ls-files", "-z", "-o", "--exclude-per-directory=.gitignore").Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
		var got []string
		sink := &kept{}
		if _, err := transfer.Push(t.Context(), sink, dir, ".", transfer.Options{Ignore: true, All: true, Force: true}); err != nil {
			t.Fatal(err)
		}
		got = sink.files
		slices.Sort(got)
		slices.Sort(want)
		want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: %q\nin %q\ngit keeps %q\nwe keep   %q", round, ignores, files, want, got)
		}
	}
}

// kept notes which files a push sends.
type kept struct {
	transfer.Space
	files []string
}

func (k *kept) PutTar(_ context.Context, _ string, r io.Reader) (sandbox.Moved, error) {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return sandbox.Moved{}, nil
		}
		if err != nil {
			return sandbox.Moved{}, err
		}
		if h.Typeflag == tar.TypeReg {
			k.files = append(k.files, h.Name)
		}
	}
}

// TestForgedHoles sends a file of a terabyte in two KiB, made of holes.
func TestForgedHoles(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h := &tar.Header{Typeflag: tar.TypeReg, Name: "GNUSparseFile.0/f", Size: 512, Format: tar.FormatPAX}
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 512)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// The library writes no such records: they are put in by hand, in place of a
	// time that is as long.
	record := func(k, v string) string {
		n := len(k) + len(v) + 3
		for len(strconv.Itoa(n))+len(k)+len(v)+3 != n {
			n = len(strconv.Itoa(n)) + len(k) + len(v) + 3
		}
		return fmt.Sprintf("%d %s=%s\n", n, k, v)
	}
	records := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.realsize", "1099511627776") + record("GNU.sparse.name", "f")
	var x bytes.Buffer
	xw := tar.NewWriter(&x)
	if err := xw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "PaxHeaders", Size: int64(len(records)), Format: tar.FormatUSTAR}); err != nil {
		t.Fatal(err)
	}
	if _, err := xw.Write([]byte(records)); err != nil {
		t.Fatal(err)
	}
	if err := xw.Flush(); err != nil {
		t.Fatal(err)
	}
	head := x.Bytes()
	head[156] = 'x' // its type, and the checksum with it
	copy(head[148:156], "        ")
	sum := 0
	for _, c := range head[:512] {
		sum += int(c)
	}
	copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
	body := b.Bytes()
	copy(body[len(body)-1024-512:], "1\n1099511627775\n1\n") // the map: one byte, at the end
	dst := t.TempDir()
	_, err := transfer.Pull(t.Context(), &liar{stream: append(head, body...)}, ".", dst, transfer.PullOptions{})
	if !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("%v", err)
	}
	if list, _ := os.ReadDir(dst); len(list) > 0 {
		t.Errorf("made %v", list)
	}
}
