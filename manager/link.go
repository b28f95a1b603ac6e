package manager

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// link is this process's connection to a sandbox of a session. Every process
// that uses the session has one of its own.
type link struct {
	*live
	record sandbox.SandboxRecord
}

// handleOf reads the runtime's handle that a record keeps. A record that was
// written before its sandbox was made has none, but the id tells it.
func handleOf(b sandbox.SandboxRecord) (runtimes.Handle, error) {
	var h runtimes.Handle
	if err := json.Unmarshal(b.Handle, &h); err != nil {
		return h, sandbox.Errorf(sandbox.Internal, "read the handle of sandbox %s: %w", b.ID.Short(), err)
	}
	return h, nil
}

func (m *Manager) cached(id sandbox.ID) *link {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[id]
	if l == nil {
		return nil
	}
	select {
	case <-l.client.Done():
		delete(m.links, id)
		return nil
	default:
		return l
	}
}

// drop forgets a connection.
func (m *Manager) drop(id sandbox.ID) {
	m.mu.Lock()
	l := m.links[id]
	delete(m.links, id)
	m.mu.Unlock()
	if l != nil {
		_ = l.client.Close() // it broke, or is not wanted any more
	}
}

// connect returns this process's connection to a sandbox's agent. Errors:
// Unavailable or NotFound where the sandbox has ended, Conflict where it is
// paused.
func (m *Manager) connect(ctx context.Context, v sandbox.SessionView, b sandbox.SandboxRecord) (*link, error) {
	if b.State == sandbox.StatePaused {
		return nil, sandbox.Errorf(sandbox.Conflict, "session %s is paused", b.Session).WithHint("let it go on with: caisson session resume %s", b.Session)
	}
	if l := m.cached(b.ID); l != nil {
		return l, nil
	}
	h, err := handleOf(b)
	if err != nil {
		return nil, err
	}
	if b.State == sandbox.StateGone {
		return nil, sandbox.Errorf(sandbox.Unavailable, "sandbox %s: %w", b.ID.Short(), errEnded)
	}
	inst, err := m.cfg.Runtime.Attach(ctx, h)
	if errors.Is(err, sandbox.NotFound) {
		return nil, sandbox.Errorf(sandbox.NotFound, "%w: %w", errEnded, err)
	}
	if err != nil {
		return nil, err
	}
	c, err := greetAgain(ctx, inst, b)
	if errors.Is(err, sandbox.Unavailable) {
		return nil, whether(ctx, inst, err)
	}
	if err != nil {
		return nil, err
	}
	plan := runtimes.Plan{Spec: sandbox.Spec{Image: sandbox.Image{ID: b.Image}, Identity: v.Identity, Limits: v.Limits}}
	return m.keepLink(&link{live: &live{instance: inst, client: c, plan: plan, session: v.ID, shared: len(v.Sandboxes) > 1}, record: b})
}

// keepLink caches a connection. Where another goroutine was quicker, its is
// used and this one closed.
func (m *Manager) keepLink(l *link) (*link, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		_ = l.client.Close()
		return nil, sandbox.Errorf(sandbox.Unavailable, "the manager is shutting down")
	}
	if old := m.links[l.record.ID]; old != nil {
		select {
		case <-old.client.Done():
		default:
			_ = l.client.Close()
			return old, nil
		}
	}
	m.links[l.record.ID] = l
	return l, nil
}

// boxFor returns a session's sandbox of a language, connected. It is made at
// first use, and anew where the old one has ended; replaced then says so.
func (m *Manager) boxFor(ctx context.Context, v sandbox.SessionView, lang sandbox.Language, who asker) (l *link, replaced bool, err error) {
	if b := findBox(v, lang.Name); b != nil && b.State != sandbox.StateCreating {
		l, err := m.connect(ctx, v, *b)
		if err == nil || !ended(err) {
			return l, false, err
		}
	}
	unlock, err := m.lock(ctx, "session-"+v.Name)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	// Another process may have done it while we waited.
	v, err = m.Session(ctx, v.Name)
	if err != nil {
		return nil, false, err
	}
	old := findBox(v, lang.Name)
	if old != nil && old.State != sandbox.StateCreating {
		l, err := m.connect(ctx, v, *old)
		if err == nil || !ended(err) {
			return l, false, err
		}
	}
	if old != nil && old.State != sandbox.StateGone {
		// We hold the lock: one that is still being made has lost its maker.
		if err := m.giveUp(ctx, v, *old, "it had ended"); err != nil {
			return nil, false, err
		}
	}
	l, err = m.makeBox(ctx, v, lang, old, who)
	return l, old != nil && old.State != sandbox.StateCreating, err
}

// asker is whom a sandbox that has to be made is asked about with.
type asker struct {
	approve sandbox.ApproveMode
	ask     sandbox.Asker
}

// errEnded is in the error of a connection to what is not there any more. An
// agent that does not answer, or an engine that does not, says no such thing.
var errEnded = errors.New("the sandbox has ended")

func ended(err error) bool { return errors.Is(err, errEnded) }

// greetAgain speaks to an agent that is ours already.
func greetAgain(ctx context.Context, inst runtimes.Instance, b sandbox.SandboxRecord) (*client.Client, error) {
	conn, err := inst.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return client.New(ctx, conn, client.Config{Secret: b.Secret, Lease: client.Lease{ID: b.ID, Keep: true}})
}

// whether asks the runtime if a sandbox whose agent cannot be reached has ended.
// What still runs is nobody's to give up.
func whether(ctx context.Context, inst runtimes.Instance, unreached error) error {
	ctx, cancel := context.WithTimeout(ctx, explainPatience)
	defer cancel()
	exit, err := inst.Wait(ctx)
	switch {
	case err == nil:
		return sandbox.Errorf(sandbox.Unavailable, "%w: %s", errEnded, exit.Cause)
	case ctx.Err() != nil:
		return sandbox.Errorf(sandbox.Unavailable, "its agent does not answer: %w", unreached).
			WithHint("try again; if it stays so, end its sandbox with docker rm -f, and the next use makes a new one")
	}
	return errors.Join(err, unreached)
}

func findBox(v sandbox.SessionView, language string) *sandbox.SandboxRecord {
	var gone *sandbox.SandboxRecord
	for i := range v.Sandboxes {
		b := &v.Sandboxes[i]
		if b.Language == language && b.State != sandbox.StateGone {
			return b
		}
		if b.Language == language {
			gone = b
		}
	}
	return gone
}

// giveUp destroys a session's sandbox and ends what ran in it.
func (m *Manager) giveUp(ctx context.Context, v sandbox.SessionView, b sandbox.SandboxRecord, why string) error {
	if err := m.destroyBox(ctx, b); err != nil {
		return err
	}
	for _, e := range v.Execs {
		if e.Sandbox != b.ID || !e.Ended.IsZero() {
			continue
		}
		exit := sandbox.Exit{Code: 137, Reason: sandbox.ReasonInfra, Cause: "its sandbox was given up: " + why}
		if err := m.closeExec(ctx, e, client.Outcome{Exit: exit}); err != nil {
			return err
		}
	}
	change := sandbox.Change{DeleteSandboxes: []sandbox.ID{b.ID}, Events: []sandbox.Event{{
		Kind: sandbox.EventSandboxRemoved, Session: v.Name, Sandbox: b.ID, Data: data(map[string]string{"why": why}),
	}}}
	if b.State == sandbox.StateReady || b.State == sandbox.StatePaused {
		// What stood there stays known, so that the next use says that it was
		// replaced.
		for _, to := range []sandbox.State{sandbox.StateStopping, sandbox.StateGone} {
			var err error
			if b.State, err = b.State.Next(to); err != nil {
				return err
			}
		}
		change.DeleteSandboxes, change.PutSandboxes = nil, []sandbox.SandboxRecord{b}
	}
	return m.recordLate(ctx, change)
}

// makeBox makes a sandbox of a session. It is written down before it is made,
// so that no death in between leaves what nobody knows.
// The one that it replaces is forgotten once it stands.
func (m *Manager) makeBox(ctx context.Context, v sandbox.SessionView, lang sandbox.Language, old *sandbox.SandboxRecord, who asker) (*link, error) {
	ref := lang.Image
	if v.Image != "" && lang.Name == v.Language {
		ref = v.Image
	}
	image, err := m.cfg.Images.Ensure(ctx, ref)
	if err != nil {
		return nil, err
	}
	id := sandbox.NewID()
	spec := sandbox.Spec{
		Language: lang.Name, Image: image, Session: v.Name, Owner: m.sessionOwner(), Limits: v.Limits, Network: v.Network,
		Workspace: v.Workspace, Identity: v.Identity, OCIRuntime: v.OCIRuntime,
	}
	plan, err := m.cfg.Runtime.Plan(ctx, spec)
	if err != nil {
		return nil, err
	}
	if _, _, err := m.judge(ctx, Question{Plan: &PlanQuestion{Plan: &plan, Approve: who.approve, Ask: who.ask}}); err != nil {
		return nil, err
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // crypto/rand.Read never fails: it ends the process instead
	b := sandbox.SandboxRecord{
		ID: id, Session: v.Name, Language: lang.Name, State: sandbox.StateCreating, Secret: secret, Image: image.ID, Owner: m.cfg.Owner,
		Created: m.cfg.Now().UTC(), Expires: m.expiry(v.TTL),
		Handle: data(runtimes.Handle{Version: runtimes.HandleVersion, Runtime: plan.Runtime, Kind: runtimes.KindSandbox, ID: id}),
	}
	if err := m.record(ctx, sandbox.Change{PutSandboxes: []sandbox.SandboxRecord{b}, Events: []sandbox.Event{{
		Kind: sandbox.EventSandboxCreating, Session: v.Name, Sandbox: id,
		Data: data(map[string]any{"language": lang.Name, "image": image.ID, "limits": plan.Spec.Limits, "network": plan.Spec.Network}),
	}}}); err != nil {
		return nil, err
	}
	l, err := m.createBox(ctx, v, b, plan, old)
	if err != nil {
		undo := m.recordLate(ctx, sandbox.Change{DeleteSandboxes: []sandbox.ID{id}, Events: []sandbox.Event{{
			Kind: sandbox.EventSandboxFailed, Session: v.Name, Sandbox: id, Data: data(map[string]string{"error": err.Error()}),
		}}})
		return nil, errors.Join(err, undo)
	}
	return m.keepLink(l)
}

func (m *Manager) createBox(ctx context.Context, v sandbox.SessionView, b sandbox.SandboxRecord, plan runtimes.Plan, old *sandbox.SandboxRecord) (_ *link, err error) {
	inst, _, err := m.createInstance(ctx, b.ID, plan)
	if err != nil {
		return nil, err
	}
	l := &link{live: &live{instance: inst, plan: plan, session: v.ID, shared: len(v.Sandboxes) > 0}}
	defer func() {
		if err != nil {
			if l.client != nil {
				_ = l.client.Close()
			}
			err = errors.Join(err, destroy(ctx, inst))
		}
	}()
	conn, err := inst.Dial(ctx)
	if err != nil {
		return nil, err
	}
	l.client, err = client.New(ctx, conn, client.Config{
		Secret: b.Secret, Lease: client.Lease{ID: b.ID, Keep: true},
		Claim: &client.Claim{Identity: plan.Spec.Identity, Env: baseEnv(plan.Spec.Image.Env), Idle: v.Idle, TTL: v.TTL},
	})
	if err != nil {
		return nil, err
	}
	if m.cfg.Recorder != nil {
		// What is there before anything runs: the workspace as it was found.
		if _, err := m.observe(ctx, l.live, sandbox.RecordOptions{Session: v.Name}); err != nil {
			return nil, err
		}
	}
	b.Handle = data(inst.Handle())
	if b.State, err = b.State.Next(sandbox.StateReady); err != nil {
		return nil, err
	}
	l.record = b
	change := sandbox.Change{PutSandboxes: []sandbox.SandboxRecord{b}, Events: []sandbox.Event{{
		Kind: sandbox.EventSandboxReady, Session: v.Name, Sandbox: b.ID,
	}}}
	if old != nil {
		change.DeleteSandboxes = []sandbox.ID{old.ID}
	}
	return l, m.record(ctx, change)
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
