package functions

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// mostWaiting bounds the calls of one function that wait for an instance.
const mostWaiting = 1000

// pool has the instances of one function, of whichever version.
type pool struct {
	fs *Functions

	mu      sync.Mutex
	idle    []*instance // the one that was used last is the last
	busy    map[*instance]bool
	waiting []chan *instance // in their order; each gets one instance
	closed  bool
}

// pool returns that of a function, for a call that is counted among the tasks: it
// tells when it is done.
func (fs *Functions) pool(f sandbox.Function) (*pool, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.closed {
		return nil, sandbox.Errorf(sandbox.Unavailable, "caisson is closing")
	}
	key := sandbox.FunctionName{Owner: f.Owner, Name: f.Name}
	p := fs.pools[key]
	if p == nil {
		p = &pool{fs: fs, busy: map[*instance]bool{}}
		fs.pools[key] = p
	}
	fs.tasks.Add(1)
	return p, nil
}

// retire ends the instances that wait and are not of f's code. Those that are busy
// end once they come back. removed waits until those that waited are gone.
func (fs *Functions) retire(f sandbox.Function) (removed func()) {
	fs.mu.Lock()
	p := fs.pools[sandbox.FunctionName{Owner: f.Owner, Name: f.Name}]
	fs.mu.Unlock()
	var going sync.WaitGroup
	if p == nil {
		return going.Wait
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = slices.DeleteFunc(p.idle, func(in *instance) bool {
		if in.code != f.ID {
			going.Add(1)
			fs.tasks.Go(func() {
				defer going.Done()
				in.remove()
			})
		}
		return in.code != f.ID
	})
	return going.Wait
}

// take returns an instance for one call of f, which may be new, or of another
// version. Where as many as may be are busy it waits its turn. Errors: Exhausted
// where too many wait, Unavailable once the pool is closed, and those of ctx.
func (p *pool) take(ctx context.Context, f sandbox.Function) (*instance, error) {
	p.mu.Lock()
	switch n := len(p.idle); {
	case p.closed:
		p.mu.Unlock()
		return nil, sandbox.Errorf(sandbox.Unavailable, "caisson is closing")
	case n > 0:
		in := p.idle[n-1]
		p.idle = p.idle[:n-1]
		in.idle.Stop() // where it has fired, expire does not find it any more
		p.busy[in] = true
		p.mu.Unlock()
		return in, nil
	case len(p.busy) < f.Concurrency:
		in := &instance{fs: p.fs}
		p.busy[in] = true
		p.mu.Unlock()
		return in, nil
	case len(p.waiting) >= mostWaiting:
		p.mu.Unlock()
		return nil, sandbox.Errorf(sandbox.Exhausted, "%d calls of function %s wait already", mostWaiting, f.Name).
			WithHint("call it later, or put it again with a larger --concurrency")
	}
	turn := make(chan *instance, 1)
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case in := <-turn:
		if in == nil {
			return nil, sandbox.Errorf(sandbox.Unavailable, "caisson is closing")
		}
		return in, nil
	case <-ctx.Done():
		p.leave(turn)
		return nil, context.Cause(ctx)
	}
}

// leave gives up a turn, and what it may have got already.
func (p *pool) leave(turn chan *instance) {
	p.mu.Lock()
	i := slices.Index(p.waiting, turn)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	p.mu.Unlock()
	if i < 0 {
		if in := <-turn; in != nil {
			p.give(in)
		}
	}
}

// give returns an instance after a call. The next who waits gets it, whatever has
// become of it.
func (p *pool) give(in *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 && !p.closed {
		turn := p.waiting[0]
		p.waiting = p.waiting[1:]
		turn <- in
		return
	}
	delete(p.busy, in)
	switch {
	case in.session == "":
	case p.closed:
		p.fs.tasks.Go(in.rest)
	default:
		p.idle = append(p.idle, in)
		in.idle = time.AfterFunc(p.fs.cfg.KeepWarm, func() { p.expire(in) })
	}
}

// expire removes an instance that nobody has used for a while.
func (p *pool) expire(in *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, in); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		p.fs.tasks.Go(in.remove)
	}
}

// close ends all instances, those that are busy first of all by their processes.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, turn := range p.waiting {
		turn <- nil
	}
	p.waiting = nil
	for _, in := range p.idle {
		in.idle.Stop()
		p.fs.tasks.Go(in.rest)
	}
	p.idle = nil
	for in := range p.busy {
		in.abort()
	}
}
