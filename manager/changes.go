package manager

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/sandbox"
)

// Recorder is what the manager needs of the bridge.
type Recorder interface {
	// Record observes a workspace and writes down what differs from what was
	// known of it. It returns the records that it made, and what the exec of
	// opts changed.
	Record(ctx context.Context, session sandbox.ID, tree sandbox.Tree, opts sandbox.RecordOptions) ([]sandbox.ChangeRecord, []sandbox.FileChange, error)
	// Listened reports whether anybody wants to know of changes as they happen.
	Listened() bool
	// Fork lets a new session know all that is known of another.
	Fork(ctx context.Context, from, to sandbox.ID) error
	// Forget removes all that is known of a session.
	Forget(session sandbox.ID) error
}

// recordPatience bounds the record of an exec, whose caller may be gone.
const recordPatience = 2 * time.Minute

// tracked reports whether an exec's changes are recorded.
func (m *Manager) tracked(r *resolved) bool {
	return m.cfg.Recorder != nil && r.run.Track != sandbox.ModeOff
}

// book is whose book an exec's changes stand in: its session's, or a one-shot's
// own, which goes with its sandbox.
func (l *live) book() (id sandbox.ID, brief bool) {
	if l.session != "" {
		return l.session, false
	}
	return l.id(), true
}

// observe records what was touched in a sandbox's workspace, for an exec or for
// the session.
func (m *Manager) observe(ctx context.Context, l *live, opts sandbox.RecordOptions) ([]sandbox.FileChange, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordPatience)
	defer cancel()
	id, brief := l.book()
	opts.Brief, opts.Settle = brief, !brief
	made, changes, err := m.cfg.Recorder.Record(ctx, id, l.client, opts)
	if err != nil || brief {
		return changes, err
	}
	var events []sandbox.Event
	for _, r := range made {
		if r.Exec == opts.Exec && r.Exec != "" {
			continue // its end tells
		}
		if d := changesOf(r.Changes); d != nil {
			events = append(events, sandbox.Event{Kind: sandbox.EventFilesChanged, Session: opts.Session, Sandbox: l.id(), Exec: r.Exec, Data: data(d)})
		}
	}
	if len(events) == 0 {
		return changes, nil
	}
	return changes, m.record(ctx, sandbox.Change{Events: events})
}

// runTracked runs a command and then records what it changed. What was touched
// before it is recorded first, as the session's own.
func (m *Manager) runTracked(ctx context.Context, l *live, r *resolved, cmd client.Command) (client.Outcome, []sandbox.FileChange, error) {
	if !m.tracked(r) {
		out, err := l.client.Run(ctx, cmd)
		return out, nil, err
	}
	cmd.Track = true
	if _, brief := l.book(); brief {
		if cmd.Late = true; !l.used.Swap(true) {
			cmd.Fresh = len(r.run.Files) == 0
		}
		if len(r.run.Files) > 0 {
			if _, err := m.observe(ctx, l, sandbox.RecordOptions{Baseline: true}); err != nil {
				return client.Outcome{}, nil, err
			}
		}
	}
	quiet := m.whileRunning(ctx, l, r)
	out, err := l.client.Run(ctx, cmd)
	if errors.Is(err, sandbox.Conflict) && !cmd.Late {
		if _, err := m.observe(ctx, l, sandbox.RecordOptions{Session: r.run.Session}); err != nil {
			quiet()
			return client.Outcome{}, nil, err
		}
		cmd.Late = true
		out, err = l.client.Run(ctx, cmd)
	}
	quiet()
	if err != nil || out.Broken || out.Reason == sandbox.ReasonInfra || out.Touched == 0 && r.run.Track != sandbox.ModeExact {
		return out, nil, err
	}
	changes, err := m.observe(ctx, l, sandbox.RecordOptions{
		Exec: r.id, Session: r.run.Session, Exact: r.run.Track == sandbox.ModeExact, Beside: m.beside(ctx, l, r),
	})
	return out, changes, err
}

// livePause is how long it takes at most until those who listen know of a change.
const livePause = 250 * time.Millisecond

// whileRunning records what is touched in a session while an exec runs, if
// anybody wants to know, until the function that it returns is called.
func (m *Manager) whileRunning(ctx context.Context, l *live, r *resolved) (stop func()) {
	if !m.cfg.Recorder.Listened() || l.session == "" {
		return func() {}
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(livePause)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if _, err := m.observe(ctx, l, sandbox.RecordOptions{Session: r.run.Session}); err != nil {
				return // the record at the end has it, or says why it cannot
			}
		}
	}()
	return func() { close(ended); <-done }
}

// beside are execs of the session that run in its other sandboxes now.
func (m *Manager) beside(ctx context.Context, l *live, r *resolved) []sandbox.ID {
	if !l.shared {
		return nil
	}
	v, err := m.Session(context.WithoutCancel(ctx), r.run.Session)
	if err != nil {
		return nil // the session is gone, and so is its record
	}
	var ids []sandbox.ID
	for _, e := range v.Execs {
		if e.Sandbox != l.id() && e.Ended.IsZero() {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// maxAudited bounds the changes that one event names. The record has all.
const maxAudited = 1000

// changesData is what an event says of changes.
type changesData struct {
	Count   map[sandbox.ChangeOp]int `json:"count"`
	Changes []sandbox.FileChange     `json:"changes"`
	More    int                      `json:"more,omitempty"` // that are not named
}

func changesOf(changes []sandbox.FileChange) *changesData {
	d := &changesData{Count: map[sandbox.ChangeOp]int{}, Changes: []sandbox.FileChange{}}
	for _, c := range changes {
		if c.Op == sandbox.OpTouched {
			continue
		}
		d.Count[c.Op]++
		if len(d.Changes) < maxAudited {
			d.Changes = append(d.Changes, c)
		} else {
			d.More++
		}
	}
	if len(d.Count) == 0 {
		return nil
	}
	return d
}

// withChanges adds changes to an event's data.
func withChanges(e sandbox.Event, changes []sandbox.FileChange) sandbox.Event {
	d := changesOf(changes)
	if d == nil {
		return e
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(e.Data, &all) != nil {
		return e
	}
	all["files"] = data(d)
	e.Data = data(all)
	return e
}

// Tree is a session's workspace, for who records and takes back what happens in
// it. It is good for as long as a sandbox of the session is.
func (m *Manager) Tree(ctx context.Context, session string) (sandbox.Session, sandbox.Tree, error) {
	f, err := m.Files(ctx, session)
	if err != nil {
		return sandbox.Session{}, nil, err
	}
	v, err := m.Session(ctx, session)
	return v.Session, f.l.client, err
}

// Quiet is an error of kind Conflict while execs of a session run.
func (m *Manager) Quiet(ctx context.Context, session string) error {
	v, err := m.Session(ctx, session)
	if err != nil {
		return err
	}
	if n := running(v); n > 0 {
		return sandbox.Errorf(sandbox.Conflict, "%d execs run in session %s", n, session).WithHint("wait for them, or end them with: caisson kill %s EXEC", session)
	}
	return nil
}

// RecordSession records what was touched in a session's workspace since the last
// record: what a background process did, or, with exact, whatever differs. Where
// the session has no sandbox, nothing can have been.
func (m *Manager) RecordSession(ctx context.Context, session string, exact bool) error {
	f, err := m.Files(ctx, session)
	if err != nil || m.cfg.Recorder == nil {
		return err
	}
	_, err = m.observe(ctx, f.l.live, sandbox.RecordOptions{Session: session, Exact: exact})
	return err
}

// Undone writes down that an undo was carried out.
func (m *Manager) Undone(ctx context.Context, session string, r sandbox.ChangeRecord) error {
	what := struct {
		Record int64   `json:"record"`
		Undoes []int64 `json:"undoes"`
		*changesData
	}{r.ID, r.Undoes, changesOf(r.Changes)}
	return m.recordLate(ctx, sandbox.Change{Events: []sandbox.Event{{Kind: sandbox.EventUndone, Session: session, Exec: r.Exec, Data: data(what)}}})
}
