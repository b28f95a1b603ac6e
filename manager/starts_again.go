package manager

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// An exec in the background can outlive who judges what it starts. Then another process
// does so: a server, from when it first connects to the sandbox, or one that was left
// behind for it.

// judgeAgain has this process judge what the execs of a sandbox start that run in the
// background, where it is one that stays, once whoever judged that has gone.
func (m *Manager) judgeAgain(v sandbox.SessionView, b *box.Box) {
	if !m.cfg.Stays {
		return
	}
	for _, e := range v.Execs {
		if e.Sandbox != b.ID || !e.Background || !e.Ended.IsZero() {
			continue
		}
		m.mu.Lock()
		if !m.closed {
			m.tasks.Go(func() {
				if err := m.takePlace(context.Background(), v, b, e); err != nil && !errors.Is(err, sandbox.NotFound) {
					m.cfg.Log.Warn("nobody judges what an exec starts", "exec", e.ID, "error", err)
				}
			})
		}
		m.mu.Unlock()
	}
}

// JudgeOn has this process judge what an exec in the background starts, as soon as who
// does so goes: see [Manager.Outlast]. Errors: NotFound where it does not run, or its
// starts are not seen.
func (m *Manager) JudgeOn(ctx context.Context, session string, id sandbox.ID) error {
	e, b, err := m.execBox(ctx, session, id)
	if err != nil {
		return err
	}
	v, err := m.Session(ctx, session)
	if err != nil {
		return err
	}
	return m.takePlace(ctx, v, b, e)
}

// takePlace is for one exec. It returns once nothing can be started unseen between the
// two judges, while the other may still be there.
func (m *Manager) takePlace(ctx context.Context, v sandbox.SessionView, b *box.Box, e sandbox.ExecRecord) error {
	if !m.cfg.Starts.Sees() {
		return nil
	}
	asked := ExecQuestion{
		ID: e.ID, Run: sandbox.Run{Session: e.Session, Labels: e.Labels, Approve: e.Approve, Role: e.Role, Network: v.Network},
		Argv: e.Argv, Role: e.Role, Limits: v.Limits.WithDefaults(), User: userOf(v), Network: v.Network.WithDefaults(),
		Background: true, Terminal: e.Terminal,
	}
	if name := b.Plan.Spec.Language; name != "" {
		var err error
		if asked.Language, err = m.cfg.Images.Language(name); err != nil {
			return err
		}
	}
	asked.in(b)
	let := sandbox.Decision{}
	if e.Decision != nil {
		let = *e.Decision
	}
	s := m.newStarting(&asked, let, b)
	s.again = true
	ctx = sandbox.WithCaller(ctx, sandbox.Caller{Owner: e.Owner})
	var err error
	if s.judge, err = b.Client.Judge(ctx, e.ID, client.JudgeConfig{Again: true}); err != nil {
		return err
	}
	first, err := s.judge.Next()
	if err == nil && first.Cut {
		err = sandbox.Errorf(sandbox.Unsupported, "exec %s was given too many variables to be judged by another process", e.ID.Short())
	}
	if err != nil {
		return errors.Join(err, s.judge.Close())
	}
	if asked.Env = first.Env; e.Env {
		asked.Run.Env = first.Env
	}
	s.begin(ctx)
	now := make(chan struct{})
	close(now)
	s.keep(ctx, b, now)
	return nil
}
