// Package known has the texts of Python that caisson, its agent and the Python package
// all bring, by their digests: whoever has them need not be sent them.
package known

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"

	"github.com/caisson-dev/caisson/internal/pyboot"
	"github.com/caisson-dev/caisson/sdk/python"
)

// text is one of them.
type text struct {
	digest  string
	content []byte
}

var texts = sync.OnceValue(func() (list []text) {
	for _, content := range []string{python.Values, python.Inside, pyboot.Text} {
		sum := sha256.Sum256([]byte(content))
		list = append(list, text{"sha256:" + hex.EncodeToString(sum[:]), []byte(content)})
	}
	return list
})

// Digests names all of them.
func Digests() (list []string) {
	for _, t := range texts() {
		list = append(list, t.digest)
	}
	return list
}

// Text returns the one with a digest, which is not to be changed. nil is none.
func Text(digest string) []byte {
	for _, t := range texts() {
		if t.digest == digest {
			return t.content
		}
	}
	return nil
}

// Cut takes off what b begins with, where that is one of those that digests name, and
// returns its digest and the rest of b.
func Cut(b []byte, digests []string) (digest string, rest []byte) {
	for _, t := range texts() {
		if bytes.HasPrefix(b, t.content) && slices.Contains(digests, t.digest) {
			return t.digest, b[len(t.content):]
		}
	}
	return "", b
}
