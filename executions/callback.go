package executions

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Attempts to call back: the pauses between them triple, from the first to the
// last, so that the last one is some six hours after the end.
const (
	mostAttempts  = 12
	firstPause    = 5 * time.Second
	lastPause     = time.Hour
	readPause     = 10 * time.Second // where the store could not be read
	headerEvent   = "X-Caisson-Event"
	headerID      = "X-Caisson-Delivery"
	headerAttempt = "X-Caisson-Attempt"
)

// What is posted, by the name in its header and its body.
const (
	tellsEnd  = "execution.ended"
	tellsBeat = "execution.heartbeat"
)

// letterBody is what a letter about an execution holds: what is posted is read when
// it is, so that no secret and no result is kept twice.
type letterBody struct {
	Execution sandbox.ID `json:"execution"`
}

func letterAbout(id sandbox.ID, now time.Time) sandbox.Letter {
	body, err := json.Marshal(letterBody{id})
	if err != nil {
		body = nil // a text always encodes
	}
	return sandbox.Letter{To: Courier, Body: body, Posted: now}
}

// news is what is posted.
type news struct {
	Event     string            `json:"event"`
	Delivery  sandbox.ID        `json:"delivery"`
	Execution sandbox.Execution `json:"execution"`
	// Beat counts heartbeats, from 1; Elapsed is how long it has run by then, and Use
	// what its sandbox uses, where that is known yet.
	Beat    int              `json:"beat,omitempty"`
	Elapsed sandbox.Duration `json:"elapsed_ms,omitempty"`
	Use     *sandbox.Reading `json:"use,omitempty"`
}

// Carry tells a submitter of the end of an execution, once: it is a courier of the
// outbox.
func (b *Book) Carry(ctx context.Context, l sandbox.Letter) sandbox.LetterOutcome {
	again := sandbox.LetterOutcome{Next: b.now().Add(readPause)}
	var about letterBody
	if err := json.Unmarshal(l.Body, &about); err != nil {
		b.cfg.Log.Error("a letter about an execution cannot be read, and is dropped", "error", err)
		return sandbox.LetterOutcome{}
	}
	e, err := b.cfg.Store.Execution(ctx, about.Execution)
	switch {
	case errors.Is(err, sandbox.NotFound):
		return sandbox.LetterOutcome{}
	case err != nil:
		return again
	case e.Callback == nil || e.Callback.State != sandbox.CallbackPending:
		return sandbox.LetterOutcome{}
	}
	asked, err := b.cfg.Store.ExecutionOptions(ctx, e.ID)
	if err != nil || asked.Callback == nil {
		return again
	}
	c := *e.Callback
	err = b.post(ctx, *asked.Callback, c.Attempts+1, news{Event: tellsEnd, Delivery: c.Delivery, Execution: e})
	if errors.Is(ctx.Err(), context.Canceled) && err != nil {
		return sandbox.LetterOutcome{Next: b.now()} // the server stops: it was no attempt
	}
	return b.settleCallback(e, c, err)
}

// settleCallback is what an attempt comes to.
func (b *Book) settleCallback(e sandbox.Execution, c sandbox.Callback, err error) sandbox.LetterOutcome {
	out, now := sandbox.LetterOutcome{}, b.now()
	move := &sandbox.ExecutionMove{From: []sandbox.ExecutionState{e.State}, CallbackFrom: sandbox.CallbackPending}
	c.Attempts++
	c.Next, c.Error = time.Time{}, ""
	switch {
	case err == nil:
		c.State, c.Settled = sandbox.CallbackDelivered, now
		move.Options = &sandbox.ExecutionOptions{} // its secret is not needed any more
	case errors.Is(err, sandbox.Denied) || c.Attempts >= mostAttempts:
		c.State, c.Settled, c.Error = sandbox.CallbackDead, now, told(err)
		b.cfg.Log.Warn("a callback was given up", "execution", e.ID, "address", c.Address, "attempts", c.Attempts, "error", err)
	default:
		c.Error, c.Next = told(err), now.Add(pauseAfter(c.Attempts))
		out.Next = c.Next
	}
	e.Run, e.Result, e.Callback = nil, nil, &c // these stay as they are
	move.To = e
	out.Beside.MoveExecution = move
	return out
}

// told is an error with what helps, in a line.
func told(err error) string {
	if hint := sandbox.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

func pauseAfter(attempts int) time.Duration {
	pause := firstPause
	for range attempts - 1 {
		pause = min(3*pause, lastPause)
	}
	return pause
}

// post posts news once.
func (b *Book) post(ctx context.Context, to sandbox.CallbackOptions, attempt int, n news) error {
	n.Execution = n.Execution.ShownTo(n.Execution.Caller())
	n.Execution.Callback = nil
	body, err := json.Marshal(n)
	if err != nil {
		return sandbox.Errorf(sandbox.Internal, "write what is posted: %w", err)
	}
	secret := []byte(to.Secret)
	if len(secret) == 0 {
		secret = b.cfg.Secret
	}
	return b.cfg.Poster.Post(ctx, to.URL, secret, map[string]string{
		headerEvent: n.Event, headerID: string(n.Delivery), headerAttempt: strconv.Itoa(attempt),
	}, body)
}

// heartbeat tells a submitter, as often as asked for, that an execution runs, until
// the returned function is called. One that is late takes the place of the next,
// and none is tried again.
func (s *server) heartbeat(ctx context.Context, e sandbox.Execution, to *sandbox.CallbackOptions) (quiet func()) {
	if to == nil || to.Heartbeat <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		began := time.Now()
		tick := time.NewTicker(time.Duration(to.Heartbeat))
		defer tick.Stop()
		for beat := 1; ; beat++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			n := news{Event: tellsBeat, Delivery: sandbox.NewID(), Execution: e, Beat: beat, Elapsed: sandbox.Duration(time.Since(began).Round(time.Millisecond))}
			n.Execution.Run = nil
			n.Execution.Exec, n.Use = s.useOf(ctx, e)
			if err := s.b.post(ctx, *to, 1, n); err != nil && ctx.Err() == nil {
				s.b.cfg.Log.Debug("a heartbeat was not taken", "execution", e.ID, "error", err)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// mostReadings is how many of the newest readings a sandbox is looked for in.
const mostReadings = 500

// useOf finds what the sandbox of an execution uses, as far as that is known.
func (s *server) useOf(ctx context.Context, e sandbox.Execution) (sandbox.ID, *sandbox.Reading) {
	execs, err := s.runner.ListExecs(ctx, sandbox.ExecFilter{Session: e.Session, Labels: labelOf(e.ID), Limit: 1})
	if err != nil || len(execs) == 0 {
		return "", nil
	}
	readings, err := s.runner.Readings(ctx, sandbox.ReadingFilter{Live: e.Session != "", Session: e.Session, Limit: mostReadings})
	if err == nil {
		for _, r := range readings {
			if r.Sandbox == execs[0].Sandbox {
				return execs[0].ID, &r
			}
		}
	}
	return execs[0].ID, nil
}
