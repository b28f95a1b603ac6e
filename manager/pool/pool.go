package pool

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Config says what is kept ready. Make is required.
type Config struct {
	// Wants are the sandboxes that are always kept, each for runs of its language with
	// the default limits. Runtimes are named.
	Wants []sandbox.PoolWant
	// Make makes a sandbox of a kind, and says what image it has.
	Make func(ctx context.Context, k Kind) (runtimes.Instance, sandbox.Image, error)
	// Idle is after how long without a question a shelf is let down: to one where its
	// owner wants it, to none else. 0 is ten minutes.
	Idle time.Duration
	// Workers is how many sandboxes are made, or destroyed, at once. 0 is one for two
	// processors.
	Workers int
	// Calm is how long nobody must have asked before one is made, and Hurry for how
	// long that is waited for. 0 is 50 ms and a second.
	Calm, Hurry time.Duration
	// Beat is how often each sandbox that is ready is heard of; its agent gives up
	// after a minute. 0 is 20 s.
	Beat time.Duration
	Now  func() time.Time // nil is [time.Now]
	Log  *slog.Logger     // nil discards
}

// Pool is a pool of sandboxes. Its methods are safe for concurrent use, and
// [Pool.Run] fills it.
type Pool struct {
	cfg   Config
	kick  chan struct{} // the filler has something to look at
	tasks sync.WaitGroup
	work  chan struct{} // a place for each sandbox that is destroyed

	mu     sync.Mutex
	sizes  map[[2]string]int // of languages and runtimes that are wanted
	all    []*shelf
	making int
	asked  time.Time // when last
	needed time.Time // since when something is missing; zero where nothing is
	closed bool
}

// New checks a Config. It starts nothing. Errors: Invalid.
func New(cfg Config) (*Pool, error) {
	if cfg.Make == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "pool: nobody makes sandboxes")
	}
	cfg.Idle, cfg.Calm, cfg.Hurry = cmp.Or(cfg.Idle, 10*time.Minute), cmp.Or(cfg.Calm, 50*time.Millisecond), cmp.Or(cfg.Hurry, time.Second)
	cfg.Workers, cfg.Beat = cmp.Or(cfg.Workers, max(1, runtime.NumCPU()/2)), cmp.Or(cfg.Beat, 20*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &Pool{cfg: cfg, kick: make(chan struct{}, 1), work: make(chan struct{}, cfg.Workers), sizes: map[[2]string]int{}}
	for _, w := range cfg.Wants {
		if w.Language == "" || w.Runtime == "" || w.Size <= 0 {
			return nil, sandbox.Errorf(sandbox.Invalid, "pool: %d sandboxes of language %q and runtime %q", w.Size, w.Language, w.Runtime)
		}
		p.sizes[[2]string{w.Language, w.Runtime}] = w.Size
		none := [2]string{"", w.Runtime} // of images without a language
		p.sizes[none] = max(p.sizes[none], w.Size)
		kind, _ := KindOf(w.Runtime, "", sandbox.Spec{Language: w.Language})
		p.all = append(p.all, &shelf{kind: kind, most: w.Size, wanted: true, since: cfg.Now()})
	}
	return p, nil
}

// mostExtra is how many kinds of a language and runtime are kept beside the wanted
// one.
const mostExtra = 3

// Take returns a sandbox that can become what a runtime of that name would make of a
// spec, or nil where none is ready. named is an image in place of the language's, or
// "". Its taker is the only one who ever has it.
func (p *Pool) Take(_ context.Context, runtime, named string, spec sandbox.Spec) box.Ready {
	k, can := KindOf(runtime, named, spec)
	if !can {
		return nil
	}
	e := p.take(k)
	if e == nil {
		return nil
	}
	return &loan{p, e}
}

func (p *Pool) take(k Kind) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := p.sizes[[2]string{k.Language, k.Runtime}]
	if most == 0 || p.closed {
		return nil
	}
	defer p.wake()
	p.asked = p.cfg.Now()
	return p.shelfLocked(k.ofAnyImage(), most).ask(k, p.asked)
}

// shelfLocked is the shelf of a kind. Where it has none yet, it takes the place of the
// extra one that was not asked for the longest.
func (p *Pool) shelfLocked(k Kind, most int) *shelf {
	oldest, extra := -1, 0
	for i, s := range p.all {
		if s.kind == k {
			return s
		}
		if s.wanted || s.kind.Language != k.Language || s.kind.Runtime != k.Runtime {
			continue
		}
		if extra++; oldest < 0 || s.asks[len(s.asks)-1].Before(p.all[oldest].asks[len(p.all[oldest].asks)-1]) {
			oldest = i
		}
	}
	if extra >= mostExtra {
		for _, e := range p.all[oldest].ready {
			p.endLocked(e)
		}
		p.all[oldest].ready, p.all[oldest].dropped = nil, true
		p.all = slices.Delete(p.all, oldest, oldest+1)
	}
	s := &shelf{kind: k, most: most, since: p.cfg.Now()}
	p.all = append(p.all, s)
	return s
}

// Shelves says what there is.
func (p *Pool) Shelves(context.Context) ([]sandbox.PoolShelf, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := []sandbox.PoolShelf{}
	for _, s := range p.all {
		list = append(list, s.state(p.cfg.Now(), p.cfg.Idle))
	}
	return list, nil
}

// wake has the filler look.
func (p *Pool) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// loan is a sandbox that somebody has taken.
type loan struct {
	p *Pool
	e *entry
}

// Handle implements [box.Ready].
func (l *loan) Handle() runtimes.Handle { return l.e.instance.Handle() }

// Kept implements [box.Ready]: the pool has forgotten it already.
func (l *loan) Kept() {}

// Over implements [box.Ready].
func (l *loan) Over() error {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.p.closed {
		return sandbox.Errorf(sandbox.Unavailable, "the pool is closed")
	}
	l.p.endLocked(l.e)
	return nil
}
