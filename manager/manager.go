package manager

import (
	"log/slog"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/egress"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
	"github.com/caisson-dev/caisson/tools"
)

// Images is what the manager needs of the images.
type Images interface {
	// Language looks a language up. Its error is Invalid and lists those known.
	Language(name string) (sandbox.Language, error)
	box.Images
}

// Config joins what a manager works with. Runtimes, Gate and Images are
// required.
type Config struct {
	Runtimes *runtimes.Registry
	// Runtime names the one of Runtimes that is meant where none is named. "" is
	// the first, which also has what was made when there was one.
	Runtime string
	Images  Images
	// Gate judges everything before it is made or run.
	Gate Gate
	// Store remembers sessions and audits every run. Without one there are
	// neither. With one, StateID, which names its state folder, and LockDir, a
	// folder for locks in it, are required.
	Store   Store
	StateID string
	LockDir string
	// Pool has sandboxes ready for those who need one. nil has none.
	Pool Pool
	// Recorder records what execs change in workspaces. nil records nothing.
	Recorder Recorder
	// Egress is by what execs whose network is [sandbox.NetworkAllow] reach their
	// hosts. The zero value is this host's own network.
	Egress egress.Config
	// Quotas bound what the execs of each owner move by that.
	Quotas sandbox.Quotas
	// Tools are those of this host that programs may call. nil is none.
	Tools *tools.Set
	// Starts says what becomes of what execs start while they run, StartVariables
	// which variables make programs load or run something: by name, and a trailing *
	// is a prefix.
	Starts         sandbox.StartsRule
	StartVariables []string
	// Stays says that this process lives long: it judges on what execs in the background
	// start whose judge has gone.
	Stays bool
	// Patience is how much longer than its timeout an exec may go unanswered
	// before its sandbox is given up; 0 is the agent's client's own.
	Patience time.Duration
	// Actor says who asks, for the audit.
	Actor string
	// AuditText puts commands and code into the audit, not only their digest.
	AuditText bool
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
	// Log gets what nobody asked about, such as a sweep's removals. nil
	// discards.
	Log *slog.Logger
	// Tracer makes a span of each run. nil traces those that are asked for within
	// a span.
	Tracer telemetry.Tracer
	// Holder names this process to others that share the engine. "" is
	// [ProcessHolder].
	Holder string
	// Alive tells whether a holder may still come back for what it made. nil is
	// [HolderAlive].
	Alive func(holder string) bool
}

// Manager makes and uses sandboxes. It is safe for concurrent use. Its owner
// closes it, which destroys what is still open.
type Manager struct {
	cfg     Config
	maker   *box.Maker
	cleaned cleaned
	told    sync.Map // of told, by the runtime's name

	mu     sync.Mutex
	open   map[*Sandbox]struct{}
	shells map[sandbox.ID]client.Held // what is known of them
	boxes  map[sandbox.ID]*box.Box    // of sessions, that this process is connected to
	lives  map[sandbox.ID]*box.Box    // the others
	held   map[sandbox.ID]int         // sandboxes in which starts wait for a person
	judges map[sandbox.ID]*starting   // in the background, whose starts this process judges
	closed bool

	meters  map[string]*egress.Meter // by owner
	prompts map[sandbox.ID]*prompted // what goes on in shells between two calls
	guards  sync.Map                 // of execs in the background, by their ids: a *guard
	spent   *tools.Spent             // by owners, of their tools' rates and budgets
	calls   sync.Map                 // of them, their ways to tools: a *callWay
	tasks   sync.WaitGroup           // followers of recovered execs; they end with the boxes' connections
}

// New checks a Config. It starts nothing. Errors: Invalid.
func New(cfg Config) (*Manager, error) {
	switch {
	case cfg.Runtimes == nil || len(cfg.Runtimes.Names()) == 0:
		return nil, sandbox.Errorf(sandbox.Invalid, "manager: no runtime")
	case cfg.Images == nil:
		return nil, sandbox.Errorf(sandbox.Invalid, "manager: no images")
	case cfg.Gate == nil:
		return nil, sandbox.Errorf(sandbox.Invalid, "manager: no gate")
	}
	if cfg.Store != nil && (cfg.StateID == "" || cfg.LockDir == "") {
		return nil, sandbox.Errorf(sandbox.Invalid, "manager: a store without a state id and a folder for locks")
	}
	if err := cfg.Starts.Check(); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Holder == "" {
		holder, err := ProcessHolder()
		if err != nil {
			return nil, err
		}
		cfg.Holder = holder
	}
	if cfg.Alive == nil {
		cfg.Alive = HolderAlive
	}
	m := &Manager{
		cfg: cfg, spent: &tools.Spent{}, open: map[*Sandbox]struct{}{}, shells: map[sandbox.ID]client.Held{}, boxes: map[sandbox.ID]*box.Box{}, lives: map[sandbox.ID]*box.Box{}, held: map[sandbox.ID]int{}, judges: map[sandbox.ID]*starting{}, prompts: map[sandbox.ID]*prompted{},
		maker: &box.Maker{Images: cfg.Images, Holder: cfg.Holder, Patience: cfg.Patience},
	}
	if cfg.Store != nil {
		m.spent.Kept = cfg.Store.ToolSpent
	}
	return m, nil
}

// Close destroys every sandbox that is open and waits for that. Open and Run
// are refused from then on. It is idempotent.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	var rest []*Sandbox
	for s := range m.open {
		rest = append(rest, s)
	}
	for id, b := range m.boxes {
		_ = b.Client.Close() // a session's sandbox goes on without us
		delete(m.boxes, id)
	}
	m.mu.Unlock()
	errs := make(chan error, len(rest))
	for _, s := range rest {
		go func() { errs <- s.Close() }()
	}
	var first error
	for range rest {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	m.tasks.Wait()
	return first
}

func (m *Manager) track(s *Sandbox) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return sandbox.Errorf(sandbox.Unavailable, "the manager is shutting down")
	}
	m.open[s] = struct{}{}
	return nil
}

func (m *Manager) untrack(s *Sandbox) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, s)
}
