package manager

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/sandbox"
)

// ExecIn runs one exec in a session. The sandbox of its language is made at
// first use, beside the judging. What the process leaves in the background goes
// on after it. Errors are those of [Sandbox.Exec], NotFound for the session,
// and Conflict where it is paused.
func (m *Manager) ExecIn(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	v, lang, r, err := m.resolveIn(ctx, session, run, streams)
	if err != nil {
		return sandbox.Result{}, err
	}
	l, replaced, d, err := m.judgeAndConnect(ctx, v, lang, r)
	if err != nil {
		return m.refused(ctx, r, err)
	}
	res, broken, err := m.runIn(ctx, l.live, r, d, streams, false)
	res.Replaced = replaced
	if broken {
		m.drop(l.record.ID)
	}
	return res, err
}

// resolveIn looks up what an exec in a session needs.
func (m *Manager) resolveIn(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (v sandbox.SessionView, lang sandbox.Language, r *resolved, err error) {
	if v, err = m.Session(ctx, session); err != nil {
		return v, lang, nil, err
	}
	run.Session = session
	if run.Language == "" {
		run.Language = v.Language
	}
	if run.Language == "" {
		lang = sandbox.Language{Image: v.Image}
	} else if lang, err = m.cfg.Images.Language(run.Language); err != nil {
		return v, lang, nil, err
	}
	limits := v.Limits
	limits.Timeout, limits.Keep, limits.MaxOutput = run.Limits.Timeout, run.Limits.Keep, run.Limits.MaxOutput
	if r, err = resolve(run, lang, limits, streams); err != nil {
		return v, lang, nil, err
	}
	r.question.User, r.question.Network = strconv.Itoa(v.Identity.UID)+" of session "+string(v.ID), v.Network.Or()
	return v, lang, r, nil
}

// judgeAndConnect asks the gate while the sandbox is made ready.
func (m *Manager) judgeAndConnect(ctx context.Context, v sandbox.SessionView, lang sandbox.Language, r *resolved) (*link, bool, sandbox.Decision, error) {
	if b := findBox(v, lang.Name); b != nil && b.State == sandbox.StateReady {
		if l := m.cached(b.ID); l != nil {
			// Nothing to get ready: no goroutine to pay for.
			r.space.connect = func(context.Context) (*client.Client, error) { return l.client, nil }
			r.question.Image = func(context.Context) (string, error) { return l.record.Image, nil }
			d, err := m.judgeExec(ctx, r)
			return l, false, d, err
		}
	}
	r.question.Making = findBox(v, lang.Name) == nil
	box := m.beginBox(ctx, v, lang, asker{r.run.Approve, r.run.Ask})
	r.space.connect = func(ctx context.Context) (*client.Client, error) {
		l, err := box.wait(ctx)
		if err != nil {
			return nil, err
		}
		return l.client, nil
	}
	r.question.Image = func(ctx context.Context) (string, error) {
		l, err := box.wait(ctx)
		if err != nil {
			return "", err
		}
		return l.record.Image, nil
	}
	d, err := m.judgeExec(ctx, r)
	<-box.ready // also after a refusal: what is being made is the session's
	if err != nil {
		return nil, false, d, err
	}
	return box.l, box.replaced, d, box.err
}

// pendingBox is a sandbox that is being connected to, or made. Its other fields
// may be read once ready is closed.
type pendingBox struct {
	ready    chan struct{}
	l        *link
	replaced bool
	err      error
}

func (m *Manager) beginBox(ctx context.Context, v sandbox.SessionView, lang sandbox.Language, who asker) *pendingBox {
	b := &pendingBox{ready: make(chan struct{})}
	go func() {
		defer close(b.ready)
		b.l, b.replaced, b.err = m.boxFor(ctx, v, lang, who)
	}()
	return b
}

func (b *pendingBox) wait(ctx context.Context) (*link, error) {
	select {
	case <-b.ready:
		return b.l, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// StartIn starts a background exec in a session and returns once it runs. Its
// output is kept, the newest up to a bound, and read by [Manager.Output]. It has
// no timeout unless the run gives one.
func (m *Manager) StartIn(ctx context.Context, session string, run sandbox.Run) (sandbox.ExecRecord, error) {
	v, lang, r, err := m.resolveIn(ctx, session, run, sandbox.Streams{})
	if err != nil {
		return sandbox.ExecRecord{}, err
	}
	r.limits.Timeout, r.question.Background = run.Timeout, true
	l, _, d, err := m.judgeAndConnect(ctx, v, lang, r)
	if err != nil {
		_, err = m.refused(ctx, r, err)
		return sandbox.ExecRecord{}, err
	}
	if len(run.Files) > 0 {
		if err := l.client.Put(ctx, run.Role, r.space.put()); err != nil {
			return sandbox.ExecRecord{}, err
		}
	}
	if err := m.begin(ctx, l.live, r, d, true, oldest(v.Execs)...); err != nil {
		return sandbox.ExecRecord{}, err
	}
	if err := m.verify(ctx, l.live, r); err != nil {
		return sandbox.ExecRecord{}, joinErr(err, m.neverBegan(ctx, l.live, r, err))
	}
	cmd := r.command()
	cmd.MaxOutput = 0 // what is kept is bounded, what passes is not
	cmd.Track = m.tracked(r)
	never, err := l.client.Start(ctx, cmd)
	if errors.Is(err, sandbox.Conflict) && cmd.Track {
		if _, err := m.observe(ctx, l.live, sandbox.RecordOptions{Session: session}); err != nil {
			return sandbox.ExecRecord{}, joinErr(err, m.neverBegan(ctx, l.live, r, err))
		}
		cmd.Late = true
		never, err = l.client.Start(ctx, cmd)
	}
	switch {
	case err != nil:
		return sandbox.ExecRecord{}, joinErr(err, m.neverBegan(ctx, l.live, r, err))
	case never != nil:
		err := sandbox.Errorf(sandbox.NotFound, "%s", never.Message).WithHint("check the command and the image")
		return sandbox.ExecRecord{}, joinErr(err, m.finish(ctx, l.live, r, *never))
	}
	return m.execRecord(ctx, session, r.id)
}

// keepEnded bounds the ended background execs of a session that can be asked
// for. An agent keeps the output of as many.
const keepEnded = 256

// oldest returns the ended execs that are too many, with room for one more. The
// audit keeps their start and end.
func oldest(execs []sandbox.ExecRecord) []sandbox.ID {
	var ended []sandbox.ExecRecord
	for _, e := range execs {
		if !e.Ended.IsZero() {
			ended = append(ended, e)
		}
	}
	if len(ended) < keepEnded {
		return nil
	}
	slices.SortFunc(ended, func(a, b sandbox.ExecRecord) int { return a.Ended.Compare(b.Ended) })
	var ids []sandbox.ID
	for _, e := range ended[:len(ended)-keepEnded+1] {
		ids = append(ids, e.ID)
	}
	return ids
}

// execRecord reads one exec of a session. Errors: NotFound.
func (m *Manager) execRecord(ctx context.Context, session string, id sandbox.ID) (sandbox.ExecRecord, error) {
	v, err := m.Session(ctx, session)
	if err != nil {
		return sandbox.ExecRecord{}, err
	}
	for _, e := range v.Execs {
		if e.ID == id {
			return e, nil
		}
	}
	return sandbox.ExecRecord{}, sandbox.Errorf(sandbox.NotFound, "no exec %s in session %s", id, session).WithHint("see those there are with: caisson session show %s", session)
}

// execLink finds an exec of a session and the connection to its sandbox.
func (m *Manager) execLink(ctx context.Context, session string, id sandbox.ID) (sandbox.ExecRecord, *link, error) {
	v, err := m.Session(ctx, session)
	if err != nil {
		return sandbox.ExecRecord{}, nil, err
	}
	e, err := m.execRecord(ctx, session, id)
	if err != nil {
		return e, nil, err
	}
	for _, b := range v.Sandboxes {
		if b.ID == e.Sandbox {
			l, err := m.connect(ctx, v, b)
			return e, l, err
		}
	}
	return e, nil, sandbox.Errorf(sandbox.NotFound, "the sandbox of exec %s is gone", id.Short())
}

// Output copies what a background exec has put out, from the given offsets on.
// With follow it goes on until the exec ends. The Outcome has the end where
// there is one, and the new offsets as its counts.
func (m *Manager) Output(ctx context.Context, session string, id sandbox.ID, stdoutAt, stderrAt int64, stdout, stderr io.Writer, follow bool) (out client.Outcome, ended bool, err error) {
	e, l, err := m.execLink(ctx, session, id)
	if err != nil {
		return client.Outcome{}, false, err
	}
	cmd := client.Command{ID: id, Stdout: stdout, Stderr: stderr, Drop: true}
	if follow {
		out, err = l.client.Attach(ctx, cmd, stdoutAt, stderrAt)
		ended = err == nil && out.Reason != sandbox.ReasonInfra
	} else {
		out, ended, err = l.client.Output(ctx, cmd, stdoutAt, stderrAt)
	}
	if ended && e.Ended.IsZero() {
		err = joinErr(err, m.closeExec(ctx, e, out))
	}
	return out, ended, err
}

// Processes lists the execs of a session that run or whose output is kept, as
// their agents know them.
func (m *Manager) Processes(ctx context.Context, session string) ([]client.ExecInfo, error) {
	v, err := m.Session(ctx, session)
	if err != nil {
		return nil, err
	}
	var all []client.ExecInfo
	for _, b := range v.Sandboxes {
		l, err := m.connect(ctx, v, b)
		if err != nil {
			if ended(err) {
				continue
			}
			return nil, err
		}
		infos, err := l.client.List(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, infos...)
	}
	return all, nil
}

// SignalExec sends a signal to an exec's process, or to everything that it
// started. Errors: NotFound, Conflict where it has ended.
func (m *Manager) SignalExec(ctx context.Context, session string, id sandbox.ID, signal int, all bool) error {
	_, l, err := m.execLink(ctx, session, id)
	if err != nil {
		return err
	}
	return l.client.Signal(ctx, id, signal, all)
}

// KillExec ends an exec and everything that it started.
func (m *Manager) KillExec(ctx context.Context, session string, id sandbox.ID) error {
	e, l, err := m.execLink(ctx, session, id)
	if err != nil {
		return err
	}
	if err := l.client.Kill(ctx, id); err != nil {
		return err
	}
	if !e.Background || !e.Ended.IsZero() {
		return nil // who follows it writes down its end
	}
	out, ended, err := l.client.Output(ctx, client.Command{ID: id}, 0, 0)
	if err != nil || !ended {
		return err
	}
	return m.closeExec(ctx, e, out)
}
