package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Courier carries letters that go each to an address of its own: what becomes of
// one does not concern the others, and none waits for another to be taken.
type Courier interface {
	// Carry makes one attempt, within ctx, and says what came of it. It is called
	// from several goroutines.
	Carry(ctx context.Context, l sandbox.Letter) sandbox.LetterOutcome
}

const (
	// mostCarried bounds the letters of a courier that are under way.
	mostCarried = 32
	// carryPatience bounds one attempt; carryHold is how long a letter is ours once
	// taken.
	carryPatience = 12 * time.Second
	carryHold     = 20 * time.Second
)

// carry has letters carried until the outbox is closed and nothing is due, or its
// time is over.
func (o *Outbox) carry(name string, c Courier, kick <-chan struct{}) {
	slots, freed := make(chan struct{}, mostCarried), make(chan struct{}, 1)
	for {
		closing := o.closing() // nothing is posted after that
		letters, err := o.take(name, mostCarried-len(slots))
		if err != nil && o.ctx.Err() == nil {
			o.cfg.Log.Warn("letters cannot be read, and wait", "courier", name, "error", err)
		}
		for _, l := range letters {
			slots <- struct{}{}
			o.tasks.Go(func() {
				o.carryOne(name, c, l)
				<-slots
				select {
				case freed <- struct{}{}:
				default:
				}
			})
		}
		switch {
		case o.ctx.Err() != nil, closing && len(letters) == 0 && len(slots) < mostCarried:
			return // those that are under way are waited for
		case closing:
			o.pause(freed)
		case len(slots) == mostCarried:
			o.wait(freed, rest)
		case len(letters) == 0:
			o.wait(kick, rest)
		}
	}
}

// pause waits for something to end while the outbox closes.
func (o *Outbox) pause(freed <-chan struct{}) {
	select {
	case <-freed:
	case <-o.ctx.Done():
	}
}

func (o *Outbox) take(name string, most int) ([]sandbox.Letter, error) {
	if most == 0 {
		return nil, nil
	}
	now := o.cfg.Now()
	return o.cfg.Store.TakeLetters(o.ctx, name, now, now.Add(carryHold), most)
}

// carryOne makes an attempt, and writes down what came of it.
func (o *Outbox) carryOne(name string, c Courier, l sandbox.Letter) {
	ctx, cancel := context.WithTimeout(o.ctx, carryPatience)
	out := c.Carry(ctx, l)
	cancel()
	late, end := context.WithTimeout(context.WithoutCancel(o.ctx), sendPatience)
	defer end()
	change := out.Beside
	if out.Next.IsZero() {
		change.DeleteLetters = append(change.DeleteLetters, l.ID)
	} else {
		change.RetryLetters = append(change.RetryLetters, sandbox.LetterRetry{ID: l.ID, Next: out.Next})
	}
	err := o.cfg.Store.Apply(late, change)
	if errors.Is(err, sandbox.Conflict) || errors.Is(err, sandbox.NotFound) { // what it tells of is gone
		err = o.cfg.Store.Apply(late, sandbox.Transaction{DeleteLetters: []int64{l.ID}})
	}
	if err != nil {
		o.cfg.Log.Warn("what came of a letter could not be written down", "courier", name, "error", err)
	}
}
