package manager

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// handleOf reads the runtime's handle that a record keeps. A record that was
// written before its sandbox was made has none, but the id tells it.
func handleOf(rec sandbox.SandboxRecord) (runtimes.Handle, error) {
	var h runtimes.Handle
	if err := json.Unmarshal(rec.Handle, &h); err != nil {
		return h, sandbox.Errorf(sandbox.Internal, "read the handle of sandbox %s: %w", rec.ID.Short(), err)
	}
	return h, nil
}

func (m *Manager) cached(id sandbox.ID) *box.Box {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.boxes[id]
	if b == nil {
		return nil
	}
	select {
	case <-b.Client.Done():
		delete(m.boxes, id)
		return nil
	default:
		return b
	}
}

// drop forgets a connection.
func (m *Manager) drop(id sandbox.ID) {
	m.mu.Lock()
	b := m.boxes[id]
	delete(m.boxes, id)
	m.mu.Unlock()
	if b != nil {
		_ = b.Client.Close() // it broke, or is not wanted any more
	}
}

// connect returns this process's connection to a sandbox's agent. Errors:
// Unavailable or NotFound where the sandbox has ended, Conflict where it is
// paused.
func (m *Manager) connect(ctx context.Context, v sandbox.SessionView, rec sandbox.SandboxRecord) (*box.Box, error) {
	if rec.State == sandbox.StatePaused {
		return nil, sandbox.Errorf(sandbox.Conflict, "session %s is paused", rec.Session).WithHint("let it go on with: caisson session resume %s", rec.Session)
	}
	if b := m.cached(rec.ID); b != nil {
		return b, nil
	}
	h, err := handleOf(rec)
	if err != nil {
		return nil, err
	}
	if rec.State == sandbox.StateGone {
		return nil, sandbox.Errorf(sandbox.Unavailable, "sandbox %s: %w", rec.ID.Short(), box.ErrEnded)
	}
	b := &box.Box{ID: rec.ID, Secret: rec.Secret, Session: v.ID, Owner: v.Owner, Labels: v.Labels, Plan: runtimes.Plan{
		Runtime: h.Runtime,
		Spec:    sandbox.Spec{Session: v.Name, Language: rec.Language, Image: sandbox.Image{ID: rec.Image, Volumes: rec.Volumes, Link: rec.Link}, Workspace: v.Workspace, Identity: v.Identity, Limits: v.Limits},
		Walls:   rec.Walls, NotEnforced: rec.NotEnforced,
	}}
	rt, err := m.runtimeOf(h.Runtime)
	if err != nil {
		return nil, err
	}
	if err := m.maker.Reach(ctx, rt, h, b); err != nil {
		return nil, err
	}
	kept, err := m.keepBox(b)
	if kept == b {
		m.judgeAgain(v, b)
	}
	return kept, err
}

// keepBox caches a connection. Where another goroutine was quicker, its is
// used and this one closed.
func (m *Manager) keepBox(b *box.Box) (*box.Box, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		_ = b.Client.Close()
		return nil, sandbox.Errorf(sandbox.Unavailable, "the manager is shutting down")
	}
	if old := m.boxes[b.ID]; old != nil {
		select {
		case <-old.Client.Done():
		default:
			_ = b.Client.Close()
			return old, nil
		}
	}
	m.boxes[b.ID] = b
	return b, nil
}

// boxFor returns a session's sandbox of a language, connected. It is made at
// first use, and anew where the old one has ended; replaced then says so.
func (m *Manager) boxFor(ctx context.Context, v sandbox.SessionView, lang sandbox.Language, who asker) (b *box.Box, replaced bool, err error) {
	if rec := findBox(v, lang.Name); rec != nil && rec.State != sandbox.StateCreating {
		b, err := m.connect(ctx, v, *rec)
		if err == nil || !errors.Is(err, box.ErrEnded) {
			return b, false, err
		}
	}
	// Another process may have done it while we wait.
	v, unlock, err := m.lockSession(ctx, v.Name)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	old := findBox(v, lang.Name)
	if old != nil && old.State != sandbox.StateCreating {
		b, err := m.connect(ctx, v, *old)
		if err == nil || !errors.Is(err, box.ErrEnded) {
			return b, false, err
		}
	}
	if old != nil && old.State != sandbox.StateGone {
		// We hold the lock: one that is still being made has lost its maker.
		if err := m.giveUp(ctx, v, *old, "it had ended"); err != nil {
			return nil, false, err
		}
	}
	b, err = m.makeBox(ctx, v, lang, old, who)
	return b, old != nil && old.State != sandbox.StateCreating, err
}

func findBox(v sandbox.SessionView, language string) *sandbox.SandboxRecord {
	var gone *sandbox.SandboxRecord
	for i := range v.Sandboxes {
		rec := &v.Sandboxes[i]
		if rec.Language == language && rec.State != sandbox.StateGone {
			return rec
		}
		if rec.Language == language {
			gone = rec
		}
	}
	return gone
}

// giveUp destroys a session's sandbox and ends what ran in it.
func (m *Manager) giveUp(ctx context.Context, v sandbox.SessionView, rec sandbox.SandboxRecord, why string) error {
	if err := m.destroyBox(ctx, rec); err != nil {
		return err
	}
	for _, e := range v.Execs {
		if e.Sandbox != rec.ID || !e.Ended.IsZero() {
			continue
		}
		exit := sandbox.Exit{Reason: sandbox.ReasonInfra, Cause: "its sandbox was given up: " + why}
		if err := m.closeExec(ctx, e, client.Outcome{Exit: exit, Usage: m.hostWall(e)}); err != nil {
			return err
		}
	}
	change := sandbox.Transaction{DeleteSandboxes: []sandbox.ID{rec.ID}, Events: []sandbox.Event{{
		Kind: sandbox.EventSandboxRemoved, Session: v.Name, Sandbox: rec.ID, Data: data(map[string]string{"why": why}),
	}}}
	if rec.State == sandbox.StateReady || rec.State == sandbox.StatePaused {
		// What stood there stays known, so that the next use says that it was
		// replaced.
		for _, to := range []sandbox.State{sandbox.StateStopping, sandbox.StateGone} {
			var err error
			if rec.State, err = rec.State.Next(to); err != nil {
				return err
			}
		}
		change.DeleteSandboxes, change.PutSandboxes = nil, []sandbox.SandboxRecord{rec}
	}
	return m.recordLate(ctx, change)
}

// makeBox makes a sandbox of a session. It is written down before it is made,
// so that no death in between leaves what nobody knows.
// The one that it replaces is forgotten once it stands.
func (m *Manager) makeBox(ctx context.Context, v sandbox.SessionView, lang sandbox.Language, old *sandbox.SandboxRecord, who asker) (*box.Box, error) {
	rt, err := m.runtimeOf(v.Runtime)
	if err != nil {
		return nil, err
	}
	image := ""
	if lang.Name == v.Language {
		image = v.Image
	}
	var opening sync.WaitGroup
	defer opening.Wait()
	if r := m.cfg.Recorder; r != nil {
		opening.Go(func() { _ = r.Open(ctx, v.ID) }) // the first record says what is wrong with it
	}
	b, err := m.maker.New(ctx, box.Order{
		Runtime: rt, Language: lang, Image: image, Session: v.ID, Owner: v.Owner, Labels: v.Labels, Idle: v.Idle, TTL: v.TTL, Book: &sessionBook{m: m, v: v, lang: lang, old: old}, Judge: m.judgePlan(who),
		Take: m.readyFor(rt, v.Session, image),
		Spec: sandbox.Spec{
			Language: lang.Name, Session: v.Name, Holder: m.sessionHolder(), Limits: v.Limits, Network: v.Network,
			Workspace: v.Workspace, Identity: v.Identity, OCIRuntime: v.OCIRuntime,
		},
	})
	if err != nil {
		return nil, err
	}
	return m.keepBox(b)
}

// sessionBook writes down what becomes of a session's sandbox while it is made.
type sessionBook struct {
	m    *Manager
	v    sandbox.SessionView
	lang sandbox.Language
	old  *sandbox.SandboxRecord // that it replaces; nil without one
	rec  sandbox.SandboxRecord  // of the one that is made
}

// Creating implements [box.Book].
func (k *sessionBook) Creating(ctx context.Context, b *box.Box) error {
	spec := b.Plan.Spec
	k.rec = sandbox.SandboxRecord{
		ID: b.ID, Session: k.v.Name, Language: k.lang.Name, Runtime: b.Plan.Runtime, NotEnforced: b.Plan.NotEnforced, State: sandbox.StateCreating, Secret: b.Secret, Image: spec.Image.ID,
		Volumes: spec.Image.Volumes, Link: spec.Image.Link, Walls: b.Plan.Walls, Holder: k.m.cfg.Holder, Created: k.m.cfg.Now().UTC(), Expires: k.m.expiry(k.v.TTL),
		Handle: data(runtimes.Handle{Version: runtimes.HandleVersion, Runtime: b.Plan.Runtime, Kind: runtimes.KindSandbox, ID: b.ID}),
	}
	return k.m.record(ctx, sandbox.Transaction{PutSandboxes: []sandbox.SandboxRecord{k.rec}, Events: []sandbox.Event{{
		Kind: sandbox.EventSandboxCreating, Session: k.v.Name, Sandbox: b.ID,
		Data: data(map[string]any{"runtime": b.Plan.Runtime, "language": k.lang.Name, "image": spec.Image.ID, "limits": spec.Limits, "network": spec.Network}),
	}}})
}

// Ready implements [box.Book].
func (k *sessionBook) Ready(ctx context.Context, b *box.Box) (err error) {
	if k.m.cfg.Recorder != nil {
		// What is there before anything runs: the workspace as it was found.
		if _, err := k.m.observe(ctx, b, sandbox.RecordOptions{Session: k.v.Name}); err != nil {
			return err
		}
	}
	k.rec.Handle = data(b.Instance.Handle())
	if k.rec.State, err = k.rec.State.Next(sandbox.StateReady); err != nil {
		return err
	}
	change := sandbox.Transaction{PutSandboxes: []sandbox.SandboxRecord{k.rec}, Events: []sandbox.Event{{
		Kind: sandbox.EventSandboxReady, Session: k.v.Name, Sandbox: b.ID,
	}}}
	if k.old != nil {
		change.DeleteSandboxes = []sandbox.ID{k.old.ID}
	}
	return k.m.record(ctx, change)
}

// Failed implements [box.Book].
func (k *sessionBook) Failed(ctx context.Context, b *box.Box, why error) error {
	return k.m.recordLate(ctx, sandbox.Transaction{DeleteSandboxes: []sandbox.ID{b.ID}, Events: []sandbox.Event{{
		Kind: sandbox.EventSandboxFailed, Session: k.v.Name, Sandbox: b.ID, Data: data(map[string]string{"error": why.Error()}),
	}}})
}
