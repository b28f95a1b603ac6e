package wire_test

import (
	"bufio"
	"bytes"
	"reflect"
	"testing"

	"github.com/caisson-dev/caisson/agent/wire"
)

func FuzzEntry(f *testing.F) {
	f.Add(wire.AppendEntry(nil, &wire.Entry{Path: "a/b", Kind: wire.KindFile, Mode: 0o644, Size: 3, MTime: 9, CTime: 8, Inode: 7, Links: 1}))
	f.Add(wire.AppendEntry(nil, &wire.Entry{Path: "gone\xff"}))
	f.Add(wire.AppendEntry(nil, &wire.Entry{Path: ".", Kind: wire.KindDir, Whole: true, Names: []string{"a", "b\n"}}))
	f.Add(wire.AppendEntry(nil, &wire.Entry{Path: "l", Kind: wire.KindLink, Target: "/etc/passwd", Actors: 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := wire.ReadEntry(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		again, err := wire.ReadEntry(bufio.NewReader(bytes.NewReader(wire.AppendEntry(nil, &e))))
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%+v came back as %+v, %v", e, again, err)
		}
	})
}
