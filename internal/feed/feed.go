// Package feed hands what happens to subscribers, none of whom anybody waits
// for.
package feed

import (
	"context"
	"iter"
	"sync"
)

// Room is how much waits for one subscriber.
const Room = 4096

// Feed hands values to subscribers. The zero value is ready. It is safe for
// concurrent use. Its owner closes it.
type Feed[T any] struct {
	mu     sync.Mutex
	subs   map[*subscriber[T]]struct{}
	closed bool
}

// Item is a value as one subscriber gets it.
type Item[T any] struct {
	Value T
	// Lost counts values before this one that the subscriber was too slow for.
	Lost int
	// More says that another waits behind it.
	More bool
	// End marks the last item of all, which has no value and says what was lost.
	End bool
}

type subscriber[T any] struct {
	items chan Item[T]
	lost  int           // guarded by the feed
	over  chan struct{} // closed when nothing more comes
}

// Subscribe returns the values from now on, until the loop is left, ctx is done,
// or the feed is closed and all that waits was read. A subscriber that is slow
// loses the newest, and the next item that it gets says how many.
func (f *Feed[T]) Subscribe(ctx context.Context) iter.Seq[Item[T]] {
	s := &subscriber[T]{items: make(chan Item[T], Room), over: make(chan struct{})}
	f.mu.Lock()
	if f.subs == nil {
		f.subs = map[*subscriber[T]]struct{}{}
	}
	if f.closed {
		close(s.over)
	} else {
		f.subs[s] = struct{}{}
	}
	f.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { f.drop(s) })
	return func(yield func(Item[T]) bool) {
		defer stop()
		defer f.drop(s)
		for {
			select {
			case <-ctx.Done():
				return
			case i := <-s.items:
				i.More = len(s.items) > 0
				if !yield(i) {
					return
				}
			case <-s.over:
				f.rest(s, yield)
				return
			}
		}
	}
}

// rest yields what still waits.
func (f *Feed[T]) rest(s *subscriber[T], yield func(Item[T]) bool) {
	for len(s.items) > 0 {
		i := <-s.items
		i.More = len(s.items) > 0
		if !yield(i) {
			return
		}
	}
	f.mu.Lock()
	lost := s.lost
	f.mu.Unlock()
	if lost > 0 {
		yield(Item[T]{Lost: lost, End: true})
	}
}

func (f *Feed[T]) drop(s *subscriber[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, s)
}

// Close ends the loops of subscribers once they have read what waits for them.
// It is idempotent.
func (f *Feed[T]) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for s := range f.subs {
		close(s.over)
		delete(f.subs, s)
	}
}

// Listened reports whether anybody subscribes.
func (f *Feed[T]) Listened() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs) > 0
}

// Tell hands a value to all subscribers.
func (f *Feed[T]) Tell(v T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs {
		select {
		case s.items <- Item[T]{Value: v, Lost: s.lost}:
			s.lost = 0
		default:
			s.lost++
		}
	}
}
