package signed_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/internal/signed"
)

// pieces writes a text in pieces of n bytes.
func pieces(t *testing.T, w interface{ Write([]byte) (int, error) }, text string, n int) {
	t.Helper()
	for len(text) > 0 {
		piece := text[:min(n, len(text))]
		if wrote, err := w.Write([]byte(piece)); wrote != len(piece) || err != nil {
			t.Fatalf("wrote %d of %d: %v", wrote, len(piece), err)
		}
		text = text[len(piece):]
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	key, other := signed.NewKey(), signed.NewKey()
	ours := func(k *signed.Key, text string) string { return k.Sign([]byte(text)) + " " + text + "\n" }
	text := "printed\n" + ours(&key, "one") + ours(&other, "forged") + ours(&key, strings.Repeat("x", 200)) + "half" + ours(&key, "lost") + ours(&key, "two") + ours(&key, "no end")[:70]
	for n := 1; n < 80; n += 13 {
		var got []string
		pieces(t, &signed.Lines{Key: &key, Most: 100, Take: func(b []byte) { got = append(got, string(b)) }}, text, n)
		if d := cmp.Diff([]string{"one", "two"}, got); d != "" {
			t.Errorf("in pieces of %d: %s", n, d)
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	key, other := signed.NewKey(), signed.NewKey()
	mark := func(k *signed.Key, n int) string { return "\x00" + k.Sign(fmt.Appendf(nil, "mark %d", n)) + "\x00" }
	text := "a\x00b" + mark(&key, 1) + mark(&other, 2) + "c" + mark(&key, 1) + mark(&key, 4) + "\x00end"
	want := []string{"a\x00b", mark(&other, 2) + "c" + mark(&key, 1), "", "", "\x00end"}
	for n := 1; n < 150; n += 31 {
		parts := make([]bytes.Buffer, 5)
		var passed []int
		m := &signed.Marks{Key: &key, Part: func(n int, p []byte) { parts[n].Write(p) }, Passed: func(n int) { passed = append(passed, n) }}
		pieces(t, m, text, n)
		m.Flush()
		for i := range parts {
			if got := parts[i].String(); got != want[i] {
				t.Errorf("in pieces of %d: part %d is %q", n, i, got)
			}
		}
		if d := cmp.Diff([]int{1, 4}, passed); d != "" || m.At() != 4 {
			t.Errorf("in pieces of %d: at %d, %s", n, m.At(), d)
		}
	}
}

func FuzzMarks(f *testing.F) {
	key := signed.NewKey()
	f.Add([]byte("a\x00b"), []byte("\x00\x00"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var got bytes.Buffer
		m := &signed.Marks{Key: &key, Part: func(_ int, p []byte) { got.Write(p) }}
		for _, b := range [][]byte{first, second} {
			if _, err := m.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		m.Flush()
		if want := append(bytes.Clone(first), second...); !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%q became %q", want, got.Bytes())
		}
	})
}
