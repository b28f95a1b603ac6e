package client_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// told is an observation as an agent would send it.
func told(count int, entries ...wire.Entry) []byte {
	var b []byte
	for i := range entries {
		b = wire.AppendEntry(b, &entries[i])
	}
	return append(wire.Append(nil, wire.TypeData, b), message(wire.TypeObserved, wire.Observed{Count: count, Actors: []string{""}})...)
}

// TestForgedRecord has a taken agent tell of files what no honest one does. It is
// refused, costs little, and nothing of it is handed on.
func TestForgedRecord(t *testing.T) {
	// Not parallel: it counts what the whole process allocates.
	file := func(path string) wire.Entry { return wire.Entry{Path: path, Kind: wire.KindFile, Size: 3} }
	for name, b := range map[string][]byte{
		"up":             told(1, file("../x")),
		"only up":        told(1, file("..")),
		"absolute":       told(1, file("/etc/passwd")),
		"not clean":      told(1, file("a/../../x")),
		"a slash behind": told(1, file("a/")),
		"empty":          told(1, file("")),
		"NUL":            told(1, file("a\x00b")),
		"a name with /":  told(1, wire.Entry{Path: ".", Kind: wire.KindDir, Whole: true, Names: []string{"a/b"}}),
		"a name up":      told(1, wire.Entry{Path: ".", Kind: wire.KindDir, Whole: true, Names: []string{".."}}),
		"negative size":  told(1, wire.Entry{Path: "a", Kind: wire.KindFile, Size: -1}),
		"unknown kind":   told(1, wire.Entry{Path: "a", Kind: 9}),
		"fewer":          told(2, file("a")),
		"more":           told(0, file("a")),
		"foreign exec":   append(wire.Append(nil, wire.TypeData, nil), message(wire.TypeObserved, wire.Observed{Actors: []string{"../../x"}})...),
		"long name":      wire.Append(nil, wire.TypeData, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}),
		"half an entry":  append(wire.Append(nil, wire.TypeData, []byte{5, 'a'}), message(wire.TypeObserved, wire.Observed{})...),
		"wrong type":     message(wire.TypeReply, wire.Reply{}),
		"nothing":        nil,
	} {
		c := forge(t, func(s *yamux.Stream, _ *wire.Reader, _ wire.Request) { _, _ = s.Write(b) })
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.Observe(t.Context(), sandbox.ObserveOptions{}, func(o *sandbox.Observation) error {
			t.Errorf("%s: handed on as %+v", name, o.Entries)
			return nil
		})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, sandbox.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%s: cost %d MiB", name, used>>20)
		}
	}
}

// TestForgedContent has a taken agent answer a question for contents with more,
// less, or something else. What is read is hashed by who keeps it, so a wrong
// content is that file's; a stream that is no answer is refused.
func TestForgedContent(t *testing.T) {
	t.Parallel()
	sum := bytes.Repeat([]byte{7}, 32)
	whole := append([]byte{3, 'a', 'b', 'c', 0, wire.ContentOK}, sum...)
	end := wire.Append(nil, wire.TypeDataEnd, nil)
	for name, tc := range map[string]struct {
		answer []byte
		fine   bool
	}{
		"as asked":       {append(wire.Append(nil, wire.TypeData, whole), end...), true},
		"gone":           {append(wire.Append(nil, wire.TypeData, []byte{0, wire.ContentUnread}), end...), true},
		"twice":          {append(wire.Append(nil, wire.TypeData, append(whole, whole...)), end...), false},
		"no hash":        {append(wire.Append(nil, wire.TypeData, whole[:20]), end...), false},
		"no end":         {append(wire.Append(nil, wire.TypeData, whole[:4]), end...), false},
		"nothing":        {end, false},
		"another answer": {message(wire.TypeReply, wire.Reply{}), false},
		"giant chunk":    {append(wire.Append(nil, wire.TypeData, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 'a'}), end...), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := forge(t, func(s *yamux.Stream, r *wire.Reader, _ wire.Request) {
				if _, err := s.Write(told(1, wire.Entry{Path: "a", Kind: wire.KindFile, Size: 3})); err != nil {
					return
				}
				for { // what is wanted
					f, err := r.Next()
					if err != nil {
						return
					}
					if f.Type == wire.TypeDataEnd {
						break
					}
				}
				if _, err := s.Write(tc.answer); err != nil {
					return
				}
				for { // that it was taken
					f, err := r.Next()
					if err != nil {
						return
					}
					if f.Type == wire.TypeDataEnd {
						_, _ = s.Write(message(wire.TypeReply, wire.Reply{}))
						return
					}
				}
			})
			err := c.Observe(t.Context(), sandbox.ObserveOptions{}, func(o *sandbox.Observation) error {
				return o.Read(t.Context(), []sandbox.Want{{Entry: 0}}, func(_ int, r io.Reader, sum func() string) error {
					b, err := io.ReadAll(r)
					if err == nil && sum() != "" && (string(b) != "abc" || sum() != strings.Repeat("07", 32)) {
						t.Errorf("%q, %s", b, sum())
					}
					return err
				})
			})
			if (err == nil) != tc.fine {
				t.Errorf("%v", err)
			}
		})
	}
}
