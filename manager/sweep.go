package manager

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Sweep removes what dead holders left: temporary sessions, containers, volumes, folders. What was
// kept on purpose stays, unless kept is set. dry only looks. It can run beside
// anything, also other sweeps.
//
// Errors are those of listing, beside what other runtimes have; one that concerns
// a single orphan stands with it.
func (m *Manager) Sweep(ctx context.Context, dry, kept bool) ([]sandbox.Orphan, error) {
	orphans, err := m.sweepOnce(ctx, dry, kept)
	held := func(o sandbox.Orphan) bool { return o.Problem != nil && o.Problem.Kind == sandbox.Conflict.String() }
	if err != nil || !slices.ContainsFunc(orphans, held) {
		return orphans, err
	}
	// The engine finishes what a process asked for just before it died: what
	// holds a volume can appear after the listing.
	again, err := m.sweepOnce(ctx, dry, kept)
	if err != nil {
		return orphans, err
	}
	return append(slices.DeleteFunc(orphans, held), again...), nil
}

func (m *Manager) sweepOnce(ctx context.Context, dry, kept bool) ([]sandbox.Orphan, error) {
	orphans, err := m.sweepSessions(ctx, dry)
	if err != nil {
		return nil, err
	}
	handles, unlisted := m.list(ctx)
	known, err := m.journal(ctx)
	if err != nil {
		return nil, err
	}
	alive := map[string]bool{m.cfg.Holder: true}
	handles = slices.DeleteFunc(handles, func(h runtimes.Handle) bool { return !m.orphaned(h, known, alive) || h.Kept && !kept })
	if slices.ContainsFunc(handles, m.isCopy) {
		known, done, err := m.noCopying(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
		handles = slices.DeleteFunc(handles, func(h runtimes.Handle) bool { return m.isCopy(h) && (known == nil || known[h.ID]) })
	}
	for _, h := range handles {
		o := sandbox.Orphan{Kind: h.Kind, ID: h.ID, Name: h.Name, Holder: h.Holder, Created: h.Created}
		if !dry {
			o.Done(m.remove(ctx, h))
		}
		orphans = append(orphans, o)
	}
	return orphans, unlisted
}

// isCopy reports whether something may be the copy of a workspace that is being
// made: it is in the journal once it is whole.
func (m *Manager) isCopy(h runtimes.Handle) bool {
	ours, _ := m.ofThisState(h.Holder)
	return ours && h.Kind == runtimes.KindVolume
}

// copyPatience is how long a sweep waits for who copies a workspace: it may take
// long, and the next sweep comes.
const copyPatience = 500 * time.Millisecond

// noCopying keeps workspaces from being copied until done is called, and returns
// the journal of then. It is nil while one is being copied.
func (m *Manager) noCopying(ctx context.Context) (known map[sandbox.ID]bool, done func(), err error) {
	short, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	unlock, err := m.lock(short, layersLock)
	switch {
	case err != nil && ctx.Err() == nil && short.Err() != nil:
		return nil, func() {}, nil
	case err != nil:
		return nil, nil, err
	}
	if known, err = m.journal(ctx); err != nil {
		unlock()
		return nil, nil, err
	}
	return known, func() {
		if err := filelock.Remove(m.lockPath(layersLock)); err != nil {
			m.cfg.Log.Info("remove a lock", "error", err)
		}
		unlock()
	}, nil
}

// orphaned reports whether nobody answers for something any more: of a
// session, that the journal does not know it, and otherwise that its holder is
// dead.
func (m *Manager) orphaned(h runtimes.Handle, known map[sandbox.ID]bool, alive map[string]bool) bool {
	if ours, any := m.ofThisState(h.Holder); any {
		return ours && !known[h.ID]
	}
	if h.Holder == "" {
		// Its maker died before it could leave its name, or the engine made it.
		return h.Kind != runtimes.KindSandbox && m.cfg.Now().Sub(h.Created) > nameless
	}
	lives, seen := alive[h.Holder]
	if !seen {
		lives = m.cfg.Alive(h.Holder)
		alive[h.Holder] = lives
	}
	// Whoever made it before this machine was started is gone, and so is what
	// ran in it. What still runs belongs to another machine.
	return !lives || ofAnotherBoot(h.Holder) && !h.Running
}

// nameless is how long a folder may be without the name of its holder, which is
// written right after it is made.
const nameless = time.Minute

// journal returns the ids of what sessions hold. It is read after the listing:
// what is made is written down first, so that nothing listed is missed.
func (m *Manager) journal(ctx context.Context) (map[sandbox.ID]bool, error) {
	known := map[sandbox.ID]bool{}
	if m.cfg.Store == nil {
		return known, nil
	}
	views, err := m.cfg.Store.Sessions(ctx, sandbox.SessionFilter{})
	for _, v := range views {
		known[v.ID] = true
		for _, name := range volumesOf(workspacesOf(v.Session)...) {
			id, _ := volumeID(name)
			known[id] = true
		}
		for _, rec := range v.Sandboxes {
			known[rec.ID] = rec.State != sandbox.StateGone
		}
	}
	return known, err
}

func (m *Manager) remove(ctx context.Context, h runtimes.Handle) error {
	inst, err := m.attach(ctx, h)
	if errors.Is(err, sandbox.NotFound) {
		return nil // somebody else was quicker
	}
	if err != nil {
		return err
	}
	if err := inst.Destroy(ctx); err != nil {
		return err
	}
	m.cfg.Log.Info("removed what a dead holder left", "kind", h.Kind, "id", h.ID, "holder", h.Holder)
	return nil
}
