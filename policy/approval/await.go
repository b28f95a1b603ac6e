package approval

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// latePatience bounds the writing of what became of a question whose asker has
// given up.
const latePatience = 10 * time.Second

// await asks everybody whom there is to ask, and waits for the first answer,
// here or by another process.
func (d *Desk) await(ctx context.Context, a sandbox.Approval, ask sandbox.Asker) (*sandbox.ApprovedBy, string, error) {
	asking, cancel := context.WithDeadline(ctx, time.Now().Add(d.c.Patience))
	var askers sync.WaitGroup
	defer askers.Wait()
	defer cancel()
	failed := make(chan error, 2)
	for _, who := range []sandbox.Asker{ask, d.c.Approver} {
		if who == nil {
			continue
		}
		askers.Go(func() {
			if err := d.hear(asking, a, who); err != nil {
				failed <- err
			}
		})
	}
	tick := time.NewTicker(d.c.Poll)
	defer tick.Stop()
	trouble := ""
	for {
		now, err := d.c.Store.Approval(context.WithoutCancel(ctx), a.ID)
		if err != nil {
			return nil, "", err
		}
		if now.State != sandbox.ApprovalPending {
			return d.settled(ctx, now, trouble)
		}
		select {
		case err := <-failed:
			trouble = err.Error()
			if ask == nil || !d.others() {
				// Who was to answer cannot: nobody waits for nothing.
				return d.close(ctx, a, sandbox.ApprovalExpired, "the approver failed: "+trouble)
			}
		case <-tick.C:
		case <-asking.Done():
			if ctx.Err() != nil {
				askers.Wait() // for the no of who was asked
				_, _, err := d.close(ctx, a, sandbox.ApprovalWithdrawn, "")
				return nil, "", errors.Join(context.Cause(ctx), err)
			}
			return d.close(ctx, a, sandbox.ApprovalExpired, refusedExpired)
		}
	}
}

// hear asks one asker and writes its answer down. Another's that came first is
// no error.
func (d *Desk) hear(ctx context.Context, a sandbox.Approval, who sandbox.Asker) error {
	ans, err := who(ctx, a)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	ans.ID = a.ID
	_, err = d.Answer(context.WithoutCancel(ctx), ans)
	if errors.Is(err, sandbox.Conflict) {
		return nil
	}
	return err
}

// settled is what an answered question comes to.
func (d *Desk) settled(ctx context.Context, a sandbox.Approval, trouble string) (*sandbox.ApprovedBy, string, error) {
	switch a.State {
	case sandbox.ApprovalApproved:
		by, err := d.use(ctx, a)
		if errors.Is(err, sandbox.Conflict) {
			return nil, "its approval was used by another run", nil
		}
		return by, "", err
	case sandbox.ApprovalDenied:
		why := "denied by " + a.By
		if a.Note != "" {
			why += ": " + a.Note
		}
		return nil, why, nil
	case sandbox.ApprovalUsed:
		return nil, "its approval was used by another run", nil
	case sandbox.ApprovalPending, sandbox.ApprovalExpired, sandbox.ApprovalWithdrawn:
	}
	switch {
	case trouble != "":
		return nil, "the approver failed: " + trouble, nil
	case a.Note != "":
		return nil, a.Note, nil
	}
	return nil, refusedExpired, nil
}

// close ends a question that nobody answered; where somebody did meanwhile,
// that counts.
func (d *Desk) close(ctx context.Context, a sandbox.Approval, to sandbox.ApprovalState, why string) (*sandbox.ApprovedBy, string, error) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), latePatience)
	defer cancel()
	a.State, a.Answered, a.Note = to, d.c.Now().UTC(), why
	err := d.c.Store.Apply(late, sandbox.Transaction{
		MoveApproval: &sandbox.ApprovalMove{From: sandbox.ApprovalPending, To: a}, Events: []sandbox.Event{d.answered(a)},
	})
	if errors.Is(err, sandbox.Conflict) && ctx.Err() == nil {
		now, err := d.c.Store.Approval(late, a.ID)
		if err != nil {
			return nil, "", err
		}
		return d.settled(ctx, now, "")
	}
	if errors.Is(err, sandbox.Conflict) {
		err = nil
	}
	return nil, why, err
}
