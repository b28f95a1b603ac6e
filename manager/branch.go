package manager

import (
	"context"
	"errors"
	"strings"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Copies of workspaces. A session's sandboxes end before its workspace is
// copied: what runs in the background with them; while an exec runs, it is
// refused. So a copy is what stood on the disk at one moment, and the next exec
// of the session gets a new sandbox, which it is told.

// Snapshot keeps a session's workspace as it is. name may be "". Errors:
// Conflict while execs run and where the name is taken, Unsupported for a
// workspace that cannot be copied.
func (m *Manager) Snapshot(ctx context.Context, session, name string) (sandbox.Snapshot, error) {
	var snap sandbox.Snapshot
	if name != "" && !sessionName().MatchString(name) {
		return snap, sandbox.Errorf(sandbox.Invalid, "%q is not a snapshot's name", name).
			WithHint("use lower case letters, digits, and . _ - behind the first, at most 63")
	}
	err := m.atRest(ctx, session, func(v sandbox.SessionView) error {
		if _, err := findSnapshot(v.Session, name); err == nil && name != "" {
			return sandbox.Errorf(sandbox.Conflict, "session %s has a snapshot %s", session, name).WithHint("choose another name")
		}
		snap = sandbox.Snapshot{ID: sandbox.NewID(), Name: name, Created: m.cfg.Now().UTC()}
		var err error
		if v.Workspace, snap.Workspace, snap.Copied, err = m.branch(ctx, v.Session, v.Workspace, snap.ID, false); err != nil {
			return err
		}
		v.Snapshots = append(v.Snapshots[:len(v.Snapshots):len(v.Snapshots)], snap)
		return m.recordLate(ctx, sandbox.Transaction{PutSession: &v.Session, Events: []sandbox.Event{{
			Kind: sandbox.EventSessionSnapshot, Session: session, Data: data(snap),
		}}})
	})
	return snap, err
}

// Restore makes a session's workspace what a snapshot kept. What it held is gone
// unless another snapshot has it; the snapshot stays. Errors: those of
// [Manager.Snapshot], and NotFound.
func (m *Manager) Restore(ctx context.Context, session, snapshot string) (sandbox.Snapshot, error) {
	var snap sandbox.Snapshot
	err := m.atRest(ctx, session, func(v sandbox.SessionView) (err error) {
		at, err := findSnapshot(v.Session, snapshot)
		if err != nil {
			return err
		}
		old := v.Workspace
		snaps := append([]sandbox.Snapshot(nil), v.Snapshots...)
		if snaps[at].Workspace, v.Workspace, snap.Copied, err = m.branch(ctx, v.Session, snaps[at].Workspace, sandbox.NewID(), false); err != nil {
			return err
		}
		copied := snap.Copied
		snap, v.Snapshots = snaps[at], snaps
		snap.Copied = copied
		if err := m.recordLate(ctx, sandbox.Transaction{PutSession: &v.Session, Events: []sandbox.Event{{
			Kind: sandbox.EventSessionRestored, Session: session, Data: data(snap),
		}}}); err != nil {
			return err
		}
		return m.dropVolumes(ctx, m.nameOf(v.Session), old)
	})
	return snap, err
}

// RemoveSnapshot forgets a snapshot. What nothing else lies on is removed.
func (m *Manager) RemoveSnapshot(ctx context.Context, session, snapshot string) error {
	return m.withLayers(ctx, session, func(v sandbox.SessionView) error {
		at, err := findSnapshot(v.Session, snapshot)
		if err != nil {
			return err
		}
		gone := v.Snapshots[at]
		v.Snapshots = append(append([]sandbox.Snapshot(nil), v.Snapshots[:at]...), v.Snapshots[at+1:]...)
		if err := m.recordLate(ctx, sandbox.Transaction{PutSession: &v.Session, Events: []sandbox.Event{{
			Kind: sandbox.EventSessionChanged, Session: session, Data: data(map[string]any{"removed_snapshot": gone.ID}),
		}}}); err != nil {
			return err
		}
		return m.dropVolumes(ctx, m.nameOf(v.Session), gone.Workspace)
	})
}

// layersLock is held while it is decided which layers are needed. It is taken
// after a session's own.
const layersLock = "layers"

func (m *Manager) withLayers(ctx context.Context, session string, do func(sandbox.SessionView) error) error {
	v, unlock, err := m.lockSession(ctx, session)
	if err != nil {
		return err
	}
	defer unlock()
	done, err := m.lock(ctx, layersLock)
	if err != nil {
		return err
	}
	defer done()
	return do(v)
}

// atRest ends a session's sandboxes and calls do while none can be made.
func (m *Manager) atRest(ctx context.Context, session string, do func(sandbox.SessionView) error) error {
	return m.withLayers(ctx, session, func(v sandbox.SessionView) error {
		if n := countRunning(v); n > 0 {
			return sandbox.Errorf(sandbox.Conflict, "%d execs run in session %s", n, session).
				WithHint("wait for them, or end them with: caisson kill %s EXEC", session)
		}
		if _, err := m.canBranch(v.Session); err != nil {
			return err
		}
		if err := m.endBoxes(ctx, v, "its workspace is copied"); err != nil {
			return err
		}
		v, err := m.running(ctx, session)
		if err != nil {
			return err
		}
		return do(v)
	})
}

// endBoxes ends all sandboxes of a session, whose lock is held.
func (m *Manager) endBoxes(ctx context.Context, v sandbox.SessionView, why string) error {
	m.observeBoxes(ctx, v)
	for _, rec := range v.Sandboxes {
		if rec.State == sandbox.StateGone {
			continue
		}
		if err := m.giveUp(ctx, v, rec, why); err != nil {
			return err
		}
	}
	return nil
}

// observeBoxes records what a session's sandboxes have touched: it is their own doing,
// and not a difference that a successor finds. One that does not answer cannot tell.
func (m *Manager) observeBoxes(ctx context.Context, v sandbox.SessionView) {
	for _, rec := range v.Sandboxes {
		if rec.State != sandbox.StateReady || m.cfg.Recorder == nil {
			continue
		}
		b, err := m.connect(ctx, v, rec)
		if err != nil {
			continue
		}
		if _, err := m.observe(ctx, b, sandbox.RecordOptions{Session: v.Name}); err != nil {
			m.cfg.Log.Info("record before a sandbox ends or is copied", "session", v.Name, "error", err)
		}
	}
}

// canBranch refuses what cannot be copied before anything is ended for it.
func (m *Manager) canBranch(s sandbox.Session) (runtimes.Brancher, error) {
	rt, err := m.runtimeOf(s.Runtime)
	if err != nil {
		return nil, err
	}
	b, ok := rt.(runtimes.Brancher)
	if !ok {
		return nil, sandbox.Errorf(sandbox.Unsupported, "the %s runtime cannot copy a workspace", m.nameOf(s))
	}
	if w := s.Workspace; w.Kind != sandbox.WorkspaceVolume && w.Kind != sandbox.WorkspaceOverlay {
		return nil, sandbox.Errorf(sandbox.Unsupported, "a workspace of kind %q cannot be copied", w.Kind).
			WithHint("create the session with --workspace volume, and bring files in with: caisson files push")
	}
	return b, nil
}

func (m *Manager) branch(ctx context.Context, s sandbox.Session, w sandbox.Workspace, made sandbox.ID, used bool) (kept, copied sandbox.Workspace, how sandbox.CopiedBy, err error) {
	b, err := m.canBranch(s)
	if err != nil {
		return w, copied, "", err
	}
	rt, err := m.runtimeOf(s.Runtime)
	if err != nil {
		return w, copied, "", err
	}
	var lang sandbox.Language
	if s.Image == "" {
		if lang, err = m.cfg.Images.Language(s.Language); err != nil {
			return w, copied, "", err
		}
	}
	err = m.maker.WithImage(ctx, rt, lang, s.Image, func(image sandbox.Image) (err error) {
		kept, copied, how, err = b.Branch(ctx, runtimes.BranchOf{
			Workspace: w, Used: used, Kept: sandbox.NewID(), Made: made, Image: image, Identity: s.Identity, Holder: m.sessionHolder(), Session: s.Name,
		})
		return box.OfImage(err)
	})
	return kept, copied, how, err
}

// findSnapshot finds a snapshot by its name, its id, or the beginning of that.
// Errors: NotFound.
func findSnapshot(s sandbox.Session, which string) (int, error) {
	found := -1
	for i, snap := range s.Snapshots {
		if which != "" && (snap.Name == which || string(snap.ID) == which) {
			return i, nil
		}
		if which != "" && strings.HasPrefix(string(snap.ID), which) {
			if found >= 0 {
				return -1, sandbox.Errorf(sandbox.NotFound, "several snapshots of session %s begin with %q", s.Name, which).WithHint("give more of the id")
			}
			found = i
		}
	}
	if found < 0 {
		return -1, sandbox.Errorf(sandbox.NotFound, "session %s has no snapshot %q", s.Name, which).
			WithHint("see those there are with: caisson session show %s", s.Name)
	}
	return found, nil
}

// volumesOf names the volumes that caisson made for workspaces.
func volumesOf(workspaces ...sandbox.Workspace) []string {
	var names []string
	for _, w := range workspaces {
		if w.Kind != sandbox.WorkspaceVolume && w.Kind != sandbox.WorkspaceOverlay {
			continue
		}
		for _, name := range append([]string{w.Source}, w.Layers...) {
			if _, ours := volumeID(name); ours {
				names = append(names, name)
			}
		}
	}
	return names
}

// volumeID is the id that a volume's name ends in.
func volumeID(name string) (sandbox.ID, bool) {
	for _, prefix := range []string{runtimes.VolumePrefix, runtimes.UpperPrefix} {
		if id, ok := strings.CutPrefix(name, prefix); ok && sandbox.ID(id).Valid() {
			return sandbox.ID(id), true
		}
	}
	return "", false
}

func workspacesOf(s sandbox.Session) []sandbox.Workspace {
	all := []sandbox.Workspace{s.Workspace}
	for _, snap := range s.Snapshots {
		all = append(all, snap.Workspace)
	}
	return all
}

// dropVolumes removes those volumes of a runtime's workspaces that no session and no
// snapshot needs. The caller holds [layersLock], and has written down that the
// workspaces are not used any more.
func (m *Manager) dropVolumes(ctx context.Context, runtime string, workspaces ...sandbox.Workspace) error {
	views, err := m.cfg.Store.Sessions(ctx, sandbox.SessionFilter{})
	if err != nil {
		return err
	}
	needed := map[sandbox.ID]bool{}
	for _, v := range views {
		for _, name := range volumesOf(workspacesOf(v.Session)...) {
			id, _ := volumeID(name)
			needed[id] = true
		}
	}
	var errs []error
	for _, name := range volumesOf(workspaces...) {
		id, _ := volumeID(name)
		if needed[id] {
			continue
		}
		needed[id] = true // once is enough
		errs = append(errs, m.remove(ctx, runtimes.Handle{
			Version: runtimes.HandleVersion, Runtime: runtime, Kind: runtimes.KindVolume, ID: id, Name: name,
		}))
	}
	return errors.Join(errs...)
}
