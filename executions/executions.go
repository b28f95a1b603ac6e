// Package executions carries out runs whose submitters do not wait for them. What
// is submitted is durable at once; the process that serves takes it from the
// queue, fairly between owners, runs it, keeps what came of it for a time, and
// calls back. It decides about no run: whoever runs them does.
//
// Before an execution begins it is written down as running, and its exec has its
// id as a label, before that begins. So a server that takes over from a dead one
// knows of each whether it ran: what has left no trace is queued again, what runs
// in a session is followed from where its output was read, and the rest is lost,
// which is told as any end is.
package executions

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// Runner is what executions need of caisson: roles of [api.Service].
type Runner interface {
	api.Runner
	api.Execs
	api.ExecControl
	api.Sessions
	api.Workspaces
	api.Changes
	api.Monitoring
	// Reserve has a place for a run within its caller's quota, until release is called.
	// It is run with the context that comes back. Errors: Exhausted where there is none
	// now; whatever else is wrong the run says itself.
	Reserve(ctx context.Context, run sandbox.Run) (reserved context.Context, release func(), err error)
}

// Store is where executions are kept.
type Store interface {
	Apply(ctx context.Context, c sandbox.Transaction) error
	Execution(ctx context.Context, id sandbox.ID) (sandbox.Execution, error)
	Executions(ctx context.Context, f sandbox.ExecutionFilter) ([]sandbox.Execution, error)
	ExecutionOptions(ctx context.Context, id sandbox.ID) (sandbox.ExecutionOptions, error)
	Queued(ctx context.Context, after int64) ([]sandbox.QueuedExecution, error)
	Events(ctx context.Context, f sandbox.EventFilter) iter.Seq2[sandbox.Event, error]
}

// Poster posts to the addresses that submitters name.
type Poster interface {
	// Check says what is wrong with an address. Errors: Invalid, Denied.
	Check(address string) error
	// Post makes one attempt. Errors: Denied where no other would do better.
	Post(ctx context.Context, address string, secret []byte, headers map[string]string, body []byte) error
}

// Config joins what executions work with. Store, Poster, Dir and Lock are required.
type Config struct {
	Store  Store
	Poster Poster
	// Posted is called when a letter was put into the outbox. nil is fine.
	Posted func()
	// Dir is a folder for what executions put out, Lock the file that the one
	// process that serves holds.
	Dir, Lock string
	// Secret signs callbacks whose submitters give none of their own.
	Secret []byte
	// Workers is how many run at once; 0 is [DefaultWorkers].
	Workers int
	// Quota is how many of an owner's may run at once; nil, or 0 from it, is as many
	// as there are workers. Those above it wait.
	Quota func(owner string) int
	// Queue bounds how many wait; 0 is [DefaultQueue]. One owner may have half of it.
	Queue int
	// Keep is for how long what came of one is kept, where its submitter does not
	// say; 0 is [DefaultKeep].
	Keep time.Duration
	// Drain is how long Close waits for what runs; 0 is ten seconds.
	Drain time.Duration
	Actor string // who submits, for the audit, where the caller has no name
	Now   func() time.Time
	// Up names the machine's boot, and tells for how long it is up since; nil asks the
	// machine.
	Up  func() (boot string, up time.Duration)
	Log *slog.Logger // nil discards
}

// Defaults and bounds.
const (
	DefaultWorkers = 8
	DefaultQueue   = 20_000
	DefaultKeep    = 24 * time.Hour
	MaxKeep        = 30 * 24 * time.Hour
	// MaxSubmission bounds the code, files and input of one.
	MaxSubmission = 32 * sandbox.MiB
	// MaxArtifacts bounds the artifacts of one, all together.
	MaxArtifacts = 256 * sandbox.MiB
	// MinHeartbeat is how often a submitter can be told that one runs.
	MinHeartbeat = time.Second
	// maxQueued bounds what is kept of all that wait.
	maxQueued = 4 * sandbox.GiB
)

// Courier is the name that letters about executions have as their receiver.
const Courier = "callbacks"

// Book knows the executions of a state folder. Any process may submit, read and
// cancel by its own; one, which called Start, carries them out. It is safe for
// concurrent use.
type Book struct {
	cfg  Config
	bell bell

	mu   sync.Mutex
	live map[sandbox.ID]*live // that run here
	srv  *server              // nil where this process does not serve
}

// live is an execution that runs in this process.
type live struct {
	owner  string
	cancel context.CancelCauseFunc
}

// New checks a Config and starts nothing. Errors: Invalid.
func New(cfg Config) (*Book, error) {
	if cfg.Store == nil || cfg.Poster == nil || cfg.Dir == "" || cfg.Lock == "" {
		return nil, sandbox.Errorf(sandbox.Invalid, "executions: store, poster, folder and lock are required")
	}
	cfg.Workers, cfg.Queue = cmp.Or(cfg.Workers, DefaultWorkers), cmp.Or(cfg.Queue, DefaultQueue)
	cfg.Keep, cfg.Drain = cmp.Or(cfg.Keep, DefaultKeep), cmp.Or(cfg.Drain, 10*time.Second)
	if cfg.Workers < 0 || cfg.Queue < 0 || cfg.Keep < 0 || cfg.Keep > MaxKeep {
		return nil, sandbox.Errorf(sandbox.Invalid, "executions: %d workers, a queue of %d, kept for %s", cfg.Workers, cfg.Queue, cfg.Keep).
			WithHint("workers and queue are numbers above 0, and results are kept for at most %s", MaxKeep)
	}
	if cfg.Posted == nil {
		cfg.Posted = func() {}
	}
	if cfg.Quota == nil {
		cfg.Quota = func(string) int { return 0 }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Up == nil {
		cfg.Up = uptime
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Book{cfg: cfg, live: map[sandbox.ID]*live{}}, nil
}

// now is the time, as it is kept.
func (b *Book) now() time.Time { return b.cfg.Now().UTC() }

// server returns what serves in this process, or nil.
func (b *Book) server() *server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.srv
}
