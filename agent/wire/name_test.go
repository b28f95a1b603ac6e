package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/caisson-dev/caisson/agent/wire"
)

// FuzzName sends names of any bytes: what comes is what was sent. Texts are texts.
func FuzzName(f *testing.F) {
	for _, s := range []string{"", "a/b", "é", "a\xff", "\xff", "\ufffd", "[", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(wire.FileInfo{Path: wire.Name(s)})
		if err != nil {
			t.Fatal(err)
		}
		var back wire.FileInfo
		if err := json.Unmarshal(b, &back); err != nil || string(back.Path) != s {
			t.Errorf("%q came as %q by %s, %v", s, back.Path, b, err)
		}
	})
	for _, bad := range []string{`7`, `{}`, `["%"]`, `[7]`} {
		if json.Unmarshal([]byte(bad), new(wire.Name)) == nil {
			f.Errorf("%s is a name", bad)
		}
	}
}
