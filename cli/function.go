package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newFunction(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "function",
		Short: "Handlers in the convention of AWS Lambda, kept and called by name",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFunctionPut(cfg), newFunctionInvoke(cfg), newFunctionList(cfg), newFunctionShow(cfg), newFunctionRemove(cfg))
	return cmd
}

// functionNames are those of the caller, for a shell to complete.
func functionNames(ctx context.Context, svc api.Functions, _ []string, _ string) []string {
	list, err := svc.Functions(ctx, sandbox.FunctionFilter{})
	if err != nil {
		return nil // as in complete
	}
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

func newFunctionPut(cfg Config) *cobra.Command {
	var o sandbox.FunctionOptions
	var env, labels []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "put NAME --handler MODULE.FUNCTION FILE…",
		Short: "Keep a function, or its next version",
		Long: `Keep a function, or its next version, which later calls have.

Each FILE is SRC[:DST]. Of a folder, what is in it lies beside the other files.`,
		Example: `  caisson function put hello --handler main.handler main.py
  caisson function put resize --handler src/index.handler ./resize --memory 256m --timeout 10s`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			var host contents
			for _, spec := range args[1:] {
				if st, err := os.Stat(spec); err == nil && st.IsDir() {
					spec += ":."
				}
				files, err := host.files(spec)
				if err != nil {
					return err
				}
				o.Files = append(o.Files, files...)
			}
			o.Env = variables(cfg, env)
			var err error
			if o.Labels, err = labelsOf(labels); err != nil {
				return err
			}
			svc, err := open[api.Functions](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			f, err := svc.PutFunction(cmd.Context(), o, sandbox.Local{Contents: host.open})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cfg.IO.Out, f)
			}
			_, err = fmt.Fprintf(cfg.IO.Out, "%s version %d\n", f.Name, f.Version)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Handler, "handler", "", "what is called: a module among the files, a dot, and a function in it, such as main.handler (required)")
	f.StringVarP(&o.Language, "language", "l", "", "python, node, or a version of them; the handler's file tells it too")
	durationVar(f, &o.Timeout, "timeout", sandbox.DefaultFunctionTimeout, "end a call after this long, with its process")
	f.IntVar(&o.Concurrency, "concurrency", sandbox.DefaultConcurrency, "calls at once, each in a sandbox of its own; more of them wait")
	envFlag(f, &env)
	labelFlag(f, &labels)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	o.Limits = sandbox.DefaultLimits
	boxFlags(f, &o.Limits, &o.Image, &o.Network, &o.Runtime, &o.OCIRuntime)
	completeLanguage(cfg, cmd)
	return completeArgs(cfg, cmd, asked(functionNames), nil)
}

func newFunctionInvoke(cfg Config) *cobra.Command {
	var call sandbox.Invocation
	var event string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "invoke NAME [--event JSON | FILE | -]",
		Short: "Call a function and print what it returns",
		Long: `Call a function and print what it returns, as JSON; what it prints itself goes to
standard error. A function that failed is told in the vendor's form,
{errorType, errorMessage, stackTrace}, and the exit code is 1.

A command leaves the function's sandbox for the next one, which starts a process in
it. A server keeps the process too.`,
		Example: `  caisson function invoke hello --event '{"name": "Ada"}'
  echo '{"name": "Ada"}' | caisson function invoke hello --event -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			call.Function = args[0]
			var err error
			if call.Event, err = eventOf(cfg, event); err != nil {
				return err
			}
			svc, err := open[api.Functions](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			var local sandbox.Local
			t := openTerminal(cmd.Context(), cfg)
			defer t.close()
			if t != nil && call.Approve != sandbox.ApproveNever && call.Approve != sandbox.ApproveAlways {
				local.Ask = t.ask
			}
			done, err := svc.InvokeFunction(cmd.Context(), call, local)
			if err != nil {
				return err
			}
			return printInvoked(cfg, done, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&event, "event", "", "what the handler gets: `JSON`, a file that has it, or - for standard input (default null)")
	countVar(f, &call.Version, "version", 0, "refuse another version than this; 0 is whichever there is")
	f.Var((*approveFlag)(&call.Approve), "approve", "what becomes of code that policy asks about: `ask` and wait, never, or always (default ask on a terminal, else never)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object with all that is known of the call")
	return completeArgs(cfg, cmd, asked(functionNames))
}

// eventOf reads what --event was given: JSON, else the name of a file.
func eventOf(cfg Config, given string) (json.RawMessage, error) {
	text := []byte(strings.TrimSpace(given))
	if len(text) == 0 || json.Valid(text) {
		return text, nil
	}
	var err error
	if given == "-" {
		if text, err = io.ReadAll(cfg.IO.In); err != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "read the event from standard input: %w", err)
		}
		return text, nil
	}
	if text, err = os.ReadFile(given); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "the event is neither JSON nor a file: %w", err).WithHint("quote JSON for the shell, such as '{\"name\": \"Ada\"}'")
	}
	return text, nil
}

// printInvoked prints what came of a call. Its error is the exit code.
func printInvoked(cfg Config, done sandbox.Invoked, asJSON bool) error {
	var err error
	if asJSON {
		err = writeJSON(cfg.IO.Out, done)
	} else {
		if done.LogLost > 0 {
			_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: %d bytes that it printed before are not kept\n", done.LogLost) // as in printError
		}
		_, _ = io.WriteString(cfg.IO.Err, done.Log) // nor this
		_, err = fmt.Fprintf(cfg.IO.Out, "%s\n", done.Payload())
	}
	if err == nil && done.Error != nil {
		return exitCode(exitUnwell)
	}
	return err
}

func newFunctionList(cfg Config) *cobra.Command {
	var asJSON bool
	var labels []string
	var filter sandbox.FunctionFilter
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List the functions",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if filter.Labels, err = labelsOf(labels); err != nil {
				return err
			}
			svc, err := open[api.Functions](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			list, err := svc.Functions(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cfg.IO.Out, append([]sandbox.Function{}, list...))
			}
			t := newTable(cfg.IO.Out, "FUNCTION", "VERSION", "LANGUAGE", "HANDLER", "MEMORY", "TIMEOUT", "AGE")
			for _, f := range list {
				t.row(f.Name, fmt.Sprint(f.Version), f.Language, oneLine(f.Handler, 40), f.Limits.Memory.String(), f.Timeout.String(),
					time.Since(f.Updated).Round(time.Second).String())
			}
			return t.flush()
		},
	}
	f := cmd.Flags()
	labelFilterFlag(f, &labels)
	limitFlag(f, &filter.Limit, 0, "at most so many")
	f.StringVar(&filter.After, "after", "", "only those behind this `NAME`: the last one of the page before")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newFunctionShow(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a function with its settings",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[api.Functions](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			f, err := svc.Function(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cfg.IO.Out, f)
			}
			return printFunction(cfg.IO.Out, f)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return completeArgs(cfg, cmd, asked(functionNames))
}

func printFunction(w io.Writer, f sandbox.Function) error {
	t := newTable(w, "function", f.Name)
	t.row("version", fmt.Sprint(f.Version))
	t.row("updated", f.Updated.Format(time.RFC3339))
	t.row("handler", oneLine(f.Handler, 200))
	t.row("language", f.Language)
	t.row("sha256", f.SHA256)
	t.row("limits", fmt.Sprintf("memory %s, cpus %g, pids %d", f.Limits.Memory, f.Limits.CPUs, f.Limits.PIDs))
	t.row("timeout", f.Timeout.String())
	t.row("concurrency", fmt.Sprint(f.Concurrency))
	t.row("network", oneLine(f.Network.String(), 60))
	for _, name := range f.Env {
		t.row("variable", oneLine(name, 200))
	}
	for _, file := range f.Files {
		t.row("file", fmt.Sprintf("%s %d", oneLine(file.Path, 200), file.Size))
	}
	return t.flush()
}

func newFunctionRemove(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rm NAME…",
		Short: "Forget functions, with their sandboxes",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			svc, err := open[api.Functions](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := svc.RemoveFunction(cmd.Context(), name); err != nil {
					return err
				}
			}
			return nil
		},
	}
	return completeArgs(cfg, cmd, asked(functionNames))
}
