package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
