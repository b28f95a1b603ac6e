package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/cli"
	"github.com/caisson-dev/caisson/config"
	dockerfiles "github.com/caisson-dev/caisson/docker"
	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// app is one run of the command: it builds what the command line needs, when
// it needs it, and takes it down again.
type app struct {
	getenv   func(string) string // a variable, or the setting of that name
	environ  func(string) string // the environment alone
	in       io.Reader
	out, err io.Writer
	closers  []func() error
	rules    rules

	file *config.File // of settings; nil before it is read

	mu     sync.Mutex
	opened *service.Service // nil before it is needed
}

func newApp(getenv func(string) string, in io.Reader, out, errs io.Writer) *app {
	a := &app{in: in, out: out, err: errs}
	a.getenv = func(name string) string { return cmp.Or(getenv(name), a.setting(name)) }
	a.environ = getenv
	a.closers = append(a.closers, a.rules.close) // the last to go: others judge with it
	return a
}

// run carries out a command line and returns its exit code.
func (a *app) run(ctx context.Context, args []string) int {
	code := cli.Main(ctx, cli.Config{
		IO: cli.IOStreams{In: a.in, Out: a.out, Err: a.err}, Service: a.service, Policy: a.policy, Doctor: a.doctor, Version: version(),
		Getenv: a.environ, File: a.readFile, Settings: settings,
	}, args)
	if err := a.close(); err != nil {
		fmt.Fprintln(a.err, "caisson: clean up:", err)
		if code == 0 {
			code = 125
		}
	}
	return code
}

// close takes down what was built, the last first.
func (a *app) close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// service joins the adapters. It opens the state and connects to no engine.
func (a *app) service(ctx context.Context) (api.Service, error) {
	log := a.logger()
	state, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	agent, err := a.helper("caisson-agent", "CAISSON_AGENT")
	if err != nil {
		return nil, err
	}
	engine, err := dockerclient.New(dockerclient.Config{Getenv: a.getenv})
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, engine.Close)
	catalogue, err := a.catalogue()
	if err != nil {
		return nil, err
	}
	progress := cli.NewProgress(a.err)
	a.closers = append(a.closers, progress.Close)
	journal, err := sqlite.Open(ctx, sqlite.Config{Dir: state})
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, journal.Close)
	guard, desk, err := a.gate(journal, state)
	if err != nil {
		return nil, err
	}
	feed := &bridge.Feed{}
	if err := a.sinks(feed, log); err != nil {
		return nil, err
	}
	changes, err := bridge.New(bridge.Config{Dir: filepath.Join(state, "changes"), Open: openLedger, Feed: feed})
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, changes.Close)
	store, err := images.New(images.Config{
		Engine: engine, StateDir: filepath.Join(state, "images"), Progress: progress.Show, Dockerfiles: dockerfiles.Languages,
		LockFile: cmp.Or(a.file.Images.LockFile, filepath.Join(state, "images.lock")), Catalogue: catalogue,
		Mirror: cmp.Or(a.getenv("CAISSON_DEBIAN_MIRROR"), a.file.Images.DebianMirror), Mirrors: a.file.Images.Mirrors, NoPull: a.file.Images.NoPull,
		Judge: a.judgeBuild(desk),
	})
	if err != nil {
		return nil, err
	}
	rt, err := docker.New(docker.Config{Engine: engine, Agent: agent, Base: a.runtimeDir(state), Remote: a.getenv("CAISSON_REMOTE") != ""})
	if err != nil {
		return nil, err
	}
	mgr, err := manager.New(manager.Config{
		Runtime: rt, Images: store, Gate: guard.Judge, Log: log, Store: journal, StateID: journal.ID(), Recorder: changes,
		LockDir: filepath.Join(state, "locks"), Actor: a.actor(), AuditText: a.getenv("CAISSON_AUDIT_TEXT") != "",
	})
	if err != nil {
		return nil, err
	}
	svc, err := service.New(service.Config{Manager: mgr, Bridge: changes, Images: store, Audit: journal, Desk: desk, Check: a.check, Doctor: a.newDoctor(nil), Log: log})
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, svc.Close)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened = svc
	return svc, nil
}

// openLedger opens a session's ledger.
func openLedger(ctx context.Context, path string) (bridge.Ledger, error) {
	return sqlite.OpenLedger(ctx, path)
}

// hurry destroys what is open without waiting for it to end first. [app.close]
// still takes down everything, in its order, and tells what failed.
func (a *app) hurry() {
	a.mu.Lock()
	svc := a.opened
	a.mu.Unlock()
	if svc != nil {
		_ = svc.Close() // it is called again
	}
}

// actor says who asks, for the audit.
func (a *app) actor() string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}

// logger writes to standard error what CAISSON_LOG asks for: debug, info, warn
// (the default) or error.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	if v := a.getenv("CAISSON_LOG"); v != "" {
		if err := level.UnmarshalText([]byte(v)); err != nil {
			level = slog.LevelWarn
		}
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}

// stateDir is where what outlives a process is kept.
func (a *app) stateDir() (string, error) {
	dir := a.getenv("CAISSON_STATE_DIR")
	if dir == "" {
		if base := a.getenv("XDG_STATE_HOME"); base != "" {
			dir = filepath.Join(base, "caisson")
		} else if home := a.getenv("HOME"); home != "" {
			dir = filepath.Join(home, ".local", "state", "caisson")
		}
	}
	if !filepath.IsAbs(dir) {
		return "", sandbox.Errorf(sandbox.Invalid, "the state folder %q is not an absolute path", dir).
			WithHint("set CAISSON_STATE_DIR to a folder of yours")
	}
	return dir, nil
}

// runtimeDir is where sockets are: short, since their paths are bounded.
func (a *app) runtimeDir(state string) string {
	switch {
	case a.getenv("CAISSON_RUNTIME_DIR") != "":
		return a.getenv("CAISSON_RUNTIME_DIR")
	case os.Geteuid() == 0:
		return "/run/caisson"
	case a.getenv("XDG_RUNTIME_DIR") != "":
		return filepath.Join(a.getenv("XDG_RUNTIME_DIR"), "caisson")
	}
	return filepath.Join(state, "run")
}

// helper finds a program that belongs to caisson: by its variable, beside this
// program, or in libexec.
func (a *app) helper(name, variable string) (string, error) {
	if p := a.getenv(variable); p != "" {
		st, err := os.Stat(p)
		if err == nil && (!st.Mode().IsRegular() || st.Mode()&0o111 == 0) {
			err = fmt.Errorf("%s is not a program", p)
		}
		if err != nil {
			return "", sandbox.Errorf(sandbox.Invalid, "%s: %w", variable, err).WithHint("set %s to the path of %s", variable, name)
		}
		return filepath.Abs(p)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's folder: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	dir := filepath.Dir(self)
	for _, p := range []string{filepath.Join(dir, name), filepath.Join(dir, "..", "libexec", "caisson", name), filepath.Join("/usr/libexec/caisson", name)} {
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return filepath.Clean(p), nil
		}
	}
	return "", sandbox.Errorf(sandbox.Unavailable, "%s is neither beside caisson nor in libexec", name).
		WithHint("build it with make build, or set %s to its path", variable)
}

// version is the module's, and the commit's where it has none.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
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
