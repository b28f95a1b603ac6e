package manager

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// Recorder is what the manager needs of the bridge.
type Recorder interface {
	// Open has what is known of a session at hand, so that its next record need not
	// wait for that.
	Open(ctx context.Context, session sandbox.ID) error
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

// recordBudget bounds what the record of an exec takes of its sandbox, which
// hashes contents at its own share of the processor. recordPatience bounds all
// of a record, and recordGrace what it may take once its caller is gone: enough
// for most, so that an exec that was cancelled has its record.
const (
	recordPatience = 2 * time.Minute
	recordGrace    = 2 * time.Second
)

var recordBudget = sandbox.Budget{Time: 10 * time.Second, Bytes: sandbox.GiB}

// tracked reports whether an exec's changes are recorded.
func (m *Manager) tracked(r *resolved) bool {
	return m.cfg.Recorder != nil && r.run.Track != sandbox.ModeOff
}

// bookOf says whose book an exec's changes stand in: its session's, or a one-shot's
// own, which goes with its sandbox.
func bookOf(b *box.Box) (id sandbox.ID, brief bool) {
	if b.Session != "" {
		return b.Session, false
	}
	return b.ID, true
}

// observe records what was touched in a sandbox's workspace, for an exec or for
// the session, within the budget. It ends soon after ctx does.
func (m *Manager) observe(ctx context.Context, b *box.Box, opts sandbox.RecordOptions) ([]sandbox.FileChange, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), recordPatience)
	defer cancel()
	defer context.AfterFunc(caller, func() { time.AfterFunc(recordGrace, cancel) })()
	opts.Budget = recordBudget
	return m.observeAll(ctx, b, opts)
}

// observeAll records it for as long as that takes, or until ctx is done.
func (m *Manager) observeAll(ctx context.Context, b *box.Box, opts sandbox.RecordOptions) ([]sandbox.FileChange, error) {
	id, brief := bookOf(b)
	opts.Brief, opts.Settle = brief, !brief
	if !brief {
		// Asked for now: another sandbox may have appeared since this one was found.
		var err error
		if opts.Beside, err = m.beside(ctx, b, opts.Session); err != nil {
			return nil, err
		}
	}
	made, changes, err := m.cfg.Recorder.Record(ctx, id, b.Client, opts)
	if err != nil && !brief {
		err = joinErr(err, m.forgetRemoved(ctx, opts.Session, id))
	}
	if err != nil || brief {
		return changes, err
	}
	var events []sandbox.Event
	for _, r := range made {
		if r.Exec == opts.Exec && r.Exec != "" {
			continue // its end tells
		}
		if d := changesOf(r.Changes); d != nil {
			events = append(events, sandbox.Event{Kind: sandbox.EventFilesChanged, Session: opts.Session, Sandbox: b.ID, Exec: r.Exec, Data: data(d)})
		}
	}
	if len(events) == 0 {
		return changes, nil
	}
	return changes, m.recordLate(ctx, sandbox.Transaction{Events: events})
}

// runTracked runs a command whose changes are to be recorded. What was touched
// before it is recorded first, as the session's own. An error means that it
// never began.
func (m *Manager) runTracked(ctx context.Context, b *box.Box, r *resolved, cmd client.Command) (client.Outcome, error) {
	if !m.tracked(r) {
		return b.Client.Run(ctx, cmd)
	}
	cmd.Track = true
	if _, brief := bookOf(b); brief {
		if cmd.Late = true; b.FirstUse() {
			cmd.Fresh = len(r.run.Files) == 0
		}
		if len(r.run.Files) > 0 {
			if _, err := m.observe(ctx, b, sandbox.RecordOptions{Baseline: true}); err != nil {
				return client.Outcome{}, err
			}
		}
	}
	defer m.whileRunning(ctx, b, r)()
	out, err := b.Client.Run(ctx, cmd)
	if errors.Is(err, sandbox.Conflict) && !cmd.Late {
		if _, err := m.observe(ctx, b, sandbox.RecordOptions{Session: r.run.Session}); err != nil {
			return client.Outcome{}, err
		}
		cmd.Late = true
		out, err = b.Client.Run(ctx, cmd)
	}
	return out, err
}

// recordRun records what a command that has run changed. Where that fails, the
// next record of the session has it.
func (m *Manager) recordRun(ctx context.Context, b *box.Box, r *resolved, out client.Outcome) ([]sandbox.FileChange, error) {
	if !m.tracked(r) || out.Broken || out.Reason == sandbox.ReasonInfra || out.Touched == 0 && r.run.Track != sandbox.ModeExact {
		return nil, nil
	}
	return m.observe(ctx, b, sandbox.RecordOptions{
		Exec: r.id, Session: r.run.Session,
		ObserveOptions: sandbox.ObserveOptions{Exact: r.run.Track == sandbox.ModeExact},
	})
}

// forgetRemoved leaves nothing of a session that was removed while it was to be
// recorded: to begin that makes what is kept of it anew.
func (m *Manager) forgetRemoved(ctx context.Context, session string, id sandbox.ID) error {
	v, err := m.Session(context.WithoutCancel(ctx), session)
	if err == nil && v.ID == id || err != nil && !errors.Is(err, sandbox.NotFound) {
		return nil
	}
	return m.cfg.Recorder.Forget(id)
}

// livePause is how long it takes at most until those who listen know of a change.
const livePause = 250 * time.Millisecond

// whileRunning records what is touched in a session while an exec runs, if
// anybody wants to know, until the function that it returns is called.
func (m *Manager) whileRunning(ctx context.Context, b *box.Box, r *resolved) (stop func()) {
	if !m.cfg.Recorder.Listened() || b.Session == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(livePause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if _, err := m.observeAll(ctx, b, sandbox.RecordOptions{Session: r.run.Session}); err != nil {
				return // the record at the end has it, or says why it cannot
			}
		}
	}()
	return func() { cancel(); <-done }
}

// beside are execs of a session that run now in its other sandboxes, which have
// the same workspace.
func (m *Manager) beside(ctx context.Context, b *box.Box, session string) ([]sandbox.ID, error) {
	v, err := m.running(ctx, session)
	if errors.Is(err, sandbox.NotFound) {
		return nil, nil // and so is its record
	}
	if err != nil {
		return nil, err
	}
	var ids []sandbox.ID
	for _, e := range v.Execs {
		if e.Sandbox != b.ID && e.Ended.IsZero() {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
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

// withChanges adds changes to an event's data, and why they are not all known.
func withChanges(e sandbox.Event, changes []sandbox.FileChange, unrecorded error) sandbox.Event {
	d := changesOf(changes)
	if d == nil && unrecorded == nil {
		return e
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(e.Data, &all) != nil {
		return e
	}
	if d != nil {
		all["files"] = data(d)
	}
	if unrecorded != nil {
		all["files_error"] = data(unrecorded.Error())
	}
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
	v, err := m.running(ctx, session)
	return v.Session, f.b.Client, err
}

// Quiet is an error of kind Conflict while execs of a session run.
func (m *Manager) Quiet(ctx context.Context, session string) error {
	v, err := m.running(ctx, session)
	if err != nil {
		return err
	}
	if n := countRunning(v); n > 0 {
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
	_, err = m.observeAll(ctx, f.b, sandbox.RecordOptions{Session: session, ObserveOptions: sandbox.ObserveOptions{Exact: exact}})
	return err
}

// Undone writes down that an undo was carried out.
func (m *Manager) Undone(ctx context.Context, session string, r sandbox.ChangeRecord) error {
	what := struct {
		Record int64   `json:"record"`
		Undoes []int64 `json:"undoes"`
		*changesData
	}{r.ID, r.Undoes, changesOf(r.Changes)}
	return m.recordLate(ctx, sandbox.Transaction{Events: []sandbox.Event{{Kind: sandbox.EventUndone, Session: session, Exec: r.Exec, Data: data(what)}}})
}
