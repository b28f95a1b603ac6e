package policy

import (
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

type cacheKey struct {
	revision string
	lang     facts.Lang
	digest   [32]byte
	file     string
	start    [32]byte // of facts.Start; zero where it says nothing
	writable string   // folders, one a line
	link     string   // [Request.Link]
}

type cached struct {
	decision sandbox.Decision
	refs     []Ref
	until    time.Time // zero: as long as the revision
}

// cache keeps decisions by digest and revision. When it is full, an arbitrary
// one goes.
type cache struct {
	size int
	mu   sync.Mutex
	m    map[cacheKey]cached
}

func newCache(size int) *cache { return &cache{size: size, m: map[cacheKey]cached{}} }

func (c *cache) get(k cacheKey, now time.Time) (sandbox.Decision, []Ref, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.m[k]
	if !ok || !e.until.IsZero() && !now.Before(e.until) {
		return sandbox.Decision{}, nil, false
	}
	d := e.decision
	d.Findings = slices.Clone(d.Findings)
	return d, slices.Clone(e.refs), true
}

func (c *cache) put(k cacheKey, d sandbox.Decision, refs []Ref, until time.Time) {
	if c.size <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= c.size {
		for old := range c.m {
			delete(c.m, old)
			break
		}
	}
	d.Findings = slices.Clone(d.Findings)
	c.m[k] = cached{decision: d, refs: slices.Clone(refs), until: until}
}
