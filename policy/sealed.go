package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// seal has a text kept with its sum, and that of the key that it is kept under:
// what a crash, a full disk or a mistake leaves behind is none, and neither is
// what belongs to another key.
func (c *Config) seal(key string, body []byte) {
	c.Keeper.Put(key, append([]byte(sealOf(key, body)), body...))
}

// unsealed gives what was kept under a key, or nil where that is not whole.
func (c *Config) unsealed(key string) []byte {
	b, ok := c.Keeper.Get(key)
	if !ok || len(b) < 2*sha256.Size {
		return nil
	}
	body := b[2*sha256.Size:]
	if string(b[:2*sha256.Size]) != sealOf(key, body) {
		return nil
	}
	return body
}

func sealOf(key string, body []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, key) // a hash never fails
	_, _ = h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// EncodedTables gives the scanner's tables encoded: those that are kept with
// the rules of a Config, or what load reads, which is kept then. It may be
// called at any time; its errors are those of load, and Invalid where the
// rules cannot be read.
func EncodedTables(c Config, load func() (*facts.Tables, error)) ([]byte, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	revision := ""
	if c.Keeper != nil {
		if revision, err = revisionOf(c); err != nil {
			return nil, err
		}
		if b := c.recallSealed("tables", revision); b != nil {
			return b, nil
		}
	}
	t, err := load()
	if err != nil {
		return nil, err
	}
	b, err := t.MarshalBinary()
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "encode the scanner's tables: %w", err)
	}
	if c.Keeper == nil {
		return b, nil
	}
	// What was changed while it was read may be of neither revision.
	if now, err := revisionOf(c); err == nil && now == revision {
		c.rememberSealed("tables", revision, b)
	}
	return b, nil
}

// sealedKey names what is kept beside decisions.
func (c *Config) sealedKey(what, revision string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "caisson %s 4\x00%s\x00%s", what, c.Programs, revision))
	return hex.EncodeToString(sum[:])
}

// recallSealed gives what was kept, or nil where that is not whole.
func (c *Config) recallSealed(what, revision string) []byte {
	return c.unsealed(c.sealedKey(what, revision))
}

func (c *Config) rememberSealed(what, revision string, body []byte) {
	c.seal(c.sealedKey(what, revision), body)
}
