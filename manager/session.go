package manager

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// SessionOptions ask for a session. The zero value of a field is its default.
type SessionOptions struct {
	Name      string // "" makes one up
	Language  string // of an exec that names none
	Image     string // overrides the language's
	Idle, TTL time.Duration
	Limits    sandbox.Limits
	Network   sandbox.Network
	// Workspace is a volume of the engine's where its kind is unset: it has to
	// outlive its sandboxes.
	Workspace sandbox.Workspace
	// OCIRuntime names the engine's runtime. "" is its default.
	OCIRuntime string
}

// DefaultIdle is how long a session's sandbox waits for a use before it ends.
const DefaultIdle = 30 * time.Minute

var sessionName = lazyregexp.New(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

// needStore is the error of a session call on a manager that remembers nothing.
func (m *Manager) needStore() error {
	if m.cfg.Store == nil {
		return sandbox.Errorf(sandbox.Unsupported, "this manager keeps no sessions: it has no store")
	}
	return nil
}

// CreateSession remembers a session. Its sandboxes are made at first use.
// Errors: Invalid, Conflict where the name is taken, Unsupported.
func (m *Manager) CreateSession(ctx context.Context, opts SessionOptions) (sandbox.Session, error) {
	if err := m.needStore(); err != nil {
		return sandbox.Session{}, err
	}
	id := sandbox.NewID()
	if opts.Name == "" {
		opts.Name = "s-" + string(id[:8])
	}
	if !sessionName().MatchString(opts.Name) {
		return sandbox.Session{}, sandbox.Errorf(sandbox.Invalid, "%q is not a session's name", opts.Name).
			WithHint("use lower case letters, digits, and . _ - behind the first, at most 63")
	}
	if opts.Language == "" && opts.Image == "" {
		opts.Language = "shell"
	}
	if opts.Language != "" {
		lang, err := m.cfg.Images.Language(opts.Language)
		if err != nil {
			return sandbox.Session{}, err
		}
		opts.Language = lang.Name
	}
	if opts.Idle < 0 || opts.TTL < 0 {
		return sandbox.Session{}, sandbox.Errorf(sandbox.Invalid, "a time that is negative").WithHint("--idle and --ttl take a time such as 30m; 0 is never")
	}
	if err := opts.Limits.WithDefaults().Check(); err != nil {
		return sandbox.Session{}, err
	}
	s := sandbox.Session{
		ID: id, Name: opts.Name, Language: opts.Language, Image: opts.Image, Created: m.cfg.Now().UTC(), Idle: opts.Idle, TTL: opts.TTL,
		Limits: opts.Limits.WithDefaults(), Network: opts.Network.Or(), Workspace: opts.Workspace, Identity: sandbox.IdentityFor(id),
		OCIRuntime: opts.OCIRuntime,
	}
	if err := m.settleWorkspace(ctx, &s); err != nil {
		return sandbox.Session{}, err
	}
	err := m.record(ctx, sandbox.Change{CreateSession: &s, Events: []sandbox.Event{{
		Kind: sandbox.EventSessionCreated, Session: s.Name, Data: data(s),
	}}})
	if errors.Is(err, sandbox.Conflict) {
		return s, sandbox.Errorf(sandbox.Conflict, "a session %s exists", s.Name).WithHint("choose another name, or remove it with: caisson session rm %s", s.Name)
	}
	return s, err
}

// settleWorkspace decides what a session's workspace is made of, and refuses
// what the runtime cannot make.
func (m *Manager) settleWorkspace(ctx context.Context, s *sandbox.Session) error {
	w := &s.Workspace
	switch w.Kind {
	case "":
		w.Kind = sandbox.WorkspaceVolume
	case sandbox.WorkspaceHost:
		who, err := hostOwner(w.Source)
		if err != nil {
			return err
		}
		if who != nil {
			s.Identity = *who
		}
	case sandbox.WorkspaceOverlay:
		return sandbox.Errorf(sandbox.Unsupported, "an overlay is made by a fork").WithHint("see: caisson session fork --help")
	default: // as it was asked for
	}
	w.Layers = nil
	if w.Kind == sandbox.WorkspaceVolume && w.Source == "" {
		w.Source = VolumeName(s.ID)
	}
	if w.Size == 0 {
		w.Size = s.Limits.Workspace
	}
	caps, err := m.cfg.Runtime.Capabilities(ctx)
	if err != nil {
		return err
	}
	if err := caps.CheckOCIRuntime(s.OCIRuntime); err != nil {
		return err
	}
	for _, kind := range caps.Workspaces {
		if kind == string(w.Kind) {
			return nil
		}
	}
	return sandbox.Errorf(sandbox.Unsupported, "the %s runtime has no workspace of kind %q", caps.Runtime, w.Kind).
		WithHint("it has: %v", caps.Workspaces)
}

// VolumeName names the volume of a session's workspace.
func VolumeName(session sandbox.ID) string { return runtimes.VolumePrefix + string(session) }

// Session returns a session. Errors: NotFound.
func (m *Manager) Session(ctx context.Context, name string) (sandbox.SessionView, error) {
	if err := m.needStore(); err != nil {
		return sandbox.SessionView{}, err
	}
	v, err := m.cfg.Store.Session(ctx, name)
	if errors.Is(err, sandbox.NotFound) {
		return v, sandbox.Errorf(sandbox.NotFound, "no session %s", name).WithHint("see those there are with: caisson session list")
	}
	return v, err
}

// Sessions returns every session.
func (m *Manager) Sessions(ctx context.Context) ([]sandbox.SessionView, error) {
	if err := m.needStore(); err != nil {
		return nil, err
	}
	all, err := m.cfg.Store.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	named := all[:0:0]
	for _, v := range all {
		if v.Name != "" {
			named = append(named, v)
		}
	}
	return named, nil
}

// RemoveSession destroys a session: its sandboxes, what runs in them, and its
// workspace, unless that is a folder of the host. Execs that run make it a
// Conflict unless force is set.
func (m *Manager) RemoveSession(ctx context.Context, name string, force bool) error {
	unlock, err := m.lock(ctx, "session-"+name)
	if err != nil {
		return err
	}
	defer unlock()
	v, err := m.Session(ctx, name)
	if err != nil {
		return err
	}
	if n := running(v); n > 0 && !force {
		return sandbox.Errorf(sandbox.Conflict, "%d execs run in session %s", n, name).WithHint("end them, or remove it with --force")
	}
	for _, b := range v.Sandboxes {
		if err := m.destroyBox(ctx, b); err != nil {
			return err
		}
	}
	if err := m.removeLeft(ctx, v); err != nil {
		return err
	}
	if err := m.forget(ctx, v); err != nil {
		return err
	}
	done, err := m.lock(ctx, layersLock)
	if err != nil {
		return err
	}
	defer done()
	if err := m.dropVolumes(context.WithoutCancel(ctx), workspacesOf(v.Session)...); err != nil {
		return err
	}
	if err := filelock.Remove(m.lockPath(layersLock)); err != nil {
		return err
	}
	if m.cfg.Recorder != nil {
		if err := m.cfg.Recorder.Forget(v.ID); err != nil {
			return err
		}
	}
	return filelock.Remove(m.lockPath("session-" + name))
}

// removeLeft removes sandboxes of a session that the journal does not know: an
// engine that went away while it made one could not take it back, and that one
// would hold the workspace.
func (m *Manager) removeLeft(ctx context.Context, v sandbox.SessionView) error {
	handles, err := m.cfg.Runtime.List(ctx)
	if err != nil {
		return err
	}
	for _, h := range handles {
		if ours, _ := m.ofThisState(h.Owner); !ours || h.Kind != runtimes.KindSandbox || h.Session != v.Name {
			continue
		}
		if err := m.remove(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// forget drops a session from the state. Another process may be about to start
// something in it: that ends with it, and is written down.
func (m *Manager) forget(ctx context.Context, v sandbox.SessionView) error {
	const tries = 10
	change := sandbox.Change{DeleteSession: v.Name, Events: []sandbox.Event{{Kind: sandbox.EventSessionRemoved, Session: v.Name}}}
	for try := 1; ; try++ {
		for _, e := range v.Execs {
			if !e.Ended.IsZero() {
				continue
			}
			exit := sandbox.Exit{Code: 137, Reason: sandbox.ReasonCanceled, Cause: "its session was removed"}
			if err := m.closeExec(ctx, e, client.Outcome{Exit: exit}); err != nil {
				return err
			}
		}
		err := m.recordLate(ctx, change)
		if !errors.Is(err, sandbox.Conflict) || try == tries {
			return err
		}
		if v, err = m.Session(context.WithoutCancel(ctx), v.Name); err != nil {
			return err
		}
	}
}

// runtimeName asks once what the runtime is called.
func (m *Manager) runtimeName(ctx context.Context) string {
	caps, err := m.cfg.Runtime.Capabilities(ctx)
	if err != nil {
		return ""
	}
	return caps.Runtime
}

func running(v sandbox.SessionView) int {
	n := 0
	for _, e := range v.Execs {
		if e.Ended.IsZero() {
			n++
		}
	}
	return n
}

// destroyBox ends a session's sandbox.
func (m *Manager) destroyBox(ctx context.Context, b sandbox.SandboxRecord) error {
	m.drop(b.ID)
	h, err := handleOf(b)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyPatience)
	defer cancel()
	return m.remove(ctx, h)
}

// PauseSession freezes a session's sandboxes. Errors: Conflict where one is
// paused or none is there, Unsupported by the runtime.
func (m *Manager) PauseSession(ctx context.Context, name string) error {
	return m.eachBox(ctx, name, sandbox.StateReady, sandbox.StatePaused, sandbox.EventSandboxPaused,
		func(p runtimes.Pauser) error { return p.Pause(ctx) })
}

// ResumeSession lets a paused session's sandboxes go on.
func (m *Manager) ResumeSession(ctx context.Context, name string) error {
	return m.eachBox(ctx, name, sandbox.StatePaused, sandbox.StateReady, sandbox.EventSandboxResumed,
		func(p runtimes.Pauser) error { return p.Resume(ctx) })
}

// eachBox moves all sandboxes of a session from one state to another.
func (m *Manager) eachBox(ctx context.Context, name string, from, to sandbox.State, kind string, do func(runtimes.Pauser) error) error {
	unlock, err := m.lock(ctx, "session-"+name)
	if err != nil {
		return err
	}
	defer unlock()
	v, err := m.Session(ctx, name)
	if err != nil {
		return err
	}
	done := 0
	for _, b := range v.Sandboxes {
		if b.State != from {
			continue
		}
		h, err := handleOf(b)
		if err != nil {
			return err
		}
		inst, err := m.cfg.Runtime.Attach(ctx, h)
		if err != nil {
			return err
		}
		p, ok := inst.(runtimes.Pauser)
		if !ok {
			return sandbox.Errorf(sandbox.Unsupported, "this runtime cannot pause a sandbox")
		}
		if err := do(p); err != nil {
			return err
		}
		if b.State, err = b.State.Next(to); err != nil {
			return err
		}
		change := sandbox.Change{PutSandboxes: []sandbox.SandboxRecord{b}, Events: []sandbox.Event{{Kind: kind, Session: name, Sandbox: b.ID}}}
		if err := m.recordLate(ctx, change); err != nil {
			return err
		}
		done++
	}
	if done == 0 {
		return sandbox.Errorf(sandbox.Conflict, "session %s has no sandbox that is %s", name, from).
			WithHint("see its state with: caisson session show %s", name)
	}
	return nil
}

// RenewSession changes when a session's sandboxes end, counted from now. nil
// leaves a time as it is, 0 is never.
func (m *Manager) RenewSession(ctx context.Context, name string, idle, ttl *time.Duration) error {
	unlock, err := m.lock(ctx, "session-"+name)
	if err != nil {
		return err
	}
	defer unlock()
	v, err := m.Session(ctx, name)
	if err != nil {
		return err
	}
	for _, d := range []*time.Duration{idle, ttl} {
		if d != nil && *d < 0 {
			return sandbox.Errorf(sandbox.Invalid, "a time that is negative").WithHint("--idle and --ttl take a time such as 30m; 0 is never")
		}
	}
	if idle != nil {
		v.Idle = *idle
	}
	if ttl != nil {
		v.TTL = *ttl
	}
	change := sandbox.Change{PutSession: &v.Session, Events: []sandbox.Event{{Kind: sandbox.EventSessionChanged, Session: name, Data: data(map[string]int64{
		"idle_ms": v.Idle.Milliseconds(), "ttl_ms": v.TTL.Milliseconds(),
	})}}}
	for _, b := range v.Sandboxes {
		l, err := m.connect(ctx, v, b)
		if ended(err) {
			continue // it has ended: its successor gets the new times
		}
		if err != nil {
			return err
		}
		if err := l.client.Renew(ctx, idle, ttl); err != nil {
			return err
		}
		if ttl != nil {
			b.Expires = m.expiry(v.TTL)
			change.PutSandboxes = append(change.PutSandboxes, b)
		}
	}
	return m.recordLate(ctx, change)
}

// expiry is when a TTL that begins now is over; the zero time is never.
func (m *Manager) expiry(ttl time.Duration) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return m.cfg.Now().UTC().Add(ttl)
}
