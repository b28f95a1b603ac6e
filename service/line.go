package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Requests over a quota wait in line. Each owner has one of their own, and whoever is
// first in it is let in as soon as there is room, the owner who has least before the
// others. Who waits holds nothing. The quotas' lock guards it all.

// waiter is a request in line.
type waiter struct {
	owner string
	wish  wish
	since time.Time
	in    chan struct{} // closed once it is let in
	let   func()        // release of it; set before in is closed
	why   error         // it is not let in yet; nil before somebody looked
}

// isIn reports whether the request was let in.
func (w *waiter) isIn() bool {
	select {
	case <-w.in:
		return true
	default:
		return false
	}
}

// lookAgain is when the first in line looks again although nobody told that there
// is room: sandboxes of sessions end by themselves.
const lookAgain = 250 * time.Millisecond

// lookRest is between two looks on behalf of those who wait: however many do, they
// cost those who need not wait little.
const lookRest = 5 * time.Millisecond

// roomAfter is how long a request waits before idle sandboxes have to go for it.
const roomAfter = time.Second

// enter puts a request at the end of its owner's line.
func (q *quotas) enter(owner string, w wish) *waiter {
	me := &waiter{owner: owner, wish: w, since: time.Now(), in: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines[owner] = append(q.lines[owner], me)
	return me
}

// leave takes a request out of line. One that was let in meanwhile gives its place
// back.
func (q *quotas) leave(me *waiter) {
	q.mu.Lock()
	let := me.let
	q.removeLocked(me)
	q.mu.Unlock()
	if let != nil {
		let()
	}
	q.wake() // who was behind it is the first now
}

func (q *quotas) removeLocked(me *waiter) {
	rest := slices.DeleteFunc(q.lines[me.owner], func(w *waiter) bool { return w == me })
	if q.lines[me.owner] = rest; len(rest) == 0 {
		delete(q.lines, me.owner)
	}
}

// letInto marks a request as let in.
func (q *quotas) letInto(me *waiter, release func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removeLocked(me)
	q.turns++
	q.served[me.owner] = q.turns
	me.let = release
	close(me.in)
}

// tell says to all in an owner's line why they wait.
func (q *quotas) tell(owner string, why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.lines[owner] {
		w.why = why
	}
}

// whyNot is why a request is still in line.
func (q *quotas) whyNot(me *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return me.why
}

// firsts are the first of each line, those of owners who have least before the
// others, and else who was let in the longest ago.
func (q *quotas) firsts() []*waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []*waiter
	for _, line := range q.lines {
		all = append(all, line[0])
	}
	slices.SortFunc(all, func(a, b *waiter) int {
		return cmp.Or(cmp.Compare(q.shareLocked(a.owner).inside(), q.shareLocked(b.owner).inside()), cmp.Compare(q.served[a.owner], q.served[b.owner]), cmp.Compare(a.owner, b.owner))
	})
	return all
}

// wake has one of those in line look whether there is room.
func (q *quotas) wake() {
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// wait waits in line until the request is let in, as long as may be.
func (s *Service) wait(ctx context.Context, me *waiter, patience time.Duration) (release func(), err error) {
	q := s.quotas
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for told := false; ; {
		if err := s.letIn(ctx, me, told); err != nil && ctx.Err() == nil {
			q.leave(me)
			return nil, err
		}
		if me.isIn() {
			return me.let, nil
		}
		again := time.NewTimer(lookAgain)
		select {
		case <-me.in:
			again.Stop()
			return me.let, nil
		case <-bounded.Done():
			again.Stop()
			if me.isIn() {
				return me.let, nil
			}
			return nil, s.giveUpWaiting(ctx, me, patience)
		case <-q.kick:
			again.Stop()
			told = true
		case <-again.C:
			told = false
		}
	}
}

// giveUpWaiting takes a request out of line, and says why it was not let in.
func (s *Service) giveUpWaiting(ctx context.Context, me *waiter, patience time.Duration) error {
	s.quotas.leave(me)
	why := s.quotas.whyNot(me)
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return context.Cause(ctx)
	case why == nil:
		return sandbox.Errorf(sandbox.Exhausted, "nobody had the time to see whether there is room").WithHint("try again")
	case patience <= 0:
		return why
	}
	return sandbox.Errorf(sandbox.Exhausted, "%w; it waited for %s", why, time.Since(me.since).Round(time.Millisecond)).WithHint("%s", sandbox.HintOf(why))
}

// letIn lets in all for whom there is room, on behalf of everybody in line. Who finds
// that another has looked since it came has nothing to do.
func (s *Service) letIn(ctx context.Context, me *waiter, told bool) error {
	q := s.quotas
	select {
	case q.turn <- struct{}{}:
	case <-me.in:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-q.turn }()
	if q.whyNot(me) != nil && time.Since(q.looked) < lookRest {
		if told {
			time.AfterFunc(lookRest, q.wake) // what was told is not lost
		}
		return nil
	}
	q.looked = time.Now()
	views := s.newViews()
	for {
		let := false
		for _, w := range q.firsts() {
			release, why, err := s.fits(ctx, views, w)
			if err != nil {
				return err
			}
			if let = release != nil; let {
				q.letInto(w, release)
				break // who has least may be another now
			}
			q.tell(w.owner, why)
		}
		if !let {
			return nil
		}
	}
}

// views are sessions as they were when somebody looked.
type views struct {
	s   *Service
	all map[string][]sandbox.SessionView // nil before it is needed
	own map[string][]sandbox.SessionView
}

func (s *Service) newViews() *views { return &views{s: s, own: map[string][]sandbox.SessionView{}} }

// of are an owner's.
func (v *views) of(ctx context.Context, owner string) (list []sandbox.SessionView, err error) {
	if v.all != nil {
		return v.all[owner], nil
	}
	list, known := v.own[owner]
	if !known {
		list, err = v.s.cfg.Manager.Sessions(ctx, sandbox.SessionFilter{Owner: &owner, Running: true})
		v.own[owner] = list
	}
	return list, err
}

// everybody are those of all owners.
func (v *views) everybody(ctx context.Context) (map[string][]sandbox.SessionView, error) {
	if v.all != nil {
		return v.all, nil
	}
	list, err := v.s.cfg.Manager.Sessions(ctx, sandbox.SessionFilter{Running: true})
	if err != nil {
		return nil, err
	}
	v.all = map[string][]sandbox.SessionView{}
	for _, s := range list {
		v.all[s.Owner] = append(v.all[s.Owner], s)
	}
	return v.all, nil
}
