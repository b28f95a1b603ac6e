package e2b

import (
	"context"
	"errors"
	"hash/fnv"
	"net/http"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// firstNumber is beyond the numbers of processes: from there on they are ours, of
// commands that a person is asked about before they are processes.
const firstNumber = 1 << 22

// lookEvery is how often a command that does not start is looked for among questions.
const lookEvery = time.Second

// waiting names a command that is not started yet.
type waiting struct {
	box    sandbox.ID
	number uint32
}

// errKilled is why a command never started that its client killed while it waited.
var errKilled = errors.New("killed")

// begin starts a command. Clients give up on one whose start takes long, and take
// nothing before it: once a person is asked, it is told as started, under a number of
// ours, and kept alive. told is that number, or 0.
func (s *Server) begin(ctx context.Context, h http.Header, run sandbox.Run, to *sender[processEvent]) (e sandbox.ExecRecord, told uint32, err error) {
	v, number := viewFrom(ctx), numberOf(sandbox.NewID())
	if run.Labels == nil {
		run.Labels = sandbox.Labels{}
	}
	run.Labels[labelNumber] = strconv.FormatUint(uint64(number), 10)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	go func() { // it ends with what is asked, or with ctx
		defer close(done)
		e, err = s.svc.StartExec(ctx, v.Name, run, sandbox.Local{})
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			if err != nil && errors.Is(context.Cause(ctx), errKilled) {
				err = errKilled
			}
			return e, told, err
		case <-tick.C:
		}
		if told != 0 {
			continue
		}
		asked, listErr := s.svc.Approvals(ctx, sandbox.ApprovalFilter{States: []sandbox.ApprovalState{sandbox.ApprovalPending}, Labels: sandbox.Labels{labelNumber: run.Labels[labelNumber]}})
		if listErr != nil {
			s.cfg.Log.Debug("e2b: look for the question about a command", "error", listErr)
		}
		if len(asked) == 0 {
			continue
		}
		told = number
		s.waiting.Store(waiting{v.ID, number}, cancel)
		defer s.waiting.Delete(waiting{v.ID, number})
		if to.send(&processEvent{event{Start: &started{told}}}) != nil {
			cancel(nil) // its client is gone
		}
		to.keepAlive(h, &processEvent{event{KeepAlive: &empty{}}})
	}
}

// numberOf is a number for a command.
func numberOf(id sandbox.ID) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash never fails
	return firstNumber + h.Sum32()>>2
}

// killWaiting ends a command that waits for an answer, and reports whether it did.
func (s *Server) killWaiting(ctx context.Context, by *selector) bool {
	if by == nil || by.PID == nil {
		return false
	}
	cancel, ok := s.waiting.Load(waiting{viewFrom(ctx).ID, *by.PID})
	if ok {
		cancel.(context.CancelCauseFunc)(errKilled) //nolint:forcetypeassert // begin stores nothing else
	}
	return ok
}
