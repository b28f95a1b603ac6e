package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// digestOf names what an approval is bound to: every byte that decides about
// what happens.
func digestOf(kind string, parts []any) string {
	b, err := json.Marshal(append([]any{"caisson approval 1", kind}, parts...))
	if err != nil {
		return "" // settled as a refusal: see [Gate.settle]'s desk
	}
	return sum(b)
}

// exactly names lists of strings, any bytes of theirs: JSON has one character
// for all bytes that are no text.
func exactly(lists ...[]string) string {
	h := sha256.New()
	for _, list := range lists {
		_, _ = fmt.Fprintf(h, "%d\n", len(list)) // a hash never fails
		for _, s := range list {
			_, _ = fmt.Fprintf(h, "%d:%s", len(s), s)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
