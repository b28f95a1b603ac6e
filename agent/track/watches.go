//go:build linux

package track

import (
	"cmp"
	"sync/atomic"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Watches is a budget of the kernel's watches, which all sandboxes of a host
// share. It is safe for concurrent use, and its zero value is ready.
type Watches struct {
	// Most is how many may be held; 0 is [wire.MaxWatches].
	Most int32

	held atomic.Int32
}

// Take takes one, and reports whether there was one left.
func (w *Watches) Take() bool {
	if w.held.Add(1) <= cmp.Or(w.Most, wire.MaxWatches) {
		return true
	}
	w.Give(1)
	return false
}

// Give gives n back.
func (w *Watches) Give(n int) { w.held.Add(int32(-n)) }
