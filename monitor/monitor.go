package monitor

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/internal/feed"
	"github.com/caisson-dev/caisson/sandbox"
)

// Sandboxes are those that live in this process.
type Sandboxes interface {
	// Live lists them.
	Live() []sandbox.LiveSandbox
	// Sample reads what one uses now.
	Sample(ctx context.Context, id sandbox.ID) (sandbox.Sample, error)
	// Act does what an alert asks for. cause is for the results of what it ends.
	Act(ctx context.Context, id sandbox.ID, action sandbox.AlertAction, cause string) error
}

// Store is where what is found stands, for all processes.
type Store interface {
	Apply(ctx context.Context, c sandbox.Transaction) error
	Readings(ctx context.Context, f sandbox.ReadingFilter) ([]sandbox.Reading, error)
	Alerts(ctx context.Context, f sandbox.AlertFilter) ([]sandbox.Alert, error)
	Denied(ctx context.Context, since time.Time) (map[string]int, error)
}

// Config joins what a monitor works with. Sandboxes and Store are required.
type Config struct {
	Sandboxes Sandboxes
	Store     Store
	// Rules are laid over those of [Builtin].
	Rules []sandbox.AlertRule
	// Every is how often samples are taken; 0 is [DefaultEvery].
	Every time.Duration
	// Receivers are told of every alert, by letters of the store's outbox, and
	// Posted is called when there is one. nil is fine.
	Receivers []string
	Posted    func()
	Actor     string // for the audit
	Now       func() time.Time
	Log       *slog.Logger // nil discards
}

// How often samples are taken.
const (
	DefaultEvery = 2 * time.Second
	minEvery     = 50 * time.Millisecond
	// maxEvery, with the time that a look takes, leaves no sample older than five
	// seconds.
	maxEvery = 3 * time.Second
)

// Monitor watches. It is safe for concurrent use.
type Monitor struct {
	cfg   Config
	rules func() ([]*rule, error)
	feed  feed.Feed[sandbox.Alert]
	tasks sync.WaitGroup // actions under way

	// What follows belongs to the goroutine of Run.
	boxes  map[sandbox.ID]*box
	quiet  map[string]*box // sessions without a sandbox here of which runs were refused
	denied map[string]int  // runs within [denialWindow], by session
	strays time.Time       // when alerts of sandboxes that are gone were looked for
}

// box is what is known of one sandbox.
type box struct {
	live    sandbox.LiveSandbox
	reading sandbox.Reading
	before  *sandbox.Sample
	states  map[string]*state // by rule
}

// New checks a Config and starts nothing. The rules are read at once where some
// were given, and otherwise when the first sample is looked at. Errors: Invalid,
// as a [*RuleError] where it is a rule.
func New(cfg Config) (*Monitor, error) {
	if cfg.Sandboxes == nil || cfg.Store == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "monitor: sandboxes and a store are required")
	}
	cfg.Every = cmp.Or(cfg.Every, DefaultEvery)
	if cfg.Every < minEvery || cfg.Every > maxEvery {
		return nil, sandbox.Errorf(sandbox.Invalid, "samples every %v: it can be %v to %v", cfg.Every, minEvery, maxEvery)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Rules = slices.Clone(cfg.Rules)
	m := &Monitor{cfg: cfg, boxes: map[sandbox.ID]*box{}, quiet: map[string]*box{}}
	m.rules = sync.OnceValues(func() ([]*rule, error) { return compile(cfg.Rules) })
	if len(cfg.Rules) > 0 {
		if _, err := m.rules(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Subscribe returns alerts that fire or are resolved in this process, until the
// loop is left, ctx is done or the monitor ends. A slow subscriber holds nobody
// up: it loses the newest, and is told how many.
func (m *Monitor) Subscribe(ctx context.Context) iter.Seq[sandbox.AlertNews] {
	items := m.feed.Subscribe(ctx)
	return func(yield func(sandbox.AlertNews) bool) {
		for i := range items {
			if !yield(sandbox.AlertNews{Alert: i.Value, Lost: i.Lost}) {
				return
			}
		}
	}
}

// Run watches until ctx is done, then takes down what ended meanwhile, waits for
// actions under way, and ends the subscribers' loops. It is called once.
func (m *Monitor) Run(ctx context.Context) {
	defer m.feed.Close()
	defer m.tasks.Wait()
	tick := time.NewTicker(m.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			m.part(context.WithoutCancel(ctx))
			return
		case <-tick.C:
			m.look(ctx)
		}
	}
}

// look takes one sample of each sandbox and makes of them what there is to be
// made.
func (m *Monitor) look(ctx context.Context) {
	live := m.cfg.Sandboxes.Live()
	m.follow(ctx, live)
	m.countDenials(ctx)
	samples := m.sampleAll(ctx, live)
	if ctx.Err() != nil {
		return
	}
	var readings []sandbox.Reading
	var looked []*box
	for i, l := range live {
		b := m.boxes[l.ID]
		if samples[i] == nil {
			continue // it has just gone, or does not answer
		}
		b.sampled(*samples[i], l, m.denied[l.Session])
		readings = append(readings, b.reading)
		looked = append(looked, b)
	}
	looked = append(looked, m.refused(live)...)
	for _, b := range looked {
		m.judge(ctx, b)
	}
	if len(readings) > 0 {
		if err := m.cfg.Store.Apply(ctx, sandbox.Transaction{PutReadings: readings}); err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("samples cannot be kept", "error", err)
		}
	}
	m.resolveStrays(ctx)
}

// follow takes up sandboxes that are new, and leaves those that are gone. One of a
// session may have been sampled by another process, whose alerts go on here.
func (m *Monitor) follow(ctx context.Context, live []sandbox.LiveSandbox) {
	here, shared := map[sandbox.ID]bool{}, false
	for _, l := range live {
		here[l.ID] = true
		if m.boxes[l.ID] != nil {
			continue
		}
		b := newBox(l)
		if l.Session != "" {
			shared = true
			known, err := m.cfg.Store.Readings(ctx, sandbox.ReadingFilter{Session: l.Session})
			if err != nil && ctx.Err() == nil {
				m.cfg.Log.Warn("earlier samples cannot be read", "sandbox", l.ID, "error", err)
			}
			if i := slices.IndexFunc(known, func(r sandbox.Reading) bool { return r.Sandbox == l.ID }); i >= 0 {
				b.reading = known[i]
			}
		}
		m.boxes[l.ID] = b
	}
	if shared {
		if _, err := m.takeOver(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("alerts of other processes cannot be read", "error", err) // resolveStrays looks again
		}
	}
	for id, b := range m.boxes {
		if !here[id] {
			m.leave(ctx, b)
			delete(m.boxes, id)
		}
	}
}

func newBox(l sandbox.LiveSandbox) *box {
	return &box{
		live: l, states: map[string]*state{},
		reading: sandbox.Reading{Sandbox: l.ID, Session: l.Session, Owner: l.Owner, Labels: l.Labels, Language: l.Language},
	}
}

// leave takes down the end of a sandbox. One of a session may go on without this
// process: the store notes its end with its record.
func (m *Monitor) leave(ctx context.Context, b *box) {
	if b.live.Session != "" {
		return
	}
	for _, s := range b.states {
		if s.alert != nil {
			m.resolve(ctx, s, "its sandbox is gone")
		}
	}
	if b.reading.Samples == 0 {
		return
	}
	b.reading.Ended, b.reading.Execs = m.cfg.Now().UTC(), nil
	if err := m.cfg.Store.Apply(ctx, sandbox.Transaction{PutReadings: []sandbox.Reading{b.reading}}); err != nil {
		m.cfg.Log.Warn("what a sandbox used cannot be kept", "sandbox", b.live.ID, "error", err)
	}
}

// part is the last look: what still stands of one-shots ends with their process.
func (m *Monitor) part(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, partPatience)
	defer cancel()
	m.follow(ctx, m.cfg.Sandboxes.Live())
}

// partPatience bounds the last look, samplePatience one sample.
const (
	partPatience   = 5 * time.Second
	samplePatience = 1500 * time.Millisecond
	// atOnce bounds the samples that are taken at the same time. One that has taken
	// waitPatience only waits, and counts no more: those that answer do not wait for
	// those that do not.
	atOnce       = 32
	waitPatience = 200 * time.Millisecond
)

// sampleAll takes a sample of each; nil stands for one that did not answer.
func (m *Monitor) sampleAll(ctx context.Context, live []sandbox.LiveSandbox) []*sandbox.Sample {
	ctx, cancel := context.WithTimeout(ctx, samplePatience)
	defer cancel()
	samples := make([]*sandbox.Sample, len(live))
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, l := range live {
		places <- struct{}{}
		all.Go(func() {
			leave := sync.OnceFunc(func() { <-places })
			defer leave()
			defer time.AfterFunc(waitPatience, leave).Stop()
			s, err := m.cfg.Sandboxes.Sample(ctx, l.ID)
			if err == nil {
				samples[i] = &s
			} else if !errors.Is(err, sandbox.NotFound) && !errors.Is(err, sandbox.Unavailable) {
				m.cfg.Log.Info("a sandbox cannot be sampled", "sandbox", l.ID, "error", err)
			}
		})
	}
	all.Wait()
	return samples
}

// sampled takes in one sample.
func (b *box) sampled(s sandbox.Sample, l sandbox.LiveSandbox, denials int) {
	b.live = l
	f := figuresOf(b.before, s, l, denials)
	b.before = &s
	take(&b.reading, s, f)
	b.reading.Execs = nil
	for _, e := range l.Execs {
		b.reading.Execs = append(b.reading.Execs, e.ID)
	}
}
