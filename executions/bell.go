package executions

import (
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// bell wakes those who wait for an execution to move on in this process. Its zero
// value is ready.
type bell struct {
	mu    sync.Mutex
	ropes map[sandbox.ID]*rope
}

type rope struct {
	rung    chan struct{}
	waiting int
}

// listen returns a channel that is closed at the next ring; leave is to be called
// once.
func (b *bell) listen(id sandbox.ID) (rung <-chan struct{}, leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ropes == nil {
		b.ropes = map[sandbox.ID]*rope{}
	}
	r := b.ropes[id]
	if r == nil {
		r = &rope{rung: make(chan struct{})}
		b.ropes[id] = r
	}
	r.waiting++
	return r.rung, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if r.waiting--; r.waiting == 0 && b.ropes[id] == r {
			delete(b.ropes, id)
		}
	}
}

func (b *bell) ring(id sandbox.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.ropes[id]; r != nil {
		close(r.rung)
		delete(b.ropes, id)
	}
}
