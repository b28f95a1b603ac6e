package box

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/sandbox"
)

// underWay are the execs in a box that this process follows.
type underWay struct {
	mu    sync.Mutex
	execs map[sandbox.ID]*Exec

	refused []time.Time // connections
}

// Exec is one that runs in a box and that this process follows.
type Exec struct {
	sandbox.LiveExec
	stop context.CancelCauseFunc
	over chan struct{} // closed once it has ended
}

// stopped is why an exec was canceled by this process and not by its caller.
type stopped struct{ cause string }

func (s *stopped) Error() string { return s.cause }

// Stop cancels the exec with a cause, which [ExplainStop] tells.
func (x *Exec) Stop(cause string) { x.stop(&stopped{cause}) }

// Over is closed once the exec has ended.
func (x *Exec) Over() <-chan struct{} { return x.over }

// Begin notes an exec. The context that it returns ends when it is to be stopped;
// over has to be called after its end.
func (b *Box) Begin(ctx context.Context, e sandbox.LiveExec) (_ context.Context, over func()) {
	r := &b.running
	ctx, stop := context.WithCancelCause(ctx)
	x := &Exec{LiveExec: e, stop: stop, over: make(chan struct{})}
	r.mu.Lock()
	if r.execs == nil {
		r.execs = map[sandbox.ID]*Exec{}
	}
	r.execs[e.ID] = x
	r.mu.Unlock()
	return ctx, func() {
		r.mu.Lock()
		delete(r.execs, e.ID)
		r.mu.Unlock()
		close(x.over)
		stop(nil)
	}
}

// Running returns the execs that have begun and not ended, the oldest first.
func (b *Box) Running() []*Exec {
	r := &b.running
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Exec, 0, len(r.execs))
	for _, x := range r.execs {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *Exec) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	return all
}

// ExplainStop says in an outcome who stopped it.
func ExplainStop(ctx context.Context, out *client.Outcome) {
	if s, ok := errors.AsType[*stopped](context.Cause(ctx)); ok && out.Reason == sandbox.ReasonCanceled {
		out.Cause = s.cause
	}
}

// mostRefusals bounds how many refused connections are remembered.
const mostRefusals = 1000

// Refused notes that a connection of what runs in the box was refused.
func (b *Box) Refused(at time.Time) {
	r := &b.running
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused = append(r.refused, at); len(r.refused) > mostRefusals {
		r.refused = slices.Delete(r.refused, 0, mostRefusals/2)
	}
}

// RefusedSince counts the connections that were refused since then.
func (b *Box) RefusedSince(then time.Time) (n int) {
	r := &b.running
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.refused {
		if !at.Before(then) {
			n++
		}
	}
	return n
}
