package manager

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// OpenOptions ask for a sandbox that lasts until it is closed.
type OpenOptions struct {
	// Language chooses the image, and how code is run. Image overrides the
	// first; with an Image alone, only commands can be run.
	Language  string
	Image     string
	Limits    sandbox.Limits
	Network   sandbox.Network
	Workspace sandbox.Workspace
	// Runtime names what makes it. "" is the default.
	Runtime string
	// OCIRuntime names the engine's runtime. "" is its default.
	OCIRuntime string
	// Labels are for who lists what lives.
	Labels sandbox.Labels
	// Keep leaves the sandbox in place when it is closed after a failure.
	Keep bool
}

// Sandbox is one open sandbox. Its execs may run at once, from any number of
// goroutines. Its owner closes it.
type Sandbox struct {
	m        *Manager
	opts     OpenOptions
	language sandbox.Language // zero without one
	who      asker            // about the sandbox itself

	mu       sync.Mutex
	state    sandbox.State
	running  int
	box      *box.Box // nil before the first and after the last
	replaced bool     // a broken one was given up since the last exec
	failed   bool     // an exec ended with something other than code 0
	closed   bool
	kept     bool
	dropped  chan struct{} // closed once the last broken one is gone; nil without one
	dropErr  error         // of that, to be read once dropped is closed
}

// Open makes a sandbox. Errors: Invalid, NotFound for the image, Denied by the
// gate, and those of the runtime.
func (m *Manager) Open(ctx context.Context, opts OpenOptions) (*Sandbox, error) {
	s, err := m.prepare(ctx, opts)
	if err != nil {
		return nil, err
	}
	if err := m.track(s); err != nil {
		return nil, err
	}
	if _, err := s.start(ctx); err != nil {
		m.untrack(s)
		return nil, err
	}
	return s, nil
}

// prepare resolves options. It asks an engine only where the runtime is auto.
func (m *Manager) prepare(ctx context.Context, opts OpenOptions) (*Sandbox, error) {
	opts.Network = m.cfg.Egress.Named(opts.Network)
	s := &Sandbox{m: m, opts: opts}
	if opts.Language == "" && opts.Image == "" {
		return nil, sandbox.Errorf(sandbox.Invalid, "neither a language nor an image").WithHint("name a language with -l, or an image with --image")
	}
	if err := opts.Limits.WithDefaults().Check(); err != nil {
		return nil, err
	}
	var err error
	if s.opts.Runtime, err = m.choose(ctx, opts.Runtime); err != nil {
		return nil, err
	}
	if opts.Language != "" {
		if s.language, err = m.cfg.Images.Language(opts.Language); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// ID names the sandbox as it is now; a replaced one has another.
func (s *Sandbox) ID() sandbox.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box == nil {
		return ""
	}
	return s.box.ID
}

// State says where the sandbox is in its life.
func (s *Sandbox) State() sandbox.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// moveLocked makes a transition that this package's own logic allows. One that
// it does not is a fault of ours, and is told as such.
func (s *Sandbox) moveLocked(to sandbox.State) error {
	next, err := s.state.Next(to)
	if err != nil {
		return sandbox.Errorf(sandbox.Internal, "sandbox: %w", err)
	}
	s.state = next
	return nil
}

// start makes the sandbox. The caller sees to it that nobody else does so.
func (s *Sandbox) start(ctx context.Context) (*box.Box, error) {
	s.mu.Lock()
	err := s.moveLocked(sandbox.StateCreating)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	b, err := s.create(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, s.moveLocked(sandbox.StateFailed))
	}
	s.box = b
	return b, s.moveLocked(sandbox.StateReady)
}

// create makes the sandbox.
func (s *Sandbox) create(ctx context.Context) (*box.Box, error) {
	rt, err := s.m.runtimeOf(s.opts.Runtime)
	if err != nil {
		return nil, err
	}
	b, err := s.m.maker.New(ctx, box.Order{Runtime: rt, Language: s.language, Image: s.opts.Image, Judge: s.m.judgePlan(s.who), Take: s.m.ready(s.opts.Runtime, s.opts.Image), Owner: sandbox.CallerFrom(ctx).Owner, Labels: s.opts.Labels, Spec: sandbox.Spec{
		Language: s.language.Name, Limits: s.opts.Limits, Network: s.opts.Network, Workspace: s.opts.Workspace, Keep: s.opts.Keep,
		OCIRuntime: s.opts.OCIRuntime,
	}})
	if err == nil {
		s.m.born(b)
	}
	return b, err
}

// again is what start is for one that ran something else before: it is asked about anew.
func (s *Sandbox) again(ctx context.Context) (*box.Box, error) {
	s.mu.Lock()
	b := s.box
	s.mu.Unlock()
	plan := b.Plan
	return b, s.m.judgePlan(s.who)(ctx, &plan)
}

// acquire returns the box for one exec, which [Sandbox.release] gives
// back. A sandbox that broke is replaced first.
func (s *Sandbox) acquire(ctx context.Context) (*box.Box, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, sandbox.Errorf(sandbox.Conflict, "the sandbox is closed")
	}
	if s.state == sandbox.StateFailed && s.running == 0 {
		if err := s.replaceLocked(ctx); err != nil {
			return nil, false, err
		}
	}
	if s.box == nil || s.state == sandbox.StateFailed {
		return nil, false, sandbox.Errorf(sandbox.Unavailable, "the sandbox broke, and other execs have not ended yet").WithHint("try again")
	}
	if s.state == sandbox.StateReady {
		if err := s.moveLocked(sandbox.StateBusy); err != nil {
			return nil, false, err
		}
	}
	s.running++
	replaced := s.replaced
	s.replaced = false
	return s.box, replaced, nil
}

// replaceLocked makes a new container for a sandbox whose old one broke. Others
// that want an exec wait for it: there is nothing that they could do without.
func (s *Sandbox) replaceLocked(ctx context.Context) error {
	s.dropLocked()
	if s.dropped != nil {
		<-s.dropped // bounded by box.EndPatience
	}
	if err := s.moveLocked(sandbox.StateCreating); err != nil {
		return err
	}
	b, err := s.create(ctx)
	if err != nil {
		return errors.Join(err, s.moveLocked(sandbox.StateFailed))
	}
	s.box, s.replaced = b, true
	return s.moveLocked(sandbox.StateReady)
}

// dropLocked begins to end a broken box, and closes dropped once that
// is done: nobody's answer waits for it. Where it does not work the next sweep
// will: its handle carries our label.
func (s *Sandbox) dropLocked() {
	if s.box == nil {
		return
	}
	b, done := s.box, make(chan struct{})
	s.m.died(b)
	s.box, s.dropped = nil, done
	go func() {
		defer close(done)
		if s.dropErr = b.End(context.Background()); s.dropErr != nil {
			s.m.cfg.Log.Warn("a broken sandbox could not be removed", "sandbox", b.ID, "error", s.dropErr)
		}
	}()
}

// release ends an exec's use of the sandbox.
func (s *Sandbox) release(broken, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.failed = s.failed || failed
	if broken && (s.state == sandbox.StateBusy || s.state == sandbox.StateReady) {
		_ = s.moveLocked(sandbox.StateFailed) // both lead there
	}
	switch {
	case s.running > 0:
	case s.state == sandbox.StateBusy:
		_ = s.moveLocked(sandbox.StateReady) // busy leads there
	case s.state == sandbox.StateFailed && !s.opts.Keep:
		s.dropLocked() // what could not be ended in it goes with it, now
	}
}

// Close destroys the sandbox, ends what runs in it, and waits for that. With
// Keep it is left in place after a failure, and [Sandbox.Kept] says so. It is
// idempotent.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.m.untrack(s)
	if s.state != sandbox.StateGone {
		if err := s.moveLocked(sandbox.StateStopping); err != nil {
			return err
		}
	}
	var err error
	if s.dropped != nil {
		<-s.dropped // bounded by box.EndPatience
		err = s.dropErr
	}
	if s.box != nil {
		s.m.died(s.box)
		s.kept = s.opts.Keep && s.failed
		if s.kept {
			_ = s.box.Client.Close() // nobody uses it any more
		} else {
			err = errors.Join(err, s.box.End(context.Background()))
			if s.m.cfg.Recorder != nil {
				err = errors.Join(err, s.m.cfg.Recorder.Forget(s.box.ID))
			}
		}
	}
	return errors.Join(err, s.moveLocked(sandbox.StateGone))
}

// Kept names the engine's object that Close left in place, or "".
func (s *Sandbox) Kept() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.kept {
		return ""
	}
	return s.box.Instance.Handle().Name
}

// Sample reads what the sandbox uses now.
func (s *Sandbox) Sample(ctx context.Context) (sandbox.Sample, error) {
	s.mu.Lock()
	b := s.box
	s.mu.Unlock()
	if b == nil {
		return sandbox.Sample{}, sandbox.Errorf(sandbox.Unavailable, "the sandbox is not there")
	}
	return b.Sample(ctx)
}

// checkFiles reports the first file whose path would leave the workspace, or be it.
func checkFiles(files []sandbox.File) error {
	for _, f := range files {
		if path.Clean(f.Path) == "." || strings.HasPrefix(f.Path, "/") || slices.Contains(strings.Split(f.Path, "/"), "..") || strings.ContainsRune(f.Path, 0) {
			return sandbox.Errorf(sandbox.Invalid, "%q is not a path inside the workspace", f.Path).
				WithHint("name it relative to %s, without '..'", sandbox.WorkspaceDir)
		}
	}
	return nil
}
