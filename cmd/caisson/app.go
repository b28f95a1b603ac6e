package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/client"
	"github.com/caisson-dev/caisson/cli"
	"github.com/caisson-dev/caisson/cli/policycmd"
	"github.com/caisson-dev/caisson/config"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// app is one run of the command. It opens caisson when a command needs it.
type app struct {
	lookup   func(string) (string, bool)
	in       io.Reader
	out, err io.Writer

	file *config.File // of settings; nil before it is read

	behind  *os.File                    // where this process says its exit code, of one that goes on behind the command; nil of others
	instead func(context.Context) error // what it does in place of the command; nil is that

	log     *slog.Logger // nil before its flags are read, and where there is none
	logFile *os.File     // nil where it goes to err

	mu       sync.Mutex
	door     *caisson.Caisson // nil before it is needed
	progress *cli.Progress    // likewise
	remote   *client.Client   // nil where the commands work in this process
}

func newApp(lookup func(string) (string, bool), in io.Reader, out, errs io.Writer) *app {
	return &app{lookup: lookup, in: in, out: out, err: errs}
}

func (a *app) getenv(name string) string {
	value, _ := a.lookup(name)
	return value
}

// run carries out a command line and returns its exit code.
func (a *app) run(ctx context.Context, args []string) int {
	if err := a.goesBehind(); err != nil {
		fmt.Fprintln(a.err, "caisson:", err)
		return 125
	}
	code := cli.Main(ctx, cli.Config{
		IO: cli.IOStreams{In: a.in, Out: a.out, Err: a.err}, Service: a.service, Policy: a.policy, Doctor: a.doctor, Runtimes: a.runtimes, Version: caisson.Version(),
		Serve: a.serve, ServePool: a.servePool, MCP: a.speakMCP, LookupEnv: a.lookup, File: a.readFile, Settings: settings, Log: a.startLog, Host: a.connect, NoEngine: a.noEngine, Outlive: a.outlive, Leave: a.leave, Instead: a.instead,
	}, args)
	if err := errors.Join(a.outlast(ctx, code), a.close()); err != nil {
		fmt.Fprintln(a.err, "caisson: clean up:", err)
		if code == 0 {
			code = 125
		}
	}
	return code
}

// open makes the caisson that the commands use, which opens nothing yet.
func (a *app) open() *caisson.Caisson {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.door == nil {
		if a.progress == nil {
			a.progress = cli.NewProgress(a.err)
		}
		a.door = caisson.New(caisson.Config{Getenv: a.getenv, File: a.file, Progress: a.progress.Show, Log: a.log})
	}
	return a.door
}

// serving is [app.open] for a server.
func (a *app) serving(o cli.ServeOptions) *caisson.Caisson {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.progress = cli.NewProgress(a.err)
	a.door = caisson.New(caisson.Config{Getenv: a.getenv, File: a.file, Progress: a.progress.Show, Log: a.log, Serve: true, AllowRuntimes: o.AllowRuntimes, OthersApprove: o.OthersApprove})
	return a.door
}

func (a *app) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.logFile != nil {
		defer a.logFile.Close()
	}
	var errs []error
	if a.remote != nil {
		errs = append(errs, a.remote.Close())
	}
	if a.door != nil {
		errs = append(errs, a.door.Close())
	}
	if a.progress != nil {
		errs = append(errs, a.progress.Close())
	}
	return errors.Join(errs...)
}

// hurry destroys what is open without waiting for it to end first. [app.close]
// still takes down everything, in its order, and tells what failed.
func (a *app) hurry() { a.open().Abort() }

func (a *app) service(ctx context.Context) (api.Service, error) {
	if a.remote != nil {
		return a.remote, nil
	}
	return a.open().Open(ctx)
}

// doctor examines without a service.
func (a *app) doctor(ctx context.Context, broken error) ([]api.Check, error) {
	return a.open().Examine(ctx, broken)
}

func (a *app) runtimes(ctx context.Context) ([]api.RuntimeInfo, error) { return a.open().Runtimes(ctx) }

// noEngine reports whether this process would ask an engine that is not there.
func (a *app) noEngine() bool { return a.remote == nil && a.open().NoEngine() }

func (a *app) policy(ctx context.Context) (policycmd.Policy, error) {
	p, err := a.open().Policy(ctx)
	if err != nil {
		return nil, err
	}
	return judge{p}, nil
}

// judge is the policy of this process, as its commands ask it.
type judge struct{ *policy.Policy }

// Check judges one text for a sandbox.
func (j judge) Check(ctx context.Context, language string, code []byte, file string, in sandbox.Surroundings) sandbox.Decision {
	r := policy.Request{Language: language, Code: code, File: file}
	if j.LooksAtPlan() {
		r.Context = map[string]any{"plan": in}
	}
	return j.Contain(ctx, j.Judge(ctx, r), in.Walls)
}

// startLog opens the log that the flags ask for. Without a level, CAISSON_LOG is
// it.
func (a *app) startLog(o cli.LogOptions) (err error) {
	c := telemetry.LogConfig{Format: o.Format, Level: cmp.Or(o.Level, a.getenv("CAISSON_LOG"), a.file.Setting("CAISSON_LOG"), o.Usual), Out: a.err}
	if o.File != "" {
		if a.logFile, err = os.OpenFile(o.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return sandbox.Errorf(sandbox.Invalid, "open the log: %w", err).WithHint("name a file that can be written with --log-file")
		}
		c.Out = a.logFile
	}
	a.log, err = telemetry.NewLog(c)
	return err
}
