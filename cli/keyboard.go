package cli

import (
	"bytes"
	"io"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// keyboard is what a person types, until the keys come by which they leave.
type keyboard struct {
	in    io.Reader
	keys  []byte // empty: there are none
	leave func()

	held int // of keys that were typed, and wait for the next
}

// Read implements [io.Reader].
func (k *keyboard) Read(p []byte) (int, error) {
	if len(p) <= len(k.keys) {
		return 0, io.ErrShortBuffer
	}
	buf := make([]byte, len(p)-len(k.keys))
	for {
		n, err := k.in.Read(buf)
		typed, left := k.pass(p[:0], buf[:n])
		if left {
			k.leave()
			return len(typed), io.EOF
		}
		if len(typed) > 0 || err != nil {
			return len(typed), err
		}
	}
}

// pass appends what goes on of b. left is that all keys were typed.
func (k *keyboard) pass(to, b []byte) (_ []byte, left bool) {
	for _, c := range b {
		if len(k.keys) > 0 && c == k.keys[k.held] {
			if k.held++; k.held == len(k.keys) {
				return to, true
			}
			continue
		}
		to = append(to, k.keys[:k.held]...)
		k.held = 0
		if len(k.keys) > 0 && c == k.keys[0] {
			k.held = 1
			continue
		}
		to = append(to, c)
	}
	return to, false
}

// parseKeys reads keys as docker takes them: letters, and ctrl- with a letter or one
// of @ [ \ ] ^ _, with commas between. "" is none.
func parseKeys(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	var keys []byte
	for key := range strings.SplitSeq(s, ",") {
		c, ctrl := strings.CutPrefix(key, "ctrl-")
		switch {
		case len(c) == 1 && !ctrl:
			keys = append(keys, c[0])
		case len(c) == 1 && (c[0] >= 'a' && c[0] <= 'z' || bytes.IndexByte([]byte(`@[\]^_`), c[0]) >= 0):
			keys = append(keys, c[0]&0x1f)
		default:
			return nil, sandbox.Errorf(sandbox.Invalid, "--detach-keys: %q is no key", key).WithHint("write keys such as ctrl-p,ctrl-q")
		}
	}
	if len(keys) > 16 {
		return nil, sandbox.Errorf(sandbox.Invalid, "--detach-keys: %d keys", len(keys)).WithHint("give at most 16")
	}
	return keys, nil
}
