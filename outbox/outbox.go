// Package outbox delivers letters to receivers outside: a letter is kept in the
// store, in the same transaction as what it tells of, until its receiver has
// taken it. Whichever process has that receiver delivers it, so that nothing is
// lost while the receiver is down or after its poster has died. A receiver gets
// each letter at least once, and mostly in order.
package outbox

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Receiver takes letters. It is called from one goroutine.
type Receiver interface {
	// Deliver hands over the letters, the oldest first, and returns once they are
	// taken, all or none.
	Deliver(ctx context.Context, letters []sandbox.Letter) error
	Close() error
}

// Store is what keeps the letters.
type Store interface {
	Apply(ctx context.Context, c sandbox.Transaction) error
	TakeLetters(ctx context.Context, to string, now, until time.Time, most int) ([]sandbox.Letter, error)
}

// Config joins what an outbox works with. Store is required.
type Config struct {
	Store     Store
	Receivers map[string]Receiver // by the name that letters have in To
	Couriers  map[string]Courier  // likewise; what becomes of a letter is theirs to say
	// Age is how old a letter becomes before it is given up; 0 is one day.
	Age time.Duration
	// Patience bounds the delivery of what waits when the outbox is closed; 0 is
	// five seconds. What is left then waits for the next process.
	Patience time.Duration
	Now      func() time.Time
	Log      *slog.Logger // nil discards
}

// Outbox delivers. It is safe for concurrent use. Its owner closes it.
type Outbox struct {
	cfg    Config
	cancel context.CancelFunc
	ctx    context.Context
	done   chan struct{} // closed when Close begins
	once   sync.Once
	tasks  sync.WaitGroup
	kicks  []chan struct{}
	err    error
}

const (
	// batch is how many letters are handed over at once.
	batch = 128
	// rest is how often the store is asked for letters of other processes.
	rest = 2 * time.Second
	// hold is how long letters are ours once taken; sendPatience, which is shorter,
	// bounds one delivery.
	hold         = time.Minute
	sendPatience = 30 * time.Second
	// firstPause and lastPause are between attempts that fail.
	firstPause = 250 * time.Millisecond
	lastPause  = 10 * time.Second
)

// New checks a Config and begins to deliver. Errors: Invalid.
func New(cfg Config) (*Outbox, error) {
	if cfg.Store == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "outbox: no store")
	}
	cfg.Age, cfg.Patience = cmp.Or(cfg.Age, 24*time.Hour), cmp.Or(cfg.Patience, 5*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	o := &Outbox{cfg: cfg, done: make(chan struct{})}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	for name, r := range cfg.Receivers {
		kick := make(chan struct{}, 1)
		o.kicks = append(o.kicks, kick)
		o.tasks.Go(func() { o.serve(name, r, kick) })
	}
	for name, c := range cfg.Couriers {
		kick := make(chan struct{}, 1)
		o.kicks = append(o.kicks, kick)
		o.tasks.Go(func() { o.carry(name, c, kick) })
	}
	return o, nil
}

// Names are those of the receivers.
func (o *Outbox) Names() []string {
	names := make([]string, 0, len(o.cfg.Receivers))
	for name := range o.cfg.Receivers {
		names = append(names, name)
	}
	return names
}

// Posted says that there are new letters. It returns at once.
func (o *Outbox) Posted() {
	for _, k := range o.kicks {
		select {
		case k <- struct{}{}:
		default:
		}
	}
}

// Close delivers what waits, within its patience, and closes the receivers. What
// is posted from then on waits for another process. It is idempotent.
func (o *Outbox) Close() error {
	o.once.Do(func() {
		close(o.done)
		slow := time.AfterFunc(o.cfg.Patience, o.cancel)
		o.tasks.Wait()
		slow.Stop()
		o.cancel()
		for name, r := range o.cfg.Receivers {
			if err := r.Close(); err != nil {
				o.cfg.Log.Warn("a receiver failed at its end", "receiver", name, "error", err)
			}
		}
	})
	return o.err
}

// serve delivers to one receiver until the outbox is closed and nothing is due,
// or its time is over.
func (o *Outbox) serve(name string, r Receiver, kick <-chan struct{}) {
	pause := firstPause
	for {
		closing := o.closing() // nothing is posted after that
		sent, err := o.deliver(name, r)
		if err != nil && o.ctx.Err() == nil {
			o.cfg.Log.Warn("letters are not taken, and wait", "receiver", name, "error", err)
		}
		switch {
		case o.ctx.Err() != nil, closing && sent == 0:
			return
		case err != nil:
			o.wait(nil, pause)
			pause = min(2*pause, lastPause)
		case sent > 0:
			pause = firstPause
		default:
			o.wait(kick, rest)
		}
	}
}

func (o *Outbox) closing() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// wait returns when there may be something to do.
func (o *Outbox) wait(kick <-chan struct{}, pause time.Duration) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-kick:
	case <-o.done:
	case <-o.ctx.Done():
	}
}

// deliver hands over the letters that are due, and returns how many.
func (o *Outbox) deliver(name string, r Receiver) (int, error) {
	now := o.cfg.Now()
	letters, err := o.cfg.Store.TakeLetters(o.ctx, name, now, now.Add(hold), batch)
	if err != nil || len(letters) == 0 {
		return 0, err
	}
	letters, old := o.young(letters, now)
	if len(old) > 0 {
		o.cfg.Log.Error("letters were given up: their receiver did not take them in time", "receiver", name, "letters", len(old))
		if err := o.cfg.Store.Apply(o.ctx, sandbox.Transaction{DeleteLetters: old}); err != nil {
			return 0, err
		}
	}
	if len(letters) == 0 {
		return len(old), nil
	}
	var ids []int64
	for _, l := range letters {
		ids = append(ids, l.ID)
	}
	ctx, cancel := context.WithTimeout(o.ctx, sendPatience)
	err = r.Deliver(ctx, letters)
	cancel()
	// What became of it is written down whatever becomes of ctx.
	late, end := context.WithTimeout(context.WithoutCancel(o.ctx), sendPatience)
	defer end()
	if err == nil {
		return len(ids), o.cfg.Store.Apply(late, sandbox.Transaction{DeleteLetters: ids})
	}
	var again sandbox.Transaction
	for _, id := range ids {
		again.RetryLetters = append(again.RetryLetters, sandbox.LetterRetry{ID: id, Next: o.cfg.Now()})
	}
	if failed := o.cfg.Store.Apply(late, again); failed != nil {
		o.cfg.Log.Warn("letters wait for longer than they should", "receiver", name, "error", failed)
	}
	return 0, err
}

// young leaves out what is too old.
func (o *Outbox) young(letters []sandbox.Letter, now time.Time) (young []sandbox.Letter, old []int64) {
	for _, l := range letters {
		if now.Sub(l.Posted) > o.cfg.Age {
			old = append(old, l.ID)
		} else {
			young = append(young, l)
		}
	}
	return young, old
}
