package e2b

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// typists hold the terminals that somebody types into: each has one place for that,
// and what is typed comes in calls of their own.
type typists struct {
	mu  sync.Mutex
	all map[sandbox.ID]*typist
}

// typist types into one terminal until that ends.
type typist struct {
	keys *io.PipeWriter
	gone chan struct{} // closed once err is set
	err  error
}

// terminals is where terminals are joined.
type terminals interface {
	AttachTerminal(ctx context.Context, session string, id sandbox.ID, streams sandbox.Streams) (sandbox.Attached, error)
}

// write types b. Errors: those of joining the terminal.
func (t *typists) write(ctx context.Context, at terminals, box string, id sandbox.ID, b []byte) error {
	one := t.open(ctx, at, box, id)
	stop := context.AfterFunc(ctx, func() { _ = one.keys.CloseWithError(ctx.Err()) })
	defer stop()
	if _, err := one.keys.Write(b); err != nil {
		select {
		case <-one.gone:
			return errors.Join(one.err, sandbox.Errorf(sandbox.NotFound, "the terminal has ended"))
		default:
			return err
		}
	}
	return nil
}

// open returns who types into a terminal, who stays after the call.
func (t *typists) open(ctx context.Context, at terminals, box string, id sandbox.ID) *typist {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.all[id]; one != nil {
		return one
	}
	keys, w := io.Pipe()
	one := &typist{keys: w, gone: make(chan struct{})}
	if t.all == nil {
		t.all = map[sandbox.ID]*typist{}
	}
	t.all[id] = one
	ctx = context.WithoutCancel(ctx)
	go func() { // it ends with the terminal
		_, one.err = at.AttachTerminal(ctx, box, id, sandbox.Streams{Stdin: keys, Stdout: io.Discard})
		t.mu.Lock()
		delete(t.all, id)
		t.mu.Unlock()
		close(one.gone)
		_ = keys.CloseWithError(io.ErrClosedPipe) // a pipe's Close does not fail
	}()
	return one
}
