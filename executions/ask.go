package executions

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/sandbox"
)

// pollPause is how often other processes' doings are looked for.
const pollPause = time.Second

// Execution returns an execution with its result. While it is not over, and wait
// is not, it waits for its end. Errors: NotFound.
func (b *Book) Execution(ctx context.Context, id sandbox.ID, wait sandbox.Duration) (sandbox.Execution, error) {
	late := time.NewTimer(time.Duration(wait))
	defer late.Stop()
	for over := wait <= 0; ; {
		rung, leave := b.bell.listen(id)
		e, err := b.cfg.Store.Execution(ctx, id)
		if err != nil || e.State.Over() || over {
			leave()
			if err == nil && !e.State.Over() {
				err = b.look(ctx, &e)
			}
			return e, err
		}
		select {
		case <-rung:
		case <-time.After(pollPause): // another process may have moved it on
		case <-late.C:
			over = true
		case <-ctx.Done():
			leave()
			return e, ctx.Err()
		}
		leave()
	}
}

// look adds to an execution that is not over what is known of it right now.
func (b *Book) look(ctx context.Context, e *sandbox.Execution) error {
	if e.State == sandbox.ExecutionQueued {
		e.Waits = b.waits(e.Owner)
	}
	s := b.server()
	if s == nil || e.State != sandbox.ExecutionRunning || e.Exec != "" {
		return nil
	}
	list, err := s.runner.ListExecs(sandbox.WithCaller(ctx, e.Caller()), sandbox.ExecFilter{Session: e.Session, Labels: labelOf(e.ID), Limit: 1})
	if len(list) > 0 {
		e.Exec = list[0].ID
	}
	return err
}

// waits says why what an owner has queued cannot begin, where that is known; "" is
// for want of a worker.
func (b *Book) waits(owner string) string {
	if s := b.server(); s != nil {
		return s.why(owner)
	}
	unlock, ok, err := filelock.Try(b.cfg.Lock)
	if err != nil || !ok {
		return "" // somebody serves
	}
	unlock()
	return "no server of this state folder runs: start one with caisson serve"
}

// Executions returns those that a filter selects, the newest first, without their
// runs and results.
func (b *Book) Executions(ctx context.Context, f sandbox.ExecutionFilter) ([]sandbox.Execution, error) {
	return b.cfg.Store.Executions(ctx, f)
}

// Cancel ends an execution: one that is queued at once, one that runs as soon as
// its server can. Errors: NotFound, Conflict for one that is over in another way.
func (b *Book) Cancel(ctx context.Context, id sandbox.ID) (sandbox.Execution, error) {
	for {
		e, err := b.cfg.Store.Execution(ctx, id)
		switch {
		case err != nil:
			return e, err
		case e.State == sandbox.ExecutionCanceled || e.CancelAsked:
			return e, nil
		case e.State.Over():
			return e, sandbox.Errorf(sandbox.Conflict, "execution %s has ended: it %s", id.Short(), e.State).WithHint("see it with: caisson execution show %s", id.Short())
		case e.State == sandbox.ExecutionQueued:
			e.State, e.Ended, e.Exit = sandbox.ExecutionCanceled, b.now(), sandbox.Exit{Reason: sandbox.ReasonCanceled}.Coded()
			err = b.settle(ctx, sandbox.ExecutionQueued, &e)
		default:
			e.CancelAsked = true
			move := sandbox.ExecutionMove{From: []sandbox.ExecutionState{sandbox.ExecutionRunning}, To: e}
			if err = b.cfg.Store.Apply(ctx, sandbox.Transaction{MoveExecution: &move}); err == nil {
				b.stop(id)
			}
		}
		if !errors.Is(err, sandbox.Conflict) { // it moved on meanwhile: look again
			return e, err
		}
	}
}

// stop cancels what runs in this process.
func (b *Book) stop(id sandbox.ID) {
	b.mu.Lock()
	l := b.live[id]
	b.mu.Unlock()
	if l != nil {
		l.cancel(errCanceled)
	}
}

// settle writes down that an execution is over, has its submitter called back, and
// lets go of what only its run needed.
func (b *Book) settle(ctx context.Context, from sandbox.ExecutionState, e *sandbox.Execution) error {
	asked, err := b.cfg.Store.ExecutionOptions(ctx, e.ID)
	if err != nil {
		return err
	}
	e.CancelAsked, e.Expires = false, b.now().Add(time.Duration(e.Keep))
	move := sandbox.ExecutionMove{From: []sandbox.ExecutionState{from}, Options: &sandbox.ExecutionOptions{Callback: asked.Callback}}
	c := sandbox.Transaction{MoveExecution: &move, Events: []sandbox.Event{b.event(*e)}}
	if e.Callback != nil {
		pending := *e.Callback
		pending.State = sandbox.CallbackPending
		e.Callback = &pending
		c.PostLetters = []sandbox.Letter{letterAbout(e.ID, b.now())}
	}
	move.To = *e
	if err := b.cfg.Store.Apply(ctx, c); err != nil {
		return err
	}
	b.bell.ring(e.ID)
	if e.Callback != nil {
		b.cfg.Posted()
	}
	return nil
}

func labelOf(id sandbox.ID) sandbox.Labels { return sandbox.Labels{sandbox.ExecutionLabel: string(id)} }
