package manager

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// cleaned keeps sandboxes of warm runs for the next such run of the same caller, for
// which they are the same as new ones: of the last run nothing is left in them. The
// zero value is empty. Those in it stay open: [Manager.Close] ends them.
type cleaned struct {
	mu      sync.Mutex
	idle    []*waiting     // the longest unused first
	making  map[string]int // how many are being made, by place
	changed chan struct{}  // closed once there is more to take, or less being made
}

type waiting struct {
	place   string
	sandbox *Sandbox
	over    *time.Timer
	done    chan struct{} // closed once its cleaning has ended, and clean says how
	clean   bool
}

const (
	// cleanedMost is how many sandboxes wait at once, and cleanedIdle how long.
	cleanedMost = 8
	cleanedIdle = time.Minute
	// cleanedMaking is how many are made at once for one place: of many runs that begin
	// together, the others have what the first have left sooner than a new one.
	cleanedMaking = 4
	// scrubPatience bounds the cleaning after a run, unless agents are given more time
	// anyway. Its caller does not wait for it, and the next one does.
	scrubPatience = 10 * time.Second
)

// placeOf names the sandboxes that are the same for a run and its caller; "" is of one
// that gets a sandbox of its own.
func (p *cleaned) placeOf(ctx context.Context, run sandbox.Run) string {
	w := run.Workspace
	if !run.Warm || run.Keep || run.Role != "" || w.Kind != "" && w.Kind != sandbox.WorkspaceTmpfs || w.Source != "" || len(w.Layers) > 0 {
		return ""
	}
	b, err := json.Marshal(map[string]any{
		"owner": sandbox.CallerFrom(ctx).Owner, "language": run.Language, "image": run.Image, "limits": run.Limits, "network": run.Network,
		"runtime": run.Runtime, "oci": run.OCIRuntime, "labels": run.Labels, "workspace": w.Size,
	})
	if err != nil {
		return "" // which of its fields cannot be told
	}
	return string(b)
}

// take returns a sandbox that waits at a place, which is its caller's then; one that is
// being cleaned is waited for. Where it is nil the caller makes one, and says by made when
// it is there, or will not be. It waits while enough are being made.
func (p *cleaned) take(ctx context.Context, place string) (_ *Sandbox, made func(), err error) {
	if place == "" {
		return nil, func() {}, nil
	}
	for {
		w, changed := p.next(place)
		switch {
		case w != nil:
			if <-w.done; w.clean && !w.sandbox.gone() {
				return w.sandbox, func() {}, nil
			}
			go w.end() // it has no agent any more, or is not as a new one
		case changed == nil:
			return nil, sync.OnceFunc(func() { p.made(place) }), nil
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				return nil, nil, context.Cause(ctx)
			}
		}
	}
}

// next takes out who waits at a place: who is clean before who is being cleaned, and the
// youngest of them. Where nobody does, one more is being made, or changed says when to
// look again.
func (p *cleaned) next(place string) (_ *waiting, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := -1
	for i, w := range slices.Backward(p.idle) {
		if w.place == place && w.cleaned() {
			at = i
			break
		}
		if w.place == place && at < 0 {
			at = i
		}
	}
	if at >= 0 {
		w := p.idle[at]
		p.idle = slices.Delete(p.idle, at, at+1)
		w.over.Stop() // one that comes too late finds it gone from here
		return w, nil
	}
	if p.making[place] < cleanedMaking {
		if p.making == nil {
			p.making = map[string]int{}
		}
		p.making[place]++
		return nil, nil
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return nil, p.changed
}

// made takes one off those that are being made.
func (p *cleaned) made(place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.making[place]--; p.making[place] == 0 {
		delete(p.making, place)
	}
	p.changedLocked()
}

// changedLocked has those who wait look again.
func (p *cleaned) changedLocked() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// cleaned reports whether its cleaning has ended.
func (w *waiting) cleaned() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// put ends a sandbox, or has it cleaned and keeps it for others, where its run has ended
// by itself.
func (p *cleaned) put(ctx context.Context, place string, s *Sandbox, res sandbox.Result) error {
	if place == "" || res.Reason != sandbox.ReasonExited || s.State() != sandbox.StateReady {
		return s.Close()
	}
	w := &waiting{place: place, sandbox: s, done: make(chan struct{})}
	s.m.tasks.Go(func() { p.clean(ctx, w) })
	p.keep(w)
	return nil
}

// keep has a sandbox wait, in place of the longest unused one where there are many.
func (p *cleaned) keep(w *waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= cleanedMost {
		first := p.idle[0]
		p.idle = p.idle[1:]
		first.over.Stop() // one that comes too late finds it gone from here
		go first.end()
	}
	w.over = time.AfterFunc(cleanedIdle, func() { p.drop(w) })
	p.idle = append(p.idle, w)
	p.changedLocked()
}

// clean removes what the last run has left. A sandbox that does not get clean is ended,
// by whoever has taken it meanwhile.
func (p *cleaned) clean(ctx context.Context, w *waiting) {
	w.clean = w.sandbox.scrub(ctx) == nil
	close(w.done)
	if !w.clean {
		p.drop(w)
	}
}

// drop ends a sandbox that nobody has taken.
func (p *cleaned) drop(w *waiting) {
	p.mu.Lock()
	i := slices.Index(p.idle, w)
	if i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 { // else it is somebody's
		w.end()
	}
}

func (w *waiting) end() {
	if err := w.sandbox.Close(); err != nil {
		w.sandbox.m.cfg.Log.Warn("a sandbox that waited for runs could not be removed", "error", err)
	}
}

// scrub removes everything that runs have left in the sandbox. Its error says that it
// is not the same as a new one.
func (s *Sandbox) scrub(ctx context.Context) error {
	s.mu.Lock()
	b := s.box
	s.mu.Unlock()
	if b.Lent() {
		return sandbox.Errorf(sandbox.Exhausted, "some of its memory is held outside")
	}
	if len(b.Plan.Spec.Image.Volumes) > 0 {
		return sandbox.Errorf(sandbox.Unsupported, "the image has folders of its own that can be written in")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(scrubPatience, s.m.cfg.Patience))
	defer cancel()
	if err := b.Client.Scrub(ctx); err != nil || s.m.cfg.Recorder == nil {
		return err
	}
	return s.m.cfg.Recorder.Forget(b.ID)
}

// gone reports whether the sandbox's agent has ended.
func (s *Sandbox) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || s.box == nil || s.box.Client.Gone()
}
