package functions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Sandboxes are what functions run in: roles of api.Service.
type Sandboxes interface {
	CreateSession(ctx context.Context, opts sandbox.SessionOptions, local sandbox.Local) (sandbox.Session, error)
	Sessions(ctx context.Context, filter sandbox.SessionFilter) ([]sandbox.SessionView, error)
	RemoveSession(ctx context.Context, name string, force bool) error
	Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)
}

// Store keeps functions: a part of store.Store.
type Store interface {
	Apply(ctx context.Context, c sandbox.Transaction) error
	Function(ctx context.Context, owner, name string) (sandbox.Function, error)
	FunctionFiles(ctx context.Context, f sandbox.Function) ([]sandbox.File, error)
	Functions(ctx context.Context, f sandbox.FunctionFilter) ([]sandbox.Function, error)
	TakeLetters(ctx context.Context, to string, now, until time.Time, most int) ([]sandbox.Letter, error)
}

// Config says what functions stand on. Sandboxes, Store and LockDir are required.
type Config struct {
	Sandboxes Sandboxes
	Store     Store
	LockDir   string // a folder that all processes of the store share
	// LanguageOf tells a file's language by its name. nil knows of none.
	LanguageOf func(file string) (string, error)
	Actor      string        // who asks, for the audit, where a caller has no name
	KeepWarm   time.Duration // how long an instance waits for a call; 0 is [DefaultKeepWarm]
	Log        *slog.Logger  // nil discards
}

// DefaultKeepWarm is what a zero KeepWarm of a [Config] means.
const DefaultKeepWarm = 10 * time.Minute

// Functions keeps functions and calls them. It is safe for concurrent use; its owner
// closes it.
type Functions struct {
	cfg   Config
	tasks sync.WaitGroup // calls, and what ends instances beside them

	mu     sync.Mutex
	closed bool
	pools  map[sandbox.FunctionName]*pool
	later  *later // nil where another process makes the calls that nobody waits for
}

// New checks a Config and starts nothing. Errors: Invalid.
func New(cfg Config) (*Functions, error) {
	if cfg.Sandboxes == nil || cfg.Store == nil || cfg.LockDir == "" {
		return nil, sandbox.Errorf(sandbox.Invalid, "functions: sandboxes, store and a folder for locks are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.KeepWarm = cmp.Or(cfg.KeepWarm, DefaultKeepWarm)
	return &Functions{cfg: cfg, pools: map[sandbox.FunctionName]*pool{}}, nil
}

// Own are the texts that this package has run: a gate need not judge them, but what
// is staged beside them.
func Own() []string { return []string{runnerPython, runnerNode} }

// owned is whose function a name means, and a context in which its owner asks: an
// admin may write OWNER~NAME for that of another.
func owned(ctx context.Context, name string) (context.Context, sandbox.FunctionName) {
	who := sandbox.CallerFrom(ctx)
	if owner, rest, found := strings.Cut(name, "~"); found && who.IsAdmin() {
		who.Owner, who.Access, name = owner, sandbox.AccessAdmin, rest
	}
	return sandbox.WithCaller(ctx, who), sandbox.FunctionName{Owner: who.Owner, Name: name}
}

// PutFunction keeps a function, or its next version. Errors: Invalid, Conflict.
func (fs *Functions) PutFunction(ctx context.Context, o sandbox.FunctionOptions, local sandbox.Local) (sandbox.Function, error) {
	ctx, name := owned(ctx, o.Name)
	o.Name = name.Name
	f, files, err := fs.settle(o, local)
	if err != nil {
		return sandbox.Function{}, err
	}
	f.Owner = name.Owner
	switch before, err := fs.cfg.Store.Function(ctx, f.Owner, f.Name); {
	case err == nil:
		f.Version = before.Version + 1
	case errors.Is(err, sandbox.NotFound):
		f.Version = 1
	default:
		return sandbox.Function{}, err
	}
	err = fs.cfg.Store.Apply(ctx, sandbox.Transaction{
		PutFunction: &sandbox.FunctionCode{Function: f, Files: files}, Events: []sandbox.Event{fs.event(ctx, sandbox.EventFunctionPut, f.WithoutValues())},
	})
	if err != nil {
		return sandbox.Function{}, err
	}
	fs.retire(f)
	return f.WithoutValues(), nil
}

// Function returns one of the caller's. Errors: NotFound.
func (fs *Functions) Function(ctx context.Context, name string) (sandbox.Function, error) {
	ctx, which := owned(ctx, name)
	f, err := fs.cfg.Store.Function(ctx, which.Owner, which.Name)
	return f.WithoutValues(), err
}

// Functions returns those that a filter selects, by name.
func (fs *Functions) Functions(ctx context.Context, filter sandbox.FunctionFilter) ([]sandbox.Function, error) {
	list, err := fs.cfg.Store.Functions(ctx, filter)
	for i := range list {
		list[i] = list[i].WithoutValues()
	}
	return list, err
}

// RemoveFunction forgets one of the caller's, with its sandboxes. Calls that run go
// on. Errors: NotFound.
func (fs *Functions) RemoveFunction(ctx context.Context, name string) error {
	ctx, gone := owned(ctx, name)
	f, err := fs.cfg.Store.Function(ctx, gone.Owner, gone.Name)
	if err != nil {
		return err
	}
	err = fs.cfg.Store.Apply(ctx, sandbox.Transaction{
		DeleteFunction: &gone, Events: []sandbox.Event{fs.event(ctx, sandbox.EventFunctionRemoved, map[string]any{"name": f.Name, "version": f.Version})},
	})
	if err != nil {
		return err
	}
	f.ID = "" // no instance is of this code any more
	removed := fs.retire(f)
	err = fs.sweep(ctx, f)
	removed()
	return err
}

// event is one about functions, as the audit gets it.
func (fs *Functions) event(ctx context.Context, kind string, about any) sandbox.Event {
	who := sandbox.CallerFrom(ctx)
	data, err := json.Marshal(about)
	if err != nil { // the types are ours and always encode
		data = nil
	}
	return sandbox.Event{Time: time.Now().UTC(), Kind: kind, Actor: cmp.Or(who.Name, fs.cfg.Actor), Owner: who.Owner, Data: data}
}

// Close ends the processes of all instances, those of calls that run too, and waits
// for them. Their sessions stay for who comes next, and end by themselves. It is
// idempotent.
func (fs *Functions) Close() error {
	fs.mu.Lock()
	fs.closed = true
	pools := fs.pools
	fs.pools = nil
	if fs.later != nil {
		fs.later.stop()
	}
	fs.mu.Unlock()
	for _, p := range pools {
		p.close()
	}
	fs.tasks.Wait()
	return nil
}
