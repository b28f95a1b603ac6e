package executions

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// DeadLetters returns the callbacks that were given up, those of the newest
// executions first.
func (b *Book) DeadLetters(ctx context.Context, f sandbox.DeadLetterFilter) ([]sandbox.DeadLetter, error) {
	list, err := b.cfg.Store.Executions(ctx, sandbox.ExecutionFilter{Callback: sandbox.CallbackDead, Owner: f.Owner, Labels: f.Labels, After: f.After, Limit: f.Limit})
	letters := make([]sandbox.DeadLetter, 0, len(list))
	for _, e := range list {
		letters = append(letters, sandbox.DeadLetter{Execution: e.ID, Owner: e.Owner, Labels: e.Labels, State: e.State, Callback: *e.Callback})
	}
	return letters, err
}

// Resend has the callback of an execution that was given up tried again, as often
// as at first. Errors: NotFound, Conflict for one that is not dead.
func (b *Book) Resend(ctx context.Context, id sandbox.ID) (sandbox.DeadLetter, error) {
	e, err := b.cfg.Store.Execution(ctx, id)
	if err != nil {
		return sandbox.DeadLetter{}, err
	}
	if e.Callback == nil || e.Callback.State != sandbox.CallbackDead {
		return sandbox.DeadLetter{}, sandbox.Errorf(sandbox.Conflict, "execution %s has no dead letter", id.Short()).WithHint("see them with: caisson execution dead-letters list")
	}
	c := *e.Callback
	c.State, c.Attempts, c.Error, c.Settled = sandbox.CallbackPending, 0, "", time.Time{}
	e.Run, e.Result, e.Callback = nil, nil, &c
	move := &sandbox.ExecutionMove{From: []sandbox.ExecutionState{e.State}, CallbackFrom: sandbox.CallbackDead, To: e}
	err = b.cfg.Store.Apply(ctx, sandbox.Transaction{MoveExecution: move, PostLetters: []sandbox.Letter{letterAbout(id, b.now())}})
	if errors.Is(err, sandbox.Conflict) {
		return sandbox.DeadLetter{}, sandbox.Errorf(sandbox.Conflict, "the dead letter of execution %s is being sent again", id.Short())
	}
	if err == nil {
		b.cfg.Posted()
	}
	return sandbox.DeadLetter{Execution: e.ID, Owner: e.Owner, Labels: e.Labels, State: e.State, Callback: c}, err
}
