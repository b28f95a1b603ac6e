package known_test

import (
	"bytes"
	"testing"

	"github.com/caisson-dev/caisson/internal/known"
	"github.com/caisson-dev/caisson/internal/pyboot"
	"github.com/caisson-dev/caisson/sdk/python"
)

// What is cut off is what its digest stands for, and is cut for those alone who have it.
func TestCut(t *testing.T) {
	t.Parallel()
	all := known.Digests()
	for name, b := range map[string]string{"values": python.Values, "inside": python.Inside, "boot": pyboot.Text + "exec(*_boot())\n", "other": "print(1)", "nearly": python.Values[1:], "nothing": ""} {
		digest, rest := known.Cut([]byte(b), all)
		if got := append(bytes.Clone(known.Text(digest)), rest...); string(got) != b {
			t.Errorf("%s: %q and %d bytes are not it", name, digest, len(rest))
		}
		if is := name == "values" || name == "inside" || name == "boot"; is != (digest != "") {
			t.Errorf("%s: %q", name, digest)
		}
		if digest, rest = known.Cut([]byte(b), nil); digest != "" || string(rest) != b {
			t.Errorf("%s: cut off for who has not got it: %q", name, digest)
		}
	}
	if known.Text("sha256:0") != nil {
		t.Error("a text with a digest of none")
	}
}
