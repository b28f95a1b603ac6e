package box

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Box is one running sandbox, with this process's connection to its agent.
// [Maker.New] makes it; one of a session that runs already is reached by
// [Maker.Reach], by any process that uses the session. It is safe for concurrent
// use; its fields are not changed any more.
type Box struct {
	ID       sandbox.ID
	Instance runtimes.Instance
	Client   *client.Client
	Plan     runtimes.Plan
	Secret   []byte     // of its agent
	Session  sandbox.ID // whose it is; "" for one that goes with its caller
	Owner    string     // whose that is, or who asked for it
	Labels   sandbox.Labels
	ready    Ready       // of a pool, which destroys it; nil of others
	used     atomic.Bool // something ran in it
	ran      atomic.Bool // something was to run in it
	lent     atomic.Bool // memory on its account may be held outside
	running  underWay
	dialed   sync.Map // ports that were connected to
}

// FirstDial reports whether nobody has connected to a port of it before, by this value.
func (b *Box) FirstDial(port int) bool {
	_, known := b.dialed.LoadOrStore(port, true)
	return !known
}

// Lent reports whether an answer was taken out of it as a file, which counts against its
// memory for as long as anybody has it.
func (b *Box) Lent() bool { return b.lent.Load() }

// EndPatience bounds the end of one box. It runs although its caller may have
// given up.
const EndPatience = 60 * time.Second

// End destroys the box, whatever became of ctx. One that a pool had is destroyed by
// that, and not waited for: nothing new runs in it.
func (b *Box) End(ctx context.Context) error {
	if ready := b.ready; ready != nil {
		b.ready = nil
		if ready.Over() == nil {
			if b.Client != nil {
				_ = b.Client.Close() // its sandbox is going
			}
			return nil
		}
	}
	if b.Instance == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), EndPatience)
	defer cancel()
	err := b.Instance.Destroy(ctx)
	if b.Client != nil {
		_ = b.Client.Close() // its sandbox is gone
	}
	return err
}

// explainPatience bounds the search for why a sandbox went away.
const explainPatience = 10 * time.Second

// Explain asks the runtime what became of a sandbox whose agent is gone.
func (b *Box) Explain(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainPatience)
	defer cancel()
	exit, err := b.Instance.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return "the container runs on"
	case err != nil:
		return "the engine cannot say why: " + err.Error()
	}
	return exit.Cause
}

// ErrEnded is in the error of a connection to what is not there any more. An
// agent that does not answer, or an engine that does not, says no such thing.
var ErrEnded = errors.New("the sandbox has ended")

// Whether asks the runtime if a box whose agent cannot be reached has ended. What
// still runs is nobody's to give up.
func Whether(ctx context.Context, inst runtimes.Instance, unreached error) error {
	ctx, cancel := context.WithTimeout(ctx, explainPatience)
	defer cancel()
	exit, err := inst.Wait(ctx)
	switch {
	case err == nil:
		return sandbox.Errorf(sandbox.Unavailable, "%w: %s", ErrEnded, exit.Cause)
	case ctx.Err() != nil:
		return sandbox.Errorf(sandbox.Unavailable, "its agent does not answer: %w", unreached).
			WithHint("try again; if it stays so, end its sandbox with docker rm -f, and the next use makes a new one")
	}
	return errors.Join(err, unreached)
}

// FirstUse reports whether nothing ran in the box so far, once.
func (b *Box) FirstUse() bool { return !b.used.Swap(true) }
