package pool

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// A connection is one question, as JSON: for what there is, or for a sandbox. Where
// one is handed over the connection stays open for as long as the pool has to end it:
// who dies, or says that it is over, has it ended.
type (
	question struct {
		Take *Kind `json:"take,omitempty"` // nil asks what there is
	}
	answer struct {
		Shelves []sandbox.PoolShelf `json:"shelves,omitempty"`
		Handle  *runtimes.Handle    `json:"handle,omitempty"`
	}
	farewell struct {
		Kept bool `json:"kept,omitempty"`
	}
	goodbye struct{}
)

// Share lets others take from the pool until ctx is done. It closes the listener, and
// returns once nobody asks any more.
func (p *Pool) Share(ctx context.Context, ln net.Listener) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	for {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return sandbox.Errorf(sandbox.Unavailable, "share a pool: %w", errors.Join(err, ln.Close()))
		}
		tasks.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			p.answer(ctx, c)
		})
	}
}

// answer speaks with one who asks. That they may be gone shows at the next word.
func (p *Pool) answer(ctx context.Context, c net.Conn) {
	in, out := json.NewDecoder(c), json.NewEncoder(c)
	var q question
	if in.Decode(&q) != nil {
		return
	}
	if q.Take == nil {
		list, err := p.Shelves(ctx)
		if err == nil {
			_ = out.Encode(answer{Shelves: list})
		}
		return
	}
	e := p.take(*q.Take)
	if e == nil {
		_ = out.Encode(answer{})
		return
	}
	l := &loan{p, e}
	h := l.Handle()
	var f farewell
	if out.Encode(answer{Handle: &h}) == nil && in.Decode(&f) == nil && f.Kept {
		_ = out.Encode(goodbye{})
		return
	}
	if l.Over() == nil {
		_ = out.Encode(goodbye{})
	}
}

// Shared is a pool of another process of the same state folder. It is safe for
// concurrent use, and where there is no such process it has nothing.
type Shared struct {
	// Path is the pool's socket.
	Path string
}

// sharedPatience bounds how long another process may take for an answer that it has
// at hand.
const sharedPatience = 5 * time.Second

// Take is [Pool.Take]. A pool that does not answer has none.
func (s *Shared) Take(ctx context.Context, runtime, named string, spec sandbox.Spec) box.Ready {
	k, can := KindOf(runtime, named, spec)
	if !can {
		return nil
	}
	a, l, err := s.ask(ctx, question{Take: &k})
	if err != nil {
		return nil
	}
	if a.Handle == nil {
		_ = l.c.Close()
		return nil
	}
	l.handle = *a.Handle
	return l
}

// Shelves says what the pool has. Errors: NotFound where there is none.
func (s *Shared) Shelves(ctx context.Context) ([]sandbox.PoolShelf, error) {
	a, l, err := s.ask(ctx, question{})
	if err != nil {
		return nil, sandbox.Errorf(sandbox.NotFound, "no pool is kept for this state folder: %w", err).
			WithHint("write pool: into caisson.yaml, and keep one with: caisson pool serve")
	}
	return a.Shelves, l.c.Close()
}

func (s *Shared) ask(ctx context.Context, q question) (a answer, l *lent, err error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", s.Path)
	if err != nil {
		return a, nil, err
	}
	l = &lent{c: c, in: json.NewDecoder(c), out: json.NewEncoder(c)}
	if err = l.bound(); err == nil {
		err = l.out.Encode(q)
	}
	if err == nil {
		err = l.in.Decode(&a)
	}
	if err != nil {
		return a, nil, errors.Join(err, c.Close())
	}
	return a, l, nil
}

// lent is a sandbox of another process's pool.
type lent struct {
	c      net.Conn
	in     *json.Decoder
	out    *json.Encoder
	handle runtimes.Handle
}

func (l *lent) bound() error { return l.c.SetDeadline(time.Now().Add(sharedPatience)) }

// Handle implements [box.Ready].
func (l *lent) Handle() runtimes.Handle { return l.handle }

// Kept implements [box.Ready]. Where the pool is gone there is nobody to tell.
func (l *lent) Kept() { _ = l.leave(farewell{Kept: true}) }

// Over implements [box.Ready].
func (l *lent) Over() error {
	if err := l.leave(farewell{}); err != nil {
		return sandbox.Errorf(sandbox.Unavailable, "the pool is gone: %w", err)
	}
	return nil
}

func (l *lent) leave(f farewell) error {
	defer l.c.Close()
	var g goodbye
	if err := l.bound(); err != nil {
		return err
	}
	if err := l.out.Encode(f); err != nil {
		return err
	}
	return l.in.Decode(&g)
}
