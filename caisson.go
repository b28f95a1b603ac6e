// Package caisson opens caisson for a Go program, with everything that the
// command has: sessions, images, judging, the audit, the record of changes.
//
//	c, err := caisson.Open(ctx, caisson.Config{})
//	if err != nil { … }
//	defer c.Close()
//	res, err := c.Run(ctx, sandbox.Run{Language: "python", Code: "print(1)"}, sandbox.Streams{})
//
// It joins the parts with their defaults and holds no logic of its own. What is
// asked of caisson are the methods of [api.Service]; package sandbox has their
// words. A program that wants other parts joins them itself, as this one does.
//
// Two helpers have to be found: caisson-agent, which becomes the first process of
// each sandbox, and caisson-scan, which reads what is judged. They are looked for
// as CAISSON_AGENT and CAISSON_SCAN say, beside the program, beside a caisson in
// PATH, and in libexec; `make install` puts them there.
package caisson

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/config"
	dockerfiles "github.com/caisson-dev/caisson/docker"
	"github.com/caisson-dev/caisson/egress"
	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/monitor"
	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service"
	"github.com/caisson-dev/caisson/store/sqlite"
	"github.com/caisson-dev/caisson/telemetry"
	"github.com/caisson-dev/caisson/tools"
	"github.com/caisson-dev/caisson/tools/mcptools"
)

// Config says what is opened. Its zero value is what the command works with,
// but for caisson.yaml.
type Config struct {
	// Getenv answers for variables: CAISSON_* as docs/configuration.md lists them,
	// the engine's, XDG_* and HOME. nil is [os.Getenv].
	Getenv func(name string) string
	// File has the settings of a caisson.yaml, which count where no variable is
	// set. nil is none.
	File *config.File
	// StateDir is the folder for what outlives a process, an absolute path. "" is
	// what CAISSON_STATE_DIR says, or the user's own.
	StateDir string
	// Runtimes are further ones than those that come with caisson, by name: see
	// [runtimes.Runtime]. Whoever runs something may ask for one.
	Runtimes map[string]runtimes.Opener
	// Progress is told how the making of images goes, from any goroutine. nil
	// tells nobody.
	Progress func(sandbox.Progress)
	// Serve carries out what is submitted as executions, until Close. One process of
	// a state folder can: in another, Open is a Conflict.
	Serve bool
	// KeepPool keeps the sandboxes of the settings' pool ready until Close, as a server
	// does without it. One process of a state folder can; others take from it.
	KeepPool bool
	// AllowRuntimes are those that callers with an owner may ask for by name, beside the default.
	AllowRuntimes []string
	// OthersApprove has what a caller with a name asks be approved by another.
	OthersApprove bool
	// Tools are functions of this program that runs may call, beside those of File:
	// see [tools.Func].
	Tools []sandbox.Callable
	// Log gets what nobody asked about, and from the level info on a line for each
	// event. nil discards.
	Log *slog.Logger
}

// Caisson is caisson in this process. Its methods are safe for concurrent use.
// Who made it closes it.
type Caisson struct {
	api.Service // nil until Open has returned

	cfg    Config
	rules  rules
	places places

	mu        sync.Mutex
	opened    *service.Service // nil before it is needed
	keepsPool bool
	calls     *functions.Functions

	ends    sync.Mutex
	closers []func() error
}

// New returns a Caisson that has opened nothing: its Service is nil. Most
// programs want [Open].
func New(cfg Config) *Caisson {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	if cfg.File == nil {
		cfg.File = &config.File{}
	}
	if cfg.Progress == nil {
		cfg.Progress = func(sandbox.Progress) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Caisson{cfg: cfg}
	c.places = c.newPlaces()
	c.atEnd(c.rules.close) // the last to go: others judge with it
	return c
}

// Open opens caisson: its state folder, which is made where it is missing. It
// connects to no engine before something needs one. Errors: Invalid for a
// setting, Unavailable where a helper is missing, and those of the state folder.
func Open(ctx context.Context, cfg Config) (*Caisson, error) {
	c := New(cfg)
	if _, err := c.Open(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Open opens the service of what [New] has returned; a second call gives the
// same one. Its errors are those of the function Open.
func (c *Caisson) Open(ctx context.Context) (api.Service, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened != nil {
		return c.opened, nil
	}
	svc, err := c.join(ctx)
	if err != nil {
		return nil, err
	}
	c.opened, c.Service = svc, svc
	return svc, nil
}

// Authenticate says who asks with the secret of a token, and counts it as a
// request of theirs. It opens caisson. Errors: Denied, and Exhausted where they
// have asked too much.
func (c *Caisson) Authenticate(ctx context.Context, secret string) (sandbox.Caller, error) {
	if _, err := c.Open(ctx); err != nil {
		return sandbox.Caller{}, err
	}
	c.mu.Lock()
	svc := c.opened
	c.mu.Unlock()
	who, err := svc.Authenticate(ctx, secret)
	if err != nil {
		return sandbox.Caller{}, err
	}
	return who, svc.Allow(who)
}

// Abort destroys what is open without waiting for programs to end first. Close
// still has to be called.
func (c *Caisson) Abort() {
	c.mu.Lock()
	svc := c.opened
	c.mu.Unlock()
	if svc != nil {
		_ = svc.Close() // it is called again, and tells then
	}
}

// Close destroys the sandboxes of runs that are not over, and takes down what
// was opened, the last first. Sessions go on without it. It is idempotent.
func (c *Caisson) Close() error {
	c.ends.Lock()
	closers := c.closers
	c.closers = nil
	c.ends.Unlock()
	var errs []error
	for _, end := range slices.Backward(closers) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// atEnd has Close call f, before what was handed over earlier.
func (c *Caisson) atEnd(f func() error) {
	c.ends.Lock()
	defer c.ends.Unlock()
	c.closers = append(c.closers, f)
}

// join joins the adapters.
func (c *Caisson) join(ctx context.Context) (*service.Service, error) {
	state, err := c.stateDir()
	if err != nil {
		return nil, err
	}
	engine, err := c.places.engine()
	if err != nil {
		return nil, err
	}
	journal, err := sqlite.Open(ctx, sqlite.Config{Dir: state, Told: telemetry.Events(c.cfg.Log)})
	if err != nil {
		return nil, err
	}
	c.atEnd(journal.Close)
	tracer, err := c.tracer()
	if err != nil {
		return nil, err
	}
	var box *outbox.Outbox
	desk, err := c.desk(journal, func() { box.Posted() })
	if err != nil {
		return nil, err
	}
	book, err := c.executions(ctx, journal, state, func() { box.Posted() })
	if err != nil {
		return nil, err
	}
	if box, err = c.letters(journal, desk, book); err != nil {
		return nil, err
	}
	guard, err := c.gate(desk, state)
	if err != nil {
		return nil, err
	}
	feed := &bridge.Feed{}
	if err := c.sinks(feed, journal, box); err != nil {
		return nil, err
	}
	changes, err := bridge.New(bridge.Config{Dir: filepath.Join(state, "changes"), Open: openLedger, Feed: feed})
	if err != nil {
		return nil, err
	}
	c.atEnd(changes.Close)
	store, err := c.images(engine, state, c.judgeBuild(desk))
	if err != nil {
		return nil, err
	}
	holder, err := manager.ProcessHolder()
	if err != nil {
		return nil, err
	}
	registry, err := c.places.registry()
	if err != nil {
		return nil, err
	}
	mgr, fill, err := c.manager(ctx, state, manager.Config{
		Tracer: tracer, Holder: holder, Runtimes: registry, Runtime: c.defaultRuntime(), Images: store, Gate: guard.Judge, Log: c.cfg.Log, Store: journal, StateID: journal.ID(), Recorder: changes,
		LockDir: filepath.Join(state, "locks"), Actor: actor(), AuditText: c.getenv("CAISSON_AUDIT_TEXT") != "",
		Egress: egress.Config{Hosts: c.cfg.File.Hosts}, Quotas: c.cfg.File.Quotas, Stays: c.cfg.Serve,
	})
	if err != nil {
		return nil, err
	}
	mon, err := c.watch(journal, mgr, box)
	if err != nil {
		return nil, errors.Join(err, mgr.Close())
	}
	svc, err := service.New(service.Config{
		Manager: mgr, Bridge: changes, Images: store, Audit: journal, Desk: desk, Check: c.check, Doctor: c.newDoctor(nil), Log: c.cfg.Log, Actor: actor(),
		Findings: journal, Watch: mon, Metrics: monitor.NewMetrics(journal, Version()),
		Folders: c.cfg.File.Folders, Keys: journal, Executions: book, Quotas: c.cfg.File.Quotas, OthersApprove: c.cfg.OthersApprove, Served: c.cfg.Serve, Runtimes: c.cfg.AllowRuntimes,
		Functions: c.functions(journal, state),
	})
	if err != nil {
		return nil, err
	}
	c.atEnd(svc.Close)
	return svc, errors.Join(c.carryOut(ctx, book, svc), fill())
}

// tools are those that programs may call.
func (c *Caisson) tools() (*tools.Set, error) {
	file := c.cfg.File
	declared, err := tools.Open(file.Tools, file.Name, c.cfg.Getenv)
	if err != nil {
		return nil, err
	}
	set, err := tools.New(slices.Concat(declared, c.cfg.Tools)...)
	if err != nil {
		return nil, err
	}
	servers, err := mcptools.Open(file.Tools, file.Name, c.cfg.Getenv, c.cfg.Log)
	if err != nil {
		return nil, err
	}
	sources := make([]tools.Source, len(servers))
	for i, s := range servers {
		c.atEnd(s.Close)
		sources[i] = s
	}
	return set.From(c.cfg.Log, sources...), nil
}

// functions makes what keeps functions, and calls them in sessions of a service.
func (c *Caisson) functions(journal *sqlite.Store, state string) func(*service.Service) (service.Functions, error) {
	return func(s *service.Service) (service.Functions, error) {
		fs, err := functions.New(functions.Config{
			Sandboxes: s, Store: journal, LockDir: filepath.Join(state, "locks"), LanguageOf: s.LanguageOf, Actor: actor(), Log: c.cfg.Log,
		})
		if err != nil {
			return nil, err
		}
		c.calls = fs
		return fs, nil
	}
}

// images makes the store of images, with the embedded catalogue and what the
// settings add to it.
func (c *Caisson) images(engine *dockerclient.Client, state string, judge func(context.Context, images.Build) error) (*images.Store, error) {
	file := c.cfg.File
	catalogue := images.Builtin()
	if file.Catalogue != nil {
		var err error
		if catalogue, err = catalogue.Extend(file.Catalogue, filepath.Dir(file.Name)); err != nil {
			return nil, file.Bad(0, err)
		}
	}
	return images.New(images.Config{
		Engine: engine, StateDir: filepath.Join(state, "images"), Progress: c.cfg.Progress, Dockerfiles: dockerfiles.Languages,
		LockFile: cmp.Or(file.Images.LockFile, filepath.Join(state, "images.lock")), Catalogue: catalogue,
		Mirror: cmp.Or(c.getenv("CAISSON_DEBIAN_MIRROR"), file.Images.DebianMirror), Mirrors: file.Images.Mirrors, NoPull: file.Images.NoPull,
		Judge: judge,
	})
}

// openLedger opens a session's ledger.
func openLedger(ctx context.Context, path string) (bridge.Ledger, error) {
	return sqlite.OpenLedger(ctx, path)
}

// getenv is a variable, or the setting of that name.
func (c *Caisson) getenv(variable string) string {
	return cmp.Or(c.cfg.Getenv(variable), c.cfg.File.Setting(variable))
}

// module is the path of this module.
const module = "github.com/caisson-dev/caisson"

// Version is this module's in the running program, and the commit's where it has
// none.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "0.0.0-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "0.0.0-dev"
}
