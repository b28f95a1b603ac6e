package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// shellRoles are what a run in a shell needs of caisson.
type shellRoles interface {
	runRoles
	api.Shells
}

func newShell(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shell",
		Short: "Shells in a session that keep folder, variables, functions and jobs",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newShellOpen(cfg), newShellRun(cfg), newShellClose(cfg), newShellList(cfg))
	return cmd
}

// openFlags are those of a shell that is opened.
func openFlags(f *pflag.FlagSet, o *sandbox.ShellOptions, env *[]string) {
	f.StringVar((*string)(&o.Kind), "kind", string(sandbox.ShellAny), "what it is: shell (bash where there is one, else sh), bash, sh, or python")
	f.StringVarP(&o.Language, "language", "l", "", "language whose sandbox it is in (default the session's, and python's for a Python shell)")
	f.StringVarP(&o.Dir, "workdir", "w", "", "where it begins; relative to /workspace")
	envFlag(f, env)
}

func newShellOpen(cfg Config) *cobra.Command {
	var o sandbox.ShellOptions
	var env, labels []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "open SESSION [NAME]",
		Short: "Open a shell and print its name",
		Example: `  caisson session create shells
  caisson shell open shells main --env MODE=test
  caisson shell run shells main 'cd /tmp && x=5'
  caisson shell run shells main 'echo $MODE $x in $PWD'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Env = variables(cfg, env)
			var err error
			if o.Labels, err = labelsOf(labels); err != nil {
				return err
			}
			svc, err := open[api.Shells](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			s, err := svc.OpenShell(cmd.Context(), args[0], strings.Join(args[1:], ""), o)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(s)
			}
			_, err = fmt.Fprintln(cfg.IO.Out, s.Name)
			return err
		},
	}
	openFlags(cmd.Flags(), &o, &env)
	labelFlag(cmd.Flags(), &labels)
	cmd.Flags().Var((*approveFlag)(&o.Approve), "approve", "what becomes of what policy asks about: `ask` and wait, never, or always")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// shellRunOptions are the flags of `caisson shell run`.
type shellRunOptions struct {
	runOptions
	shell  sandbox.ShellRun
	opens  sandbox.ShellOptions
	expect []string
}

func newShellRun(cfg Config) *cobra.Command {
	o := &shellRunOptions{}
	cmd := &cobra.Command{
		Use:   "run SESSION NAME COMMAND…",
		Short: "Run a command in a shell, which is opened where it is not open",
		Long: `Run a command in a shell, which is opened where it is not open. Several words are
joined with spaces; - reads the command from standard input.

What it prints goes to standard output and standard error, and its exit code is
this one's. Folder, variables, functions, aliases, options, traps and background
jobs stay for the next. At its time limit it is interrupted, as by Ctrl-C, and
what it started is killed; the shell goes on.

--expect answers what it asks: 'Name: =>Ada' writes a line with Ada once the
pattern, a regular expression, has come.`,
		Example: `  caisson session create lab
  caisson shell run lab main 'cd /tmp; greet() { echo "hello $1"; }'
  caisson shell run lab main 'greet "$PWD"'
  caisson shell run lab py --kind python 'x = 20'
  caisson shell run lab py 'x + 1'`,
		Args: cobra.MinimumNArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, cfg, args) },
	}
	f := cmd.Flags()
	f.SetInterspersed(true)
	l := &o.shell.ExecLimits
	*l = sandbox.DefaultExecLimits
	durationVar(f, &l.Timeout, "timeout", l.Timeout, "interrupt the command after this long")
	f.Var(&l.MaxOutput, "max-output", "interrupt the command when a stream passes this")
	f.Var(&l.KeepOutput, "keep-output", "bytes of each stream to keep in the result: head and tail")
	f.StringVar(&o.stdin, "stdin", "", "`FILE` for the command's standard input; - is caisson's own, which it is by default where that is a terminal, a pipe or a file")
	f.Var((*approveFlag)(&o.shell.Approve), "approve", "what becomes of what policy asks about: `ask` and wait, never, or always (default ask on a terminal, else never)")
	f.StringVar(&o.track, "changes", string(sandbox.ModeFast), "how to find what it changes: fast, exact or off")
	f.StringVar((*string)(&o.shell.Check), "check", string(sandbox.CheckSilent), "of a command that fails: silent (its exit code says so), raise (an error message too), or ignore (exit with 0)")
	f.StringArrayVar(&o.expect, "expect", nil, "answer `PATTERN=>REPLY` (repeatable)")
	labelFlag(f, &o.labels)
	openFlags(f, &o.opens, &o.env)
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of the command's output")
	f.BoolVar(&o.summary, "summary", false, "print exit code, time, memory and processes at the end")
	return cmd
}

func (o *shellRunOptions) run(cmd *cobra.Command, cfg Config, args []string) error {
	if err := o.fill(cfg, args); err != nil {
		return err
	}
	ctx := cmd.Context()
	svc, err := open[shellRoles](ctx, cfg)
	if err != nil {
		return err
	}
	var pipe notedWriter
	var streams sandbox.Streams
	if !o.json {
		pipe.Writer = cfg.IO.Out
		streams.Stdout, streams.Stderr = &pipe, cfg.IO.Err
	}
	t := openTerminal(ctx, cfg)
	defer t.close()
	closeStdin, err := o.openStdin(cfg, t, &streams)
	if err != nil {
		return err
	}
	defer closeStdin()
	if t != nil && o.shell.Approve != sandbox.ApproveNever && o.shell.Approve != sandbox.ApproveAlways {
		streams.Ask = t.ask
	}
	o.runOptions.run.ExecLimits = o.shell.ExecLimits // for what is told of them
	start := time.Now()
	res, err := svc.RunShell(ctx, args[0], args[1], o.shell, streams)
	o.noReader = brokenPipe(pipe.failed)
	if s := res.Shell; s != nil && s.Ended != "" && !o.json {
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: shell %s has ended: %s\n", visible(s.Name), visible(s.Ended)) // as in printError
	}
	return o.conclude(ctx, cfg, svc, res, err, time.Since(start))
}

// fill reads arguments and flags.
func (o *shellRunOptions) fill(cfg Config, args []string) (err error) {
	o.shell.Text = strings.Join(args[2:], " ")
	if len(args) == 3 && args[2] == "-" {
		b, err := io.ReadAll(cfg.IO.In)
		if err != nil {
			return sandbox.Errorf(sandbox.Invalid, "read the command from standard input: %w", err).WithHint("give it as an argument")
		}
		o.codeRead, o.shell.Text = true, string(b)
	}
	for _, e := range o.expect {
		pattern, reply, ok := strings.Cut(e, "=>")
		if !ok {
			return sandbox.Errorf(sandbox.Invalid, "--expect %q has no reply", e).WithHint("write 'PATTERN=>REPLY'")
		}
		o.shell.Expect = append(o.shell.Expect, sandbox.Expect{Pattern: pattern, Reply: reply + "\n"})
	}
	if o.shell.Track, err = sandbox.ParseChangeMode(o.track); err != nil {
		return err
	}
	if o.shell.Labels, err = labelsOf(o.labels); err != nil {
		return err
	}
	if o.shell.Timeout <= 0 {
		return sandbox.Errorf(sandbox.Invalid, "--timeout %s is out of range", o.shell.Timeout).WithHint("--timeout takes at least 1ms, such as 30s")
	}
	o.opens.Env, o.opens.Approve = variables(cfg, o.env), o.shell.Approve
	o.shell.Open = &o.opens
	return o.shell.Validate()
}

func newShellClose(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use:   "close SESSION NAME",
		Short: "End a shell with everything that it started",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[api.Shells](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return svc.CloseShell(cmd.Context(), args[0], args[1])
		},
	}
}

func newShellList(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls SESSION", Aliases: []string{"list"},
		Short: "List the shells that are open",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[api.Shells](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			list, err := svc.ListShells(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(list)
			}
			t := newTable(cfg.IO.Out, "NAME", "KIND", "OPENED", "EXEC")
			for _, s := range list {
				t.row(oneLine(s.Name, 63), string(s.Kind), s.Opened.Local().Format(time.DateTime), s.ExecID.Short())
			}
			return t.flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
