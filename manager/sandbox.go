package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/runtimes"
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
	// OCIRuntime names the engine's runtime. "" is its default.
	OCIRuntime string
	// Keep leaves the sandbox in place when it is closed after a failure.
	Keep bool
}

// Sandbox is one open sandbox. Its execs may run at once, from any number of
// goroutines. Its owner closes it.
type Sandbox struct {
	m        *Manager
	opts     OpenOptions
	language sandbox.Language // zero without one
	image    string           // reference
	approve  sandbox.ApproveMode
	ask      sandbox.Asker // who is asked about the sandbox itself; may be nil

	mu       sync.Mutex
	state    sandbox.State
	running  int
	live     *live // nil before the first and after the last
	replaced bool  // a broken one was given up since the last exec
	failed   bool  // an exec ended with something other than code 0
	closed   bool
	kept     bool
	dropped  chan struct{} // closed once the last broken incarnation is gone; nil without one
	dropErr  error         // of that, to be read once dropped is closed
}

// live is one incarnation of a sandbox.
type live struct {
	instance runtimes.Instance
	client   *client.Client
	plan     runtimes.Plan
	session  sandbox.ID  // whose it is; "" for a one-shot
	shared   bool        // other sandboxes have the same workspace
	used     atomic.Bool // something ran in it
}

func (l *live) id() sandbox.ID { return l.instance.Handle().ID }

// Open makes a sandbox. Errors: Invalid, NotFound for the image, Denied by the
// gate, and those of the runtime.
func (m *Manager) Open(ctx context.Context, opts OpenOptions) (*Sandbox, error) {
	s, err := m.prepare(opts)
	if err != nil {
		return nil, err
	}
	if err := m.track(s); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		m.untrack(s)
		return nil, err
	}
	return s, nil
}

// prepare resolves options without asking the engine.
func (m *Manager) prepare(opts OpenOptions) (*Sandbox, error) {
	s := &Sandbox{m: m, opts: opts, image: opts.Image}
	if opts.Language == "" && opts.Image == "" {
		return nil, sandbox.Errorf(sandbox.Invalid, "neither a language nor an image").WithHint("name a language with -l, or an image with --image")
	}
	if err := opts.Limits.WithDefaults().Check(); err != nil {
		return nil, err
	}
	if opts.Language != "" {
		lang, err := m.cfg.Images.Language(opts.Language)
		if err != nil {
			return nil, err
		}
		s.language = lang
		if s.image == "" {
			s.image = lang.Image
		}
	}
	return s, nil
}

// ID names the sandbox as it is now; a replaced one has another.
func (s *Sandbox) ID() sandbox.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		return ""
	}
	return s.live.instance.Handle().ID
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

// start makes the sandbox's container and claims its agent. The caller sees to
// it that nobody else does so.
func (s *Sandbox) start(ctx context.Context) error {
	s.mu.Lock()
	err := s.moveLocked(sandbox.StateCreating)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	l, err := s.create(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return errors.Join(err, s.moveLocked(sandbox.StateFailed))
	}
	s.live = l
	return s.moveLocked(sandbox.StateReady)
}

// create makes the sandbox, and makes its image anew where somebody removed it
// since it was last seen.
func (s *Sandbox) create(ctx context.Context) (*live, error) {
	l, gone, err := s.createOnce(ctx)
	if gone {
		l, _, err = s.createOnce(ctx)
	}
	return l, err
}

func (s *Sandbox) createOnce(ctx context.Context) (_ *live, gone bool, err error) {
	cfg := s.m.cfg
	image, err := cfg.Images.Ensure(ctx, s.image)
	if err != nil {
		return nil, false, err
	}
	id := sandbox.NewID()
	spec := sandbox.Spec{
		Language: s.language.Name, Image: image, Owner: cfg.Owner, Limits: s.opts.Limits, Network: s.opts.Network,
		Workspace: s.opts.Workspace, Identity: sandbox.IdentityFor(id), Keep: s.opts.Keep,
		OCIRuntime: s.opts.OCIRuntime,
	}
	plan, err := cfg.Runtime.Plan(ctx, spec)
	if err != nil {
		return nil, false, err
	}
	if _, _, err := s.m.judge(ctx, Question{Plan: &PlanQuestion{Plan: &plan, Approve: s.approve, Ask: s.ask}}); err != nil {
		return nil, false, err
	}
	inst, gone, err := s.m.createInstance(ctx, id, plan)
	if err != nil {
		return nil, gone, err
	}
	c, err := claim(ctx, inst, plan)
	if err != nil {
		return nil, false, errors.Join(err, destroy(ctx, inst))
	}
	return &live{instance: inst, client: c, plan: plan}, false, nil
}

// destroy ends an instance whatever became of ctx.
func destroy(ctx context.Context, inst runtimes.Instance) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyPatience)
	defer cancel()
	return inst.Destroy(ctx)
}

// claim makes the agent ours: it gets the sandbox's users and a secret that
// only this process knows.
func claim(ctx context.Context, inst runtimes.Instance, plan runtimes.Plan) (*client.Client, error) {
	conn, err := inst.Dial(ctx)
	if err != nil {
		return nil, err
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // crypto/rand.Read never fails: it ends the process instead
	return client.New(ctx, conn, client.Config{
		Secret: secret,
		Claim:  &client.Claim{Identity: plan.Spec.Identity, OneShot: true, Env: baseEnv(plan.Spec.Image.Env)},
		Lease:  client.Lease{ID: sandbox.NewID()},
	})
}

// baseEnv is what every exec finds in its environment: the image's own
// variables, and over them what the sandbox sets. Nothing of the host's.
func baseEnv(image []string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	env = append(env, image...)
	return append(env, "HOME="+client.HomeDir, "USER=sandbox", "LOGNAME=sandbox", "SHELL=/bin/sh")
}

// acquire returns the live sandbox for one exec, which [Sandbox.release] gives
// back. A sandbox that broke is replaced first.
func (s *Sandbox) acquire(ctx context.Context) (*live, bool, error) {
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
	if s.live == nil || s.state == sandbox.StateFailed {
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
	return s.live, replaced, nil
}

// replaceLocked makes a new container for a sandbox whose old one broke. Others
// that want an exec wait for it: there is nothing that they could do without.
func (s *Sandbox) replaceLocked(ctx context.Context) error {
	s.dropLocked()
	if s.dropped != nil {
		<-s.dropped // bounded by destroyPatience
	}
	if err := s.moveLocked(sandbox.StateCreating); err != nil {
		return err
	}
	l, err := s.create(ctx)
	if err != nil {
		return errors.Join(err, s.moveLocked(sandbox.StateFailed))
	}
	s.live, s.replaced = l, true
	return s.moveLocked(sandbox.StateReady)
}

// dropLocked begins to end a broken incarnation, and closes dropped once that
// is done: nobody's answer waits for it. Where it does not work the next sweep
// will: its handle carries our label.
func (s *Sandbox) dropLocked() {
	if s.live == nil {
		return
	}
	l, done := s.live, make(chan struct{})
	s.live, s.dropped = nil, done
	go func() {
		defer close(done)
		_ = l.client.Close() // it broke
		if s.dropErr = destroy(context.Background(), l.instance); s.dropErr != nil {
			s.m.cfg.Log.Warn("a broken sandbox could not be removed", "sandbox", l.instance.Handle().ID, "error", s.dropErr)
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
		<-s.dropped // bounded by destroyPatience
		err = s.dropErr
	}
	if s.live != nil {
		s.kept = s.opts.Keep && s.failed
		if !s.kept {
			// Destroyed first: the agent would otherwise begin to end itself.
			err = errors.Join(err, destroy(context.Background(), s.live.instance))
			if s.m.cfg.Recorder != nil {
				err = errors.Join(err, s.m.cfg.Recorder.Forget(s.live.id()))
			}
		}
		_ = s.live.client.Close() // its sandbox is gone
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
	return s.live.instance.Handle().Name
}

// Stats reads the sandbox's resources now.
func (s *Sandbox) Stats(ctx context.Context) (client.Stats, error) {
	s.mu.Lock()
	l := s.live
	s.mu.Unlock()
	if l == nil {
		return client.Stats{}, sandbox.Errorf(sandbox.Unavailable, "the sandbox is not there")
	}
	return l.client.Stats(ctx)
}

// checkFiles reports the first file whose path would leave the workspace.
func checkFiles(files []sandbox.File) error {
	for _, f := range files {
		if f.Path == "" || strings.HasPrefix(f.Path, "/") || slices.Contains(strings.Split(f.Path, "/"), "..") || strings.ContainsRune(f.Path, 0) {
			return sandbox.Errorf(sandbox.Invalid, "%q is not a path inside the workspace", f.Path).
				WithHint("name it relative to %s, without '..'", sandbox.WorkspaceDir)
		}
	}
	return nil
}
