// Package cli is the command line: it reads flags, calls those roles of
// [api.Service] that a command needs, and prints. It holds no logic of its own
// and never sees the manager, so that the same commands work in process and
// against a server.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/cli/policycmd"
	"github.com/caisson-dev/caisson/config"
	"github.com/caisson-dev/caisson/sandbox"
)

// IOStreams are the command's own streams.
type IOStreams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Config is what the commands work with.
type Config struct {
	IO IOStreams
	// Service is called at most once, by a command that needs it. Who made it
	// closes it.
	Service func(ctx context.Context) (api.Service, error)
	// Policy is called at most once, by a command that judges without running.
	Policy func(ctx context.Context) (policycmd.Policy, error)
	// Doctor stands in for [api.Service].Doctor where Service fails, and is told
	// how. nil: that failure is the answer.
	Doctor func(ctx context.Context, broken error) ([]api.Check, error)
	// Outlive has another process carry out the command line, where that has to live as
	// long as what it leaves running, and returns what that one exits with once it has
	// done so. It is called before Service. nil never has.
	Outlive func(ctx context.Context) (outlived bool, code int, err error)
	// Leave has another process judge from now on what an exec in the background starts,
	// where this one did. nil has none.
	Leave func(ctx context.Context, session string, id sandbox.ID) error
	// Instead is done in place of what the command line says, with its settings. nil is
	// what it says.
	Instead func(ctx context.Context) error
	// Serve serves over HTTP; nil cannot.
	Serve Serve
	// ServePool keeps the pool of the state folder until its context is done.
	ServePool func(ctx context.Context) error
	// MCP is a tool for agents; nil cannot.
	MCP MCP
	// Runtimes lists the runtimes without a service. nil: they are not told.
	Runtimes func(ctx context.Context) ([]api.RuntimeInfo, error)
	// NoEngine reports whether there is no engine, so that who names no runtime gets
	// auto. nil: there may be one.
	NoEngine func() bool
	// File is called at most once, before anything else, with the name of the
	// file of settings, "" for the usual one. nil: there is none.
	File func(name string) (*config.File, error)
	// Log is called at most once, before a command begins, with what its flags say
	// of the log. nil: there is none.
	Log func(LogOptions) error
	// Host is called at most once, before a command begins, with the server that
	// its flags name, "" for none. nil: there are no servers.
	Host func(string) error
	// Settings are the names of those that are not flags.
	Settings []string
	Version  string
	// LookupEnv reads the environment; nil is [os.LookupEnv].
	LookupEnv func(string) (string, bool)
}

// LogOptions are what the flags say of the log; "" is the default. Usual is the
// level where nobody says one.
type LogOptions struct{ Level, Format, File, Usual string }

// open opens caisson for a command, which names the roles that it needs: each is
// one of [api.Service], or a sum of some.
func open[Role any](ctx context.Context, cfg Config) (Role, error) {
	svc, err := cfg.Service(ctx)
	if err != nil {
		var none Role
		return none, err
	}
	return any(svc).(Role), nil
}

func (c Config) getenv(name string) string {
	value, _ := c.LookupEnv(name)
	return value
}

// Main runs a command line and returns its exit code. It prints every error.
func Main(ctx context.Context, cfg Config, args []string) int {
	if cfg.LookupEnv == nil {
		cfg.LookupEnv = os.LookupEnv
	}
	root := newRoot(cfg)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var exit exitCode
	if errors.As(err, &exit) {
		return int(exit)
	}
	var judged policycmd.Exit
	if errors.As(err, &judged) {
		return judged.ExitCode()
	}
	if err == nil {
		return 0
	}
	if brokenPipe(err) {
		return exitPipe
	}
	code := codeOfError(err)
	if asJSON(cmd, args) && writeJSON(cfg.IO.Out, sandbox.ProblemOf(err, code)) == nil {
		return code
	}
	printError(cfg.IO.Err, err)
	printFindings(cfg.IO.Err, err)
	return code
}

func newRoot(cfg Config) *cobra.Command {
	root := &cobra.Command{
		Use:           "caisson",
		Short:         "Run code that nobody has read yet, in hardened containers",
		Version:       cfg.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(cfg.IO.In)
	root.SetOut(cfg.IO.Out)
	root.SetErr(cfg.IO.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
			return unknownCommand(cmd, cmd.Flags().Args()) // whose flag it was
		}
		return usageError(cmd, err)
	})
	var name string
	root.PersistentFlags().StringVar(&name, "config", "", "`FILE` with defaults, languages and more, in place of the user's caisson.yaml")
	var log LogOptions
	root.PersistentFlags().StringVar(&log.Level, "log-level", "", "what is logged: debug, info (with a line for each event), warn (the default) or error")
	root.PersistentFlags().StringVar(&log.Format, "log-format", "", "text (the default) or json")
	root.PersistentFlags().StringVar(&log.File, "log-file", "", "append the log to `FILE` in place of standard error")
	var host string
	root.PersistentFlags().StringVar(&host, "host", "", "the `SERVER` that carries it out: unix:///path, http://host:port or https://host:port (default this process)")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := configure(cmd, cfg, name); err != nil {
			return err
		}
		if cmd.Name() == "serve" {
			log.Usual = "info" // it is read by nobody who waits for an answer
		}
		if cfg.Log != nil {
			if err := cfg.Log(log); err != nil {
				return usageError(cmd, err)
			}
		}
		if cfg.Host != nil {
			if err := cfg.Host(host); err != nil {
				return usageError(cmd, err)
			}
		}
		if cfg.Instead != nil {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cfg.Instead(cmd.Context()) }
		}
		if f := cmd.Flags().Lookup("runtime"); f != nil && !f.Changed && cfg.NoEngine != nil && cfg.NoEngine() {
			return f.Value.Set(auto)
		}
		return nil
	}
	root.AddCommand(newRun(cfg), newSession(cfg), newExec(cfg), newShell(cfg), newPS(cfg), newLogs(cfg), newAttach(cfg), newInput(cfg), newKill(cfg), newFiles(cfg), newChanges(cfg), newUndo(cfg),
		newApprovals(cfg), newAudit(cfg), newTop(cfg), newAlerts(cfg), newMetrics(cfg), policycmd.NewCmd(policycmd.Streams(cfg.IO), cfg.Policy), newImages(cfg), newTest(cfg), newExecution(cfg), newFunction(cfg), newGC(cfg), newPool(cfg), newToken(cfg), newServe(cfg), newMCP(cfg), newDoctor(cfg), newVersion(cfg))
	wrapArgs(root)
	completions(cfg, root)
	return root
}

// wrapArgs makes a wrong number of arguments a usage error, and suggests
// commands where there is none of a name.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError(cmd, err)
			}
			return nil
		}
	}
	if c.HasSubCommands() {
		c.Args = unknownCommand
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// usageError is for a command line that cannot be meant. An error that knows
// better what to do keeps its hint.
func usageError(cmd *cobra.Command, err error) error {
	hint := sandbox.HintOf(err)
	if hint == "" {
		hint = "see: " + cmd.CommandPath() + " --help"
	}
	return sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("%s", hint)
}

// unknownCommand refuses the name of a command that is not there.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := sandbox.Errorf(sandbox.Invalid, "%s has no command %q", cmd.CommandPath(), args[0])
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return err.WithHint("did you mean %s %s?", cmd.CommandPath(), near[0])
	}
	return err.WithHint("see: %s --help", cmd.CommandPath())
}

// fromEnvironment sets each flag that was not given from its variable: --approve
// is CAISSON_APPROVE.
func fromEnvironment(cmd *cobra.Command, getenv func(string) string) error {
	var first error
	flags := cmd.Flags()
	flags.VisitAll(func(f *pflag.Flag) {
		name := "CAISSON_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v := getenv(name)
		if f.Changed || v == "" || slices.Contains(notConfigured, f.Name) {
			return
		}
		if err := flags.Set(f.Name, v); err != nil && first == nil {
			first = usageError(cmd, fmt.Errorf("%s: %w", name, err))
		}
	})
	return first
}
