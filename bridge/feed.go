package bridge

import (
	"context"
	"iter"
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// feedRoom is how many changes wait for one subscriber.
const feedRoom = 4096

// Feed hands changes to subscribers as they are recorded: at the end of an exec,
// and while it runs, a few times a second, if anybody listens. The zero value is
// ready. It is safe for concurrent use. Its owner closes it.
type Feed struct {
	mu     sync.Mutex
	subs   map[*subscriber]struct{}
	closed bool
}

type subscriber struct {
	news chan sandbox.ChangeNews
	lost int           // guarded by the feed
	over chan struct{} // closed when nothing more comes
}

// Subscribe returns the changes from now on, until the loop is left, ctx is done,
// or the feed is closed and all that waits was read. A subscriber that is slow
// loses the newest, and the next that it gets says how many: one without a path,
// where the feed ends before another change. Nobody waits for it.
func (f *Feed) Subscribe(ctx context.Context) iter.Seq[sandbox.ChangeNews] {
	s := &subscriber{news: make(chan sandbox.ChangeNews, feedRoom), over: make(chan struct{})}
	f.mu.Lock()
	if f.subs == nil {
		f.subs = map[*subscriber]struct{}{}
	}
	if f.closed {
		close(s.over)
	} else {
		f.subs[s] = struct{}{}
	}
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
				n.More = len(s.news) > 0
				if !yield(n) {
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
func (f *Feed) rest(s *subscriber, yield func(sandbox.ChangeNews) bool) {
	for len(s.news) > 0 {
		n := <-s.news
		n.More = len(s.news) > 0
		if !yield(n) {
			return
		}
	}
	f.mu.Lock()
	lost := s.lost
	f.mu.Unlock()
	if lost > 0 {
		yield(sandbox.ChangeNews{Lost: lost})
	}
}

func (f *Feed) drop(s *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, s)
}

// Close ends the loops of subscribers once they have read what waits for them.
// It is idempotent. A nil Feed has none.
func (f *Feed) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for s := range f.subs {
		close(s.over)
		delete(f.subs, s)
	}
	return nil
}

// listened reports whether anybody subscribes.
func (f *Feed) listened() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs) > 0
}

// tell hands records on. Those of execs other than the one that has just ended
// are provisional. A nil Feed tells nobody.
func (f *Feed) tell(session string, ended sandbox.ID, records []sandbox.ChangeRecord) {
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
			n := sandbox.ChangeNews{
				Session: session, Exec: r.Exec, Record: r.ID, Time: r.Time, Provisional: r.Exec != "" && r.Exec != ended, FileChange: c,
			}
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
