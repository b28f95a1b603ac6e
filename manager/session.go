package manager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

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
func (m *Manager) CreateSession(ctx context.Context, opts sandbox.SessionOptions) (sandbox.Session, error) {
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
	if err := checkEnv(opts.Env); err != nil {
		return sandbox.Session{}, err
	}
	if err := opts.Labels.Check(); err != nil {
		return sandbox.Session{}, err
	}
	runtime, err := m.choose(ctx, opts.Runtime)
	if err != nil {
		return sandbox.Session{}, err
	}
	s := sandbox.Session{
		ID: id, Name: sandbox.SessionName(sandbox.CallerFrom(ctx).Owner, opts.Name), Language: opts.Language, Image: opts.Image, Created: m.cfg.Now().UTC(), Idle: opts.Idle, TTL: opts.TTL,
		Limits: opts.Limits.WithDefaults(), Network: m.cfg.Egress.Named(opts.Network.WithDefaults()), Workspace: opts.Workspace, Identity: sandbox.IdentityFor(id),
		Runtime: runtime, OCIRuntime: opts.OCIRuntime, Env: opts.Env, Labels: opts.Labels, Owner: sandbox.CallerFrom(ctx).Owner,
	}
	if opts.Temporary {
		s.Holder = m.cfg.Holder
	}
	if err := m.settleWorkspace(ctx, &s); err != nil {
		return sandbox.Session{}, err
	}
	err = m.record(ctx, sandbox.Transaction{CreateSession: &s, Events: []sandbox.Event{{
		Kind: sandbox.EventSessionCreated, Session: s.Name, Data: data(s.WithoutValues()),
	}}})
	if errors.Is(err, sandbox.Conflict) {
		return s, sandbox.Errorf(sandbox.Conflict, "a session %s exists", opts.Name).WithHint("choose another name, or remove it with: caisson session rm %s", opts.Name)
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
	rt, err := m.runtimeOf(s.Runtime)
	if err != nil {
		return err
	}
	caps, err := m.capabilities(ctx, s.Runtime, rt)
	if err != nil {
		return err
	}
	if err := caps.CheckNetwork(s.Network); err != nil {
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
	return sandbox.Errorf(sandbox.Unsupported, "the %s runtime has no workspace of kind %q with this engine", caps.Runtime, w.Kind).
		WithHint("it has: %s; why, caisson doctor may tell", strings.Join(caps.Workspaces, ", "))
}

// VolumeName names the volume of a session's workspace.
func VolumeName(session sandbox.ID) string { return runtimes.VolumePrefix + string(session) }

// HeldBy says what holds a session's workspace to its size, "" where nobody can
// tell.
func (m *Manager) HeldBy(ctx context.Context, s sandbox.Session) sandbox.HeldBy {
	rt, err := m.runtimeOf(s.Runtime)
	if err != nil {
		return ""
	}
	h, ok := rt.(runtimes.SizeHolder)
	if !ok {
		return ""
	}
	by, err := h.HeldBy(ctx, s.Workspace)
	if err != nil {
		return "" // without an engine a session is shown all the same
	}
	return by
}

// Session returns a session, by its name as it is kept. One that the caller does
// not see is none. Errors: NotFound.
func (m *Manager) Session(ctx context.Context, name string) (sandbox.SessionView, error) {
	if err := m.needStore(); err != nil {
		return sandbox.SessionView{}, err
	}
	v, err := m.cfg.Store.Session(ctx, name)
	if errors.Is(err, sandbox.NotFound) || err == nil && !sandbox.CallerFrom(ctx).Sees(v.Owner) {
		return sandbox.SessionView{}, noSession(ctx, name)
	}
	return v, err
}

// running is [Manager.Session] without the execs that have ended: all that an exec
// needs to know of the others.
func (m *Manager) running(ctx context.Context, name string) (sandbox.SessionView, error) {
	if err := m.needStore(); err != nil {
		return sandbox.SessionView{}, err
	}
	found, err := m.cfg.Store.Sessions(ctx, sandbox.SessionFilter{Name: name, Running: true})
	if err != nil {
		return sandbox.SessionView{}, err
	}
	if name == "" || len(found) == 0 || !sandbox.CallerFrom(ctx).Sees(found[0].Owner) {
		return sandbox.SessionView{}, noSession(ctx, name)
	}
	return found[0], nil
}

func noSession(ctx context.Context, name string) error {
	return sandbox.Errorf(sandbox.NotFound, "no session %s", sandbox.CallerFrom(ctx).Shown(name)).WithHint("see those there are with: caisson session list")
}

// Sessions returns the sessions that a filter selects, by name.
func (m *Manager) Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	if err := m.needStore(); err != nil {
		return nil, err
	}
	all, err := m.cfg.Store.Sessions(ctx, f)
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

// Execs returns the execs that a filter selects, the newest first.
func (m *Manager) Execs(ctx context.Context, f sandbox.ExecFilter) ([]sandbox.ExecRecord, error) {
	if err := m.needStore(); err != nil {
		return nil, err
	}
	return m.cfg.Store.Execs(ctx, f)
}

// RemoveSession destroys a session: its sandboxes, what runs in them, and its
// workspace, unless that is a folder of the host. Execs that run make it a
// Conflict unless force is set.
func (m *Manager) RemoveSession(ctx context.Context, name string, force bool) error {
	return m.removeSession(ctx, name, func(v sandbox.SessionView) error {
		if n := countRunning(v); n > 0 && !force {
			return sandbox.Errorf(sandbox.Conflict, "%d execs run in session %s", n, name).WithHint("end them, or remove it with --force")
		}
		return nil
	})
}

// causeRemoved is why what runs in a session ends that is removed.
const causeRemoved = "its session was removed"

// removeSession removes one unless refused, asked while nobody else holds the session,
// has an error.
func (m *Manager) removeSession(ctx context.Context, name string, refused func(sandbox.SessionView) error) error {
	v, unlock, err := m.lockSession(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := refused(v); err != nil {
		return err
	}
	if countRunning(v) > 0 {
		m.stopAll(ctx, v, causeRemoved)
		if v, err = m.running(ctx, name); err != nil {
			return err
		}
	}
	for _, rec := range v.Sandboxes {
		if err := m.destroyBox(ctx, rec); err != nil {
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
	// Nobody knows it any more: what fails now holds up nothing else.
	last := context.WithoutCancel(ctx)
	err = m.dropVolumes(last, m.nameOf(v.Session), workspacesOf(v.Session)...)
	if errors.Is(err, sandbox.Conflict) && m.removeLeft(last, v) == nil {
		// The engine finishes what a process asked for just before it died.
		err = m.dropVolumes(last, m.nameOf(v.Session), workspacesOf(v.Session)...)
	}
	err = errors.Join(err, filelock.Remove(m.lockPath(layersLock)))
	if m.cfg.Recorder != nil {
		err = errors.Join(err, m.cfg.Recorder.Forget(v.ID))
	}
	if err = errors.Join(err, filelock.Remove(m.lockPath(sessionLock(name)))); err != nil {
		return sandbox.Errorf(sandbox.KindOf(err), "session %s is removed, but not all that it held: %w", name, err).
			WithHint("remove the rest with: caisson gc")
	}
	return nil
}

// removeLeft removes sandboxes of a session that the journal does not know: an
// engine that went away while it made one could not take it back, and that one
// would hold the workspace. So would what a process that died was copying by. The
// caller holds the session's lock, so that nothing of it is in use.
func (m *Manager) removeLeft(ctx context.Context, v sandbox.SessionView) error {
	rt, err := m.runtimeOf(v.Runtime)
	if err != nil {
		return err
	}
	handles, err := rt.List(ctx)
	if err != nil {
		return err
	}
	for _, h := range handles {
		if h.Kind != runtimes.KindSandbox || h.Session != v.Name || !m.leftToUs(h.Holder) {
			continue
		}
		if err := m.remove(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// leftToUs reports whether what a holder made for a session of that name is this
// state's, or a dead process's.
func (m *Manager) leftToUs(holder string) bool {
	if ours, any := m.ofThisState(holder); any {
		return ours
	}
	return holder == m.cfg.Holder || holder != "" && !m.cfg.Alive(holder)
}

// forget drops a session from the state. Another process may be about to start
// something in it: that ends with it, and is written down.
func (m *Manager) forget(ctx context.Context, v sandbox.SessionView) error {
	const tries = 10
	change := sandbox.Transaction{DeleteSession: v.Name, Events: []sandbox.Event{{Kind: sandbox.EventSessionRemoved, Session: v.Name}}}
	for try := 1; ; try++ {
		for _, e := range v.Execs {
			if !e.Ended.IsZero() {
				continue
			}
			exit := sandbox.Exit{Reason: sandbox.ReasonCanceled, Cause: causeRemoved}
			if err := m.closeExec(ctx, e, client.Outcome{Exit: exit, Usage: m.hostWall(e)}); err != nil {
				return err
			}
		}
		err := m.recordLate(ctx, change)
		if !errors.Is(err, sandbox.Conflict) || try == tries {
			return err
		}
		if v, err = m.running(context.WithoutCancel(ctx), v.Name); err != nil {
			return err
		}
	}
}

func countRunning(v sandbox.SessionView) int {
	n := 0
	for _, e := range v.Execs {
		if e.Ended.IsZero() && e.Shell == nil { // a shell is no use of its session but for what is run in it
			n++
		}
	}
	return n
}

// destroyBox ends a session's sandbox.
func (m *Manager) destroyBox(ctx context.Context, rec sandbox.SandboxRecord) error {
	m.drop(rec.ID)
	h, err := handleOf(rec)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), box.EndPatience)
	defer cancel()
	return m.remove(ctx, h)
}

// RenewSession changes when a session's sandboxes end, counted from now. nil
// leaves a time as it is, 0 is never.
func (m *Manager) RenewSession(ctx context.Context, name string, idle, ttl *sandbox.Duration) error {
	v, unlock, err := m.lockSession(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	for _, d := range []*sandbox.Duration{idle, ttl} {
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
	change := sandbox.Transaction{PutSession: &v.Session, Events: []sandbox.Event{{Kind: sandbox.EventSessionChanged, Session: name, Data: data(map[string]int64{
		"idle_ms": time.Duration(v.Idle).Milliseconds(), "ttl_ms": time.Duration(v.TTL).Milliseconds(),
	})}}}
	for _, rec := range v.Sandboxes {
		b, err := m.connect(ctx, v, rec)
		if errors.Is(err, box.ErrEnded) {
			continue // it has ended: its successor gets the new times
		}
		if err != nil {
			return err
		}
		if err := b.Client.Renew(ctx, (*time.Duration)(idle), (*time.Duration)(ttl)); err != nil {
			return err
		}
		if ttl != nil {
			rec.Expires = m.expiry(v.TTL)
			change.PutSandboxes = append(change.PutSandboxes, rec)
		}
	}
	return m.recordLate(ctx, change)
}

// expiry is when a TTL that begins now is over; the zero time is never.
func (m *Manager) expiry(ttl sandbox.Duration) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return m.cfg.Now().UTC().Add(time.Duration(ttl))
}

// hostOwner decides who a session with a host folder runs as: the folder's
// owner, so that files have the right owner on both sides. Root's folders are
// refused: root in the sandbox would be root.
func hostOwner(dir string) (*sandbox.Identity, error) {
	if !filepath.IsAbs(dir) {
		return nil, sandbox.Errorf(sandbox.Invalid, "the host folder %q is not an absolute path", dir).WithHint("name it by its absolute path")
	}
	st, err := os.Stat(dir)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "host folder: %w", err).WithHint("make the folder first")
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || !ok {
		return nil, sandbox.Errorf(sandbox.Invalid, "%s is not a folder", dir).WithHint("name a folder")
	}
	if sys.Uid == 0 {
		return nil, sandbox.Errorf(sandbox.Denied, "%s belongs to root, and nothing in a sandbox runs as root", dir).
			WithHint("give it to another user (chown 1000 %s), or copy files in and out instead", dir)
	}
	runner := sandbox.LastUID // a number of our own range, not the next user of the host
	if int(sys.Uid) == runner {
		runner = sandbox.FirstUID
	}
	return &sandbox.Identity{UID: int(sys.Uid), RunnerUID: runner}, nil
}
