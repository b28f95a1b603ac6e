package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// executionRoles are what it takes to submit runs and to read what came of them.
type executionRoles interface {
	api.Executions
	api.DeadLetters
	api.Languages
	api.Sessions
}

func newExecution(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use: "execution", Short: "Submit runs that nobody waits for, and read what came of them", Args: cobra.NoArgs,
		Long: `Submit runs that nobody waits for, and read what came of them. A server carries
them out (caisson serve): without one of this state folder they wait, and each
command that shows one says so.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExecutionSubmit(cfg), newExecutionList(cfg), newExecutionShow(cfg), newExecutionWait(cfg), newExecutionCancel(cfg), newExecutionArtifact(cfg), newDeadLetters(cfg))
	return cmd
}

// submitOptions are those of submit.
type submitOptions struct {
	runOptions
	callback   sandbox.CallbackOptions
	secretFile string
	keep       sandbox.Duration
}

func newExecutionSubmit(cfg Config) *cobra.Command {
	o := &submitOptions{}
	cmd := &cobra.Command{
		Use:   "submit [flags] [-c CODE | FILE | -] [-- COMMAND | ARGS…]",
		Short: "Submit a run, and print its id",
		Long: `Submit a run, and print its id. Its flags are those of caisson run; with
--session it runs in a session. Its end is posted to --callback.`,
		Example: "  caisson execution submit -l python -c 'print(1)'",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.hasCode = cmd.Flags().Changed("code")
			return o.submit(cmd, cfg, args)
		},
	}
	f := cmd.Flags()
	o.execFlags(f)
	o.run.Limits = sandbox.DefaultLimits
	boxFlags(f, &o.run.Limits, &o.run.Image, &o.run.Network, &o.run.Runtime, &o.run.OCIRuntime)
	f.StringVar(&o.kind, "workspace", string(sandbox.WorkspaceTmpfs), "what /workspace is made of: tmpfs or volume")
	f.StringVar(&o.session, "session", "", "run it in this session")
	f.StringVar(&o.callback.URL, "callback", "", "post its end to this `URL`")
	f.StringVar(&o.secretFile, "callback-secret-file", "", "sign what is posted with what this `FILE` holds (default the server's own secret)")
	f.Var(&o.callback.Heartbeat, "heartbeat", "tell the callback's address so often that it runs")
	f.Var(&o.keep, "keep-result", "keep what comes of it for so long (default the server's)")
	for _, name := range []string{"artifacts-to", "summary"} {
		_ = f.MarkHidden(name) // it is there
	}
	return cmd
}

func (o *submitOptions) submit(cmd *cobra.Command, cfg Config, args []string) error {
	if o.into != "" {
		return sandbox.Errorf(sandbox.Invalid, "--artifacts-to of what nobody waits for").WithHint("fetch them when it is over: caisson execution artifact EXECUTION PATH")
	}
	svc, err := open[executionRoles](cmd.Context(), cfg)
	if err != nil {
		return err
	}
	if err := o.what(cfg, args, cmd.ArgsLenAtDash()); err != nil {
		return err
	}
	if o.run.Language == "" && o.run.File != "" {
		if o.run.Language, err = svc.LanguageOf(o.run.File); err != nil {
			return err
		}
	}
	if err := o.collect(cfg); err != nil {
		return err
	}
	o.run.Session = o.session
	asked := sandbox.ExecutionOptions{Run: o.run, Keep: o.keep}
	if asked.Callback, err = o.callbackOptions(); err != nil {
		return err
	}
	if asked.StdinBytes, err = o.readStdin(cfg); err != nil {
		return err
	}
	e, err := svc.SubmitExecution(cmd.Context(), asked, sandbox.Local{Contents: o.contents.open})
	if err != nil {
		return err
	}
	tellWaiting(cfg, e)
	if o.json {
		return writeJSON(cfg.IO.Out, e)
	}
	_, err = io.WriteString(cfg.IO.Out, string(e.ID)+"\n")
	return err
}

func (o *submitOptions) callbackOptions() (*sandbox.CallbackOptions, error) {
	if o.callback.URL == "" {
		if o.secretFile != "" || o.callback.Heartbeat != 0 {
			return nil, sandbox.Errorf(sandbox.Invalid, "--callback-secret-file or --heartbeat without --callback").WithHint("add --callback URL")
		}
		return nil, nil //nolint:nilnil // none was asked for
	}
	if o.secretFile != "" {
		b, err := os.ReadFile(o.secretFile)
		if err != nil {
			return nil, missing(o.secretFile, err)
		}
		o.callback.Secret = strings.TrimSpace(string(b))
	}
	return &o.callback, nil
}

// readStdin reads what --stdin names: what is submitted has its input with it.
func (o *submitOptions) readStdin(cfg Config) ([]byte, error) {
	if o.stdin == "" {
		return nil, nil
	}
	in := cfg.IO.In
	if o.stdin != "-" {
		f, err := os.Open(o.stdin)
		if err != nil {
			return nil, missing(o.stdin, err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(in)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read the program's input: %w", err).WithHint("give another --stdin")
	}
	return b, nil
}

// tellWaiting says why an execution cannot begin, where that is so.
func tellWaiting(cfg Config, e sandbox.Execution) {
	if e.Waits != "" {
		_, _ = io.WriteString(cfg.IO.Err, "caisson: it waits: "+visible(e.Waits)+"\n") // as in printError
	}
}

// executionID completes the beginning of an execution's id.
func executionID(ctx context.Context, svc api.Executions, prefix string) (sandbox.ID, error) {
	if id := sandbox.ID(prefix); id.Valid() {
		return id, nil
	}
	list, err := svc.Executions(ctx, sandbox.ExecutionFilter{})
	if err != nil {
		return "", err
	}
	var found []sandbox.ID
	for _, e := range list {
		if prefix != "" && strings.HasPrefix(string(e.ID), prefix) {
			found = append(found, e.ID)
		}
	}
	if len(found) != 1 {
		return "", sandbox.Errorf(sandbox.NotFound, "%d executions begin with %q", len(found), prefix).WithHint("see them with: caisson execution list")
	}
	return found[0], nil
}

// aboutExecution is a command about one execution.
func aboutExecution(cfg Config, use, short string, do func(cmd *cobra.Command, svc executionRoles, id sandbox.ID, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(len(strings.Fields(use)) - 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[executionRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			id, err := executionID(cmd.Context(), svc, args[0])
			if err != nil {
				return err
			}
			return do(cmd, svc, id, args)
		},
	}
}

func newExecutionCancel(cfg Config) *cobra.Command {
	return aboutExecution(cfg, "cancel EXECUTION", "End an execution, whether it waits or runs", func(cmd *cobra.Command, svc executionRoles, id sandbox.ID, _ []string) error {
		_, err := svc.CancelExecution(cmd.Context(), id)
		return err
	})
}

func newExecutionArtifact(cfg Config) *cobra.Command {
	return aboutExecution(cfg, "artifact EXECUTION PATH", "Write the content of an artifact to standard output", func(cmd *cobra.Command, svc executionRoles, id sandbox.ID, args []string) error {
		_, err := svc.ExecutionArtifact(cmd.Context(), id, args[1], cfg.IO.Out)
		return err
	})
}

// waitStep is how long one question for an end takes: a server does not hold
// one open for ever.
const waitStep = time.Minute

func newExecutionWait(cfg Config) *cobra.Command {
	var most sandbox.Duration
	o := &runOptions{}
	cmd := aboutExecution(cfg, "wait EXECUTION", "Wait for an end, print the output and exit with the code, as caisson run does", func(cmd *cobra.Command, svc executionRoles, id sandbox.ID, _ []string) error {
		begun := time.Now()
		for told := false; ; told = true {
			step := waitStep
			if most > 0 {
				step = min(step, time.Duration(most)-time.Since(begun))
			}
			if !told {
				step = 0
			}
			e, err := svc.Execution(cmd.Context(), id, sandbox.Duration(max(0, step)))
			switch {
			case err != nil:
				return err
			case e.State.Over():
				return o.tellEnd(cmd.Context(), cfg, svc, e)
			case !told:
				tellWaiting(cfg, e)
			case most > 0 && time.Since(begun) >= time.Duration(most):
				return sandbox.Errorf(sandbox.TimedOut, "execution %s is %s after %s", id.Short(), e.State, most).WithHint("wait for longer with --for, or end it: caisson execution cancel %s", id.Short())
			}
		}
	})
	cmd.Flags().Var(&most, "for", "wait at most so long (default for ever)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the execution as JSON")
	return cmd
}

// tellEnd prints what came of an execution and returns its exit code.
func (o *runOptions) tellEnd(ctx context.Context, cfg Config, svc executionRoles, e sandbox.Execution) error {
	if o.json {
		if err := writeJSON(cfg.IO.Out, e); err != nil {
			return err
		}
		return exitOr(codeOfExecution(e))
	}
	if e.Error != nil {
		printError(cfg.IO.Err, (&sandbox.Error{Kind: sandbox.Unavailable, Err: problemText(e.Error.Message), Hint: e.Error.Hint}))
	}
	if e.Result == nil {
		return exitOr(codeOfExecution(e))
	}
	if _, err := cfg.IO.Out.Write(e.Result.Stdout); err != nil {
		return err
	}
	_, _ = cfg.IO.Err.Write(e.Result.Stderr) // as in printError
	if e.Run != nil {
		o.run, o.session = *e.Run, e.Session
		o.run.ExecLimits = o.run.WithDefaults()
		o.limitsOf(ctx, svc)
	}
	if e.Error != nil {
		return exitOr(codeOfExecution(e))
	}
	return o.report(cfg, *e.Result, 0)
}

// problemText is an error's text that came as data.
type problemText string

func (p problemText) Error() string { return string(p) }

// codeOfExecution is what a command exits with for an execution that is over.
func codeOfExecution(e sandbox.Execution) int {
	switch {
	case e.Exit.Reason != "":
		return e.Exit.Code
	case e.Error != nil:
		return e.Error.Code
	}
	return 0
}
