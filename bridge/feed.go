package bridge

import (
	"context"
	"iter"
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// feedRoom is how many changes wait for one subscriber.
const feedRoom = 4096

// Feed hands changes to subscribers as they are recorded. The zero value is
// ready. It is safe for concurrent use.
type Feed struct {
	mu   sync.Mutex
	subs map[*subscriber]struct{}
}

type subscriber struct {
	news chan sandbox.ChangeNews
	lost int
}

// Subscribe returns the changes from now on, until the loop is left or ctx is
// done. A subscriber that is slow loses the newest, and the next that it gets
// says how many; nobody waits for it.
func (f *Feed) Subscribe(ctx context.Context) iter.Seq[sandbox.ChangeNews] {
	s := &subscriber{news: make(chan sandbox.ChangeNews, feedRoom)}
	f.mu.Lock()
	if f.subs == nil {
		f.subs = map[*subscriber]struct{}{}
	}
	f.subs[s] = struct{}{}
	f.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { f.drop(s) })
	return func(yield func(sandbox.ChangeNews) bool) {
		defer stop()
		defer f.drop(s)
		for {
			select {
			case <-ctx.Done():
				return
			case n := <-s.news:
				if !yield(n) {
					return
				}
			}
		}
	}
}

func (f *Feed) drop(s *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, s)
}

// tell hands records on. A nil Feed tells nobody.
func (f *Feed) tell(session string, records []sandbox.ChangeRecord) {
	if f == nil || len(records) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.subs) == 0 {
		return
	}
	for _, r := range records {
		for _, c := range Shown(r.Changes) {
			n := sandbox.ChangeNews{Session: session, Exec: r.Exec, Record: r.ID, Time: r.Time, FileChange: c}
			for s := range f.subs {
				s.send(n)
			}
		}
	}
}

func (s *subscriber) send(n sandbox.ChangeNews) {
	n.Lost = s.lost
	select {
	case s.news <- n:
		s.lost = 0
	default:
		s.lost++
	}
}
