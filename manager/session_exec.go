package manager

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// ExecIn runs one exec in a session. The sandbox of its language is made at
// first use, beside the judging. What the process leaves in the background goes
// on after it. Errors are those of [Sandbox.Exec], NotFound for the session,
// and Conflict where it is paused.
func (m *Manager) ExecIn(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (_ sandbox.Result, err error) {
	ctx, done := telemetry.Begin(ctx, m.cfg.Tracer, "run")
	defer func() { done(err) }()
	v, lang, r, err := m.resolveIn(ctx, session, run, streams, false)
	if err != nil {
		return sandbox.Result{}, err
	}
	r.note(ctx)
	b, replaced, d, err := m.judgeAndConnect(ctx, v, lang, r)
	if err != nil {
		return m.refused(ctx, r, err)
	}
	res, broken, err := m.runIn(ctx, b, r, d, streams, false)
	res.Replaced = replaced
	if broken != nil {
		err = joinErr(err, m.abandon(ctx, b, r.id, broken))
	}
	return res, err
}

// resolveIn looks up what an exec in a session needs.
func (m *Manager) resolveIn(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams, background bool) (v sandbox.SessionView, lang sandbox.Language, r *resolved, err error) {
	if v, err = m.running(ctx, session); err != nil {
		return v, lang, nil, err
	}
	if run.Runtime != "" && run.Runtime != m.nameOf(v.Session) {
		return v, lang, nil, sandbox.Errorf(sandbox.Conflict, "session %s began with the runtime %s, and keeps it", session, m.nameOf(v.Session)).
			WithHint("leave --runtime out, or make another session")
	}
	run.Session, run.Env = session, slices.Concat(v.Env, run.Env)
	if run.Language == "" {
		run.Language = v.Language
	}
	if run.Language == "" {
		lang = sandbox.Language{Image: v.Image}
	} else if lang, err = m.cfg.Images.Language(run.Language); err != nil {
		return v, lang, nil, err
	}
	if r, err = m.resolve(ctx, run, lang, v.Limits, streams, background); err != nil {
		return v, lang, nil, err
	}
	r.question.User, r.question.Network = userOf(v), v.Network.WithDefaults()
	return v, lang, r, nil
}

// userOf names whom the execs of a session run as.
func userOf(v sandbox.SessionView) string {
	return strconv.Itoa(v.Identity.UID) + " of session " + string(v.ID)
}

// judgeAndConnect asks the gate while the sandbox is made ready.
func (m *Manager) judgeAndConnect(ctx context.Context, v sandbox.SessionView, lang sandbox.Language, r *resolved) (b *box.Box, replaced bool, d sandbox.Decision, err error) {
	if rec := findBox(v, lang.Name); rec != nil && rec.State == sandbox.StateReady {
		if b := m.cached(rec.ID); b != nil {
			// Nothing to get ready: no goroutine to pay for.
			r.space.connect = func(context.Context) (*client.Client, error) { return b.Client, nil }
			r.question.Plan = func(context.Context) (runtimes.Plan, error) { return b.Plan, nil }
			d, err := m.judgeExec(ctx, r)
			return b, false, d, err
		}
	}
	r.question.Making = findBox(v, lang.Name) == nil
	b, d, err = m.judgeBeside(ctx, r, false, func(ctx context.Context) (b *box.Box, err error) {
		b, replaced, err = m.boxFor(ctx, v, lang, asker{r.run.Approve, r.question.Ask})
		return b, err
	})
	return b, replaced, d, err
}

// StartIn starts a background exec in a session and returns once it runs. Its
// output is kept, the newest up to a bound, and read by [Manager.AttachExec]. It has
// no timeout unless the run gives one.
func (m *Manager) StartIn(ctx context.Context, session string, run sandbox.Run, local sandbox.Local) (_ sandbox.ExecRecord, err error) {
	ctx, done := telemetry.Begin(ctx, m.cfg.Tracer, "start")
	defer func() { done(err) }()
	streams := sandbox.Streams{Local: local}
	if run.Input {
		streams.Stdin = laterInput{}
	}
	v, lang, r, err := m.resolveIn(ctx, session, run, streams, true)
	if err != nil {
		return sandbox.ExecRecord{}, err
	}
	r.note(ctx)
	b, _, d, err := m.judgeAndConnect(ctx, v, lang, r)
	if err != nil {
		_, err = m.refused(ctx, r, err)
		return sandbox.ExecRecord{}, err
	}
	if err := r.put(ctx, b); err != nil {
		if broken := brokenByCall(err); broken != nil {
			err = joinErr(err, m.abandon(ctx, b, r.id, broken))
		}
		return sandbox.ExecRecord{}, err
	}
	if err := m.begin(ctx, b, r, d, true); err != nil {
		return sandbox.ExecRecord{}, err
	}
	never, err := m.startTracked(ctx, b, r, d)
	switch {
	case err != nil:
		return sandbox.ExecRecord{}, joinErr(err, m.notStarted(ctx, b, r, err))
	case never != nil:
		err := sandbox.Errorf(sandbox.NotFound, "%s", never.Message).WithHint("check the command and the image")
		return sandbox.ExecRecord{}, joinErr(err, m.finish(ctx, b, r, *never, nil, nil))
	}
	return m.letGo(ctx, b, r)
}

// keepEnded bounds the ended background execs of a session that can be asked
// for. An agent keeps the output of as many.
const keepEnded = 256

// execRecord reads one exec of a session. Errors: NotFound.
func (m *Manager) execRecord(ctx context.Context, session string, id sandbox.ID) (sandbox.ExecRecord, error) {
	execs, err := m.Execs(ctx, sandbox.ExecFilter{ID: id, Session: session})
	if err == nil && len(execs) == 0 {
		err = sandbox.Errorf(sandbox.NotFound, "no exec %s in session %s", id, session).WithHint("see those there are with: caisson session show %s", session)
		if _, missing := m.Session(ctx, session); missing != nil {
			err = missing
		}
	}
	if err != nil {
		return sandbox.ExecRecord{}, err
	}
	return execs[0], nil
}

// execBox finds an exec of a session and the connection to its sandbox.
func (m *Manager) execBox(ctx context.Context, session string, id sandbox.ID) (sandbox.ExecRecord, *box.Box, error) {
	v, err := m.running(ctx, session)
	if err != nil {
		return sandbox.ExecRecord{}, nil, err
	}
	i := slices.IndexFunc(v.Execs, func(e sandbox.ExecRecord) bool { return e.ID == id })
	var e sandbox.ExecRecord
	if i >= 0 {
		e = v.Execs[i]
	} else if e, err = m.execRecord(ctx, session, id); err != nil { // maybe it has ended
		return e, nil, err
	}
	for _, rec := range v.Sandboxes {
		if rec.ID == e.Sandbox {
			b, err := m.connect(ctx, v, rec)
			return e, b, err
		}
	}
	return e, nil, sandbox.Errorf(sandbox.NotFound, "the sandbox of exec %s is gone", id.Short())
}

// Process is an exec of a session as its agent knows it.
type Process struct {
	client.ExecInfo
	// Starts are the first that it started, where that is seen, and of one that has ended
	// those of its record. One that waits to be judged has the verdict [sandbox.Ask].
	Starts         []sandbox.Start
	StartsUnjudged int // as in [sandbox.Result]
}

// Processes lists the execs of a session that run or whose output is kept, as
// their agents know them.
func (m *Manager) Processes(ctx context.Context, session string) ([]Process, error) {
	v, err := m.running(ctx, session)
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, rec := range v.Sandboxes {
		b, err := m.connect(ctx, v, rec)
		if err != nil {
			if errors.Is(err, box.ErrEnded) {
				continue
			}
			return nil, err
		}
		infos, err := b.Client.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			all = append(all, Process{ExecInfo: i, Starts: shownStarts(i.Starts)})
		}
	}
	return all, m.addStarts(ctx, session, all)
}

// SignalExec sends a signal to an exec's process, or to everything that it
// started. Errors: NotFound, Conflict where it has ended.
func (m *Manager) SignalExec(ctx context.Context, session string, id sandbox.ID, signal int, all bool) error {
	_, b, err := m.execBox(ctx, session, id)
	if err != nil {
		return err
	}
	return b.Client.Signal(ctx, id, signal, all)
}

// KillExec ends an exec and everything that it started. Where that cannot be
// done, it ends the sandbox, and the error says so.
func (m *Manager) KillExec(ctx context.Context, session string, id sandbox.ID) error {
	return m.killExec(ctx, session, id, "")
}

// killExec is KillExec with a cause, for all who follow it.
func (m *Manager) killExec(ctx context.Context, session string, id sandbox.ID, cause string) error {
	e, b, err := m.execBox(ctx, session, id)
	if err != nil {
		return err
	}
	if err := b.Client.Kill(ctx, id, cause); err != nil {
		if errors.Is(err, client.ErrSurvivors) {
			err = joinErr(err, m.abandon(ctx, b, id, err))
		}
		return err
	}
	if !e.Background || !e.Ended.IsZero() {
		return nil // who follows it writes down its end
	}
	out, ended, err := b.Client.Output(ctx, client.Command{ID: id}, 0, 0)
	if err != nil || !ended {
		return err
	}
	return m.conclude(ctx, b, e, out)
}
