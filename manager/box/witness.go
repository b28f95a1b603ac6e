package box

import (
	"context"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// A Witness takes down now and then what the engine counts of a sandbox while an
// exec runs in it. Where the agent cannot tell at the end what was used, since it
// is stuck, frozen or gone, that is known all the same.
type Witness struct {
	from   runtimes.Sampler
	fresh  bool // nothing ran in the sandbox before
	cancel context.CancelFunc
	ctx    context.Context

	mu          sync.Mutex
	first, last *sandbox.Sample
	memory      sandbox.Bytes // the largest of the samples
	processes   int
	pause       time.Duration
	timers      []*time.Timer
	looking     chan struct{} // closed once a look that goes on is over; nil without one
}

// Between two looks. Most execs are over before the first.
const (
	firstLook = 250 * time.Millisecond
	lastLook  = 8 * time.Second
	// overdueLook is how long after an exec's timeout a look is due: an agent that
	// is well has answered by then, and of the others this is the last that is
	// seen before the sandbox is given up.
	overdueLook = 40 * time.Millisecond
	// lookPatience is how long an end waits for a look that goes on, where none was
	// before.
	lookPatience = 20 * time.Millisecond
)

// Witness begins to look on while an exec with a timeout runs. Its [Witness.Tell]
// ends that.
func (b *Box) Witness(ctx context.Context, timeout time.Duration) *Witness {
	w := &Witness{fresh: !b.ran.Swap(true) && b.Session == "", pause: firstLook}
	w.from, _ = b.Instance.(runtimes.Sampler)
	if w.from == nil {
		return w
	}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timers = append(w.timers, time.AfterFunc(firstLook, w.look))
	if timeout > 0 {
		w.timers = append(w.timers, time.AfterFunc(timeout+overdueLook, w.look))
	}
	return w
}

// look takes one sample, and sees to the next.
func (w *Witness) look() {
	w.mu.Lock()
	if w.looking != nil || w.ctx.Err() != nil {
		w.mu.Unlock()
		return
	}
	done := make(chan struct{})
	w.looking = done
	w.mu.Unlock()
	s, err := w.from.Sample(w.ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = nil
	close(done)
	if err == nil {
		if w.first == nil {
			w.first = &s
		}
		w.last, w.memory, w.processes = &s, max(w.memory, s.Memory), max(w.processes, s.Processes)
	}
	w.pause = min(2*w.pause, lastLook)
	w.timers[0].Reset(w.pause)
}

// Tell ends the looking and adds what was seen to an end of which the agent could
// not tell the use.
func (w *Witness) Tell(out *client.Outcome) {
	if w.from == nil {
		return
	}
	defer w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.timers {
		t.Stop()
	}
	if !out.Broken || out.Usage.Methods.CPU != "" {
		return
	}
	if looking := w.looking; looking != nil && w.last == nil {
		w.mu.Unlock()
		select {
		case <-looking:
		case <-time.After(lookPatience):
		}
		w.mu.Lock()
	}
	if w.last == nil {
		return
	}
	u := &out.Usage
	u.PeakMemory, u.Methods.Memory = w.memory, "engine's counter of the whole sandbox, sampled"
	u.PeakProcesses, u.Methods.Processes = w.processes, "engine's counter, with the agent's threads, sampled"
	if w.fresh {
		u.CPU, u.Methods.CPU = time.Duration(w.last.CPU), "engine's counter of the whole sandbox, as last seen"
	} else if w.last != w.first {
		u.CPU, u.Methods.CPU = time.Duration(w.last.CPU-w.first.CPU), "engine's counter of the whole sandbox, between two looks"
	}
}
