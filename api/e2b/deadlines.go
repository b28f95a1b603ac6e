package e2b

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// pauseGrace is how much longer a sandbox lives than its client set, where it is to
// be paused then: who pauses it is this server, which may be away for a while.
const pauseGrace = time.Hour

// mostSeconds is the longest time that a client can set, some 68 years.
const mostSeconds = 1 << 31

// ttl is a sandbox's, for a timeout of a client's. One of no time ends at once.
func ttl(seconds int64, labels sandbox.Labels) sandbox.Duration {
	d := max(time.Duration(min(seconds, mostSeconds))*time.Second, time.Millisecond)
	if labels[labelOnTimeout] == "pause" {
		d += pauseGrace
	}
	return sandbox.Duration(d)
}

// boxOf is the sandbox of a session, nil where it has none any more.
func boxOf(v sandbox.SessionView) *sandbox.SandboxRecord {
	for i, rec := range v.Sandboxes {
		if slices.Contains([]sandbox.State{sandbox.StateReady, sandbox.StateBusy, sandbox.StatePaused}, rec.State) {
			return &v.Sandboxes[i]
		}
	}
	return nil
}

// isPaused reports whether a sandbox is frozen, or rests without its memory: then it has
// no end, and nothing is there that could.
func isPaused(v sandbox.SessionView) bool {
	b := boxOf(v)
	return b == nil && v.TTL == 0 || b != nil && b.State == sandbox.StatePaused
}

// ends is when a sandbox's time is over. One that is paused or has no end is told
// one that is far away, since clients want a date.
func (s *Server) ends(v sandbox.SessionView) time.Time {
	b := boxOf(v)
	if b == nil && v.TTL != 0 {
		return v.Created
	}
	if b == nil || b.Expires.IsZero() {
		return s.cfg.Now().UTC().AddDate(1, 0, 0).Truncate(time.Second)
	}
	if v.Labels[labelOnTimeout] == "pause" {
		return b.Expires.Add(-pauseGrace)
	}
	return b.Expires
}

// lives reports whether a sandbox is there for its clients, running or paused.
func (s *Server) lives(v sandbox.SessionView) bool {
	b := boxOf(v)
	if b == nil && v.TTL != 0 || s.gone.has(v.ID) {
		return false
	}
	return isPaused(v) || v.Labels[labelOnTimeout] == "pause" || s.cfg.Now().Before(s.ends(v))
}

// checkTimeout refuses a time that is none.
func checkTimeout(seconds int64) error {
	if seconds < 0 {
		return sandbox.Errorf(sandbox.Invalid, "a timeout of %d seconds", seconds).WithHint("0 is at once")
	}
	return nil
}

// renew sets when a sandbox ends, counted from now.
func (s *Server) renew(ctx context.Context, v sandbox.SessionView, seconds int64) error {
	if err := checkTimeout(seconds); err != nil {
		return err
	}
	d := ttl(seconds, v.Labels)
	defer s.deadlineSet()
	return s.svc.RenewSession(ctx, v.Name, api.RenewOptions{TTL: &d})
}

// extend is renew, but never takes time away.
func (s *Server) extend(ctx context.Context, v sandbox.SessionView, seconds int64) error {
	if err := checkTimeout(seconds); err != nil {
		return err
	}
	if s.cfg.Now().Add(time.Duration(min(seconds, mostSeconds)) * time.Second).Before(s.ends(v)) {
		return nil
	}
	return s.renew(ctx, v, seconds)
}

func (s *Server) setTimeout(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Timeout int64 `json:"timeout"`
	}
	if err := body(w, r, &in); err != nil {
		return err
	}
	v, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.renew(r.Context(), v, in.Timeout); err != nil {
		return err
	}
	answer(w, http.StatusNoContent, nil)
	return nil
}

// refresh is what old clients prolong by.
func (s *Server) refresh(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Duration int64 `json:"duration"`
	}
	if err := body(w, r, &in); err != nil {
		return err
	}
	v, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.extend(r.Context(), v, in.Duration); err != nil {
		return err
	}
	answer(w, http.StatusNoContent, nil)
	return nil
}

func (s *Server) pause(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Memory *bool `json:"memory"`
	}
	if err := body(w, r, &in); err != nil {
		return err
	}
	v, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.freeze(r.Context(), v, in.Memory == nil || *in.Memory); err != nil {
		return err
	}
	answer(w, http.StatusNoContent, nil)
	return nil
}

// freeze pauses a sandbox, with its memory or without, which has no end while it is
// paused. Errors: Conflict where it is paused.
func (s *Server) freeze(ctx context.Context, v sandbox.SessionView, memory bool) error {
	if isPaused(v) {
		return sandbox.Errorf(sandbox.Conflict, "sandbox %s is paused", v.Name)
	}
	ctx = context.WithoutCancel(ctx) // half of it would leave a sandbox without an end
	never, left := sandbox.Duration(0), s.ends(v).Sub(s.cfg.Now())
	if err := s.svc.RenewSession(ctx, v.Name, api.RenewOptions{TTL: &never}); err != nil {
		return err
	}
	do := s.svc.PauseSession
	if !memory {
		do = s.svc.StopSession
	}
	err := do(ctx, v.Name)
	if err != nil {
		err = errors.Join(err, s.renew(ctx, v, max(0, int64(left/time.Second))))
	}
	return err
}

// resume lets a paused sandbox go on for so long, with its memory where it has that and
// that is wanted.
func (s *Server) resume(ctx context.Context, v sandbox.SessionView, seconds int64, memory bool) error {
	ctx = context.WithoutCancel(ctx) // as above
	err := checkTimeout(seconds)
	if err == nil && !memory {
		err = s.svc.StopSession(ctx, v.Name)
	}
	switch {
	case err != nil:
	case boxOf(v) != nil && memory:
		err = s.svc.ResumeSession(ctx, v.Name)
	default:
		_, err = s.svc.Files(ctx, v.Name) // has it made now, without an end as yet
	}
	if err != nil {
		return err
	}
	return s.renew(ctx, v, seconds)
}

// finish removes a sandbox with its workspace.
func (s *Server) finish(ctx context.Context, v sandbox.SessionView) error {
	s.gone.add(v.ID)
	err := s.svc.RemoveSession(context.WithoutCancel(ctx), v.Name, true)
	if errors.Is(err, sandbox.NotFound) {
		return nil // its end came first
	}
	if err != nil {
		s.gone.drop(v.ID)
	}
	return err
}

// deadlineSet has [Server.Run] look anew.
func (s *Server) deadlineSet() {
	select {
	case s.kick <- struct{}{}:
	default: // it will look
	}
}

// mostRest is how long Run goes without a look: others may remove sandboxes too.
const mostRest = time.Minute

// Run ends, or pauses, sandboxes whose time is over, until ctx is done. Without it
// they end by themselves, and their sessions stay.
func (s *Server) Run(ctx context.Context) {
	var looked time.Time // for snapshots
	for ctx.Err() == nil {
		rest, err := s.sweep(asLocal(ctx))
		if time.Since(looked) >= mostRest {
			looked, err = time.Now(), errors.Join(err, s.sweepSnapshots(asLocal(ctx)))
		}
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("e2b: look for sandboxes whose time is over", "error", err)
		}
		t := time.NewTimer(rest)
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-s.kick:
		}
		t.Stop()
	}
}

// sweep looks once, and returns when to look again.
func (s *Server) sweep(ctx context.Context) (time.Duration, error) {
	views, err := s.svc.Sessions(ctx, sandbox.SessionFilter{Labels: sandbox.Labels{labelWire: "true"}, Running: true})
	if err != nil {
		return mostRest, err
	}
	rest := mostRest
	var errs []error
	for _, v := range views {
		left := s.ends(v).Sub(s.cfg.Now())
		if starting(v) || left > 0 || isPaused(v) {
			if left > 0 {
				rest = min(rest, left)
			}
			continue
		}
		if v.Labels[labelOnTimeout] == "pause" && boxOf(v) != nil {
			err = s.freeze(ctx, v, v.Labels[labelForgets] != "true")
		} else {
			err = s.finish(ctx, v)
		}
		if err != nil && !errors.Is(err, sandbox.NotFound) {
			errs = append(errs, err)
		}
	}
	return max(rest, time.Millisecond), errors.Join(errs...)
}

// starting reports whether a sandbox is being made.
func starting(v sandbox.SessionView) bool {
	for _, rec := range v.Sandboxes {
		if rec.State == sandbox.StateCreating {
			return true
		}
	}
	return len(v.Sandboxes) == 0 && time.Since(v.Created) < mostRest
}

// goneSandboxes are the newest of those that were ended here: streams to them may
// still be open.
type goneSandboxes struct {
	mu    sync.Mutex
	ids   map[sandbox.ID]bool
	order []sandbox.ID
}

// mostGone bounds how many are known.
const mostGone = 10_000

func (g *goneSandboxes) add(id sandbox.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids == nil {
		g.ids = map[sandbox.ID]bool{}
	}
	if g.ids[id] {
		return
	}
	g.ids[id], g.order = true, append(g.order, id)
	if len(g.order) > mostGone {
		delete(g.ids, g.order[0])
		g.order = g.order[1:]
	}
}

func (g *goneSandboxes) drop(id sandbox.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ids, id)
}

func (g *goneSandboxes) has(id sandbox.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ids[id]
}
