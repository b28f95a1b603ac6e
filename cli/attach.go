package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// attachOptions are the flags of what reads an exec's output.
type attachOptions struct {
	opts  sandbox.AttachOptions
	json  bool
	input bool
	watch bool
	// terminals says that those are joined.
	terminals bool
	terminalOptions
}

func (o *attachOptions) flags(f *pflag.FlagSet) {
	countVar(f, &o.opts.Stdout, "offset", 0, "begin at this byte of standard output")
	countVar(f, &o.opts.Stderr, "stderr-offset", 0, "begin at this byte of standard error")
	f.BoolVar(&o.json, "json", false, "print the new offsets as JSON on standard error")
}

func newAttach(cfg Config) *cobra.Command {
	o := &attachOptions{opts: sandbox.AttachOptions{Follow: true}, terminals: true}
	cmd := &cobra.Command{
		Use:   "attach SESSION EXEC",
		Short: "Follow an exec that runs, as if it had been started here",
		Long: `Follow an exec that runs: print what it has put out and what comes, until its end,
and exit with its code. With --input, what is typed here goes to its standard
input, which it was started with --input for, and is closed where that ends.
Who leaves ends nothing, and takes nothing away from others that read.

An exec with a terminal is joined: what it has shown last is shown again, what is
typed here goes there, and ctrl-p ctrl-q leaves it. One types; others --watch.`,
		Example: `  id=$(caisson exec work --detach --input -- sort)
  printf 'b\na\n' | caisson attach work "$id" --input`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.attach(cmd.Context(), cfg, args[0], args[1]) },
	}
	o.flags(cmd.Flags())
	o.terminalOptions.flags(cmd.Flags())
	cmd.Flags().BoolVarP(&o.input, "input", "i", false, "pass standard input on")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "look at a terminal, and type nothing")
	return cmd
}

// attach prints an exec's output, and passes standard input on where that is
// asked for.
func (o *attachOptions) attach(ctx context.Context, cfg Config, session, exec string) error {
	svc, err := open[execRoles](ctx, cfg)
	if err != nil {
		return err
	}
	id, err := execID(ctx, svc, session, exec)
	if err != nil {
		return err
	}
	joins, err := o.joins(ctx, svc, session, id)
	if err != nil {
		return err
	}
	if joins {
		_, _, own := ownTerminal(cfg)
		r, err := o.join(ctx, cfg, svc, session, id, !o.watch && (own || o.input))
		if errors.Is(err, errDetached) {
			return nil
		}
		return o.tell(cfg, r, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.input {
		go func() { // it ends with the process where the terminal gives nothing more
			if err := input(ctx, svc, session, id, cfg.IO.In, true); err != nil && !errors.Is(err, sandbox.Conflict) {
				cancel(err) // a Conflict is an input that the exec has closed: it goes on
			}
		}()
	}
	r, failed := svc.AttachExec(ctx, session, id, o.opts, cfg.IO.Out, cfg.IO.Err)
	return o.tell(cfg, r, failed)
}

// joins reports whether an exec has a terminal that is to be joined. Who asks for
// bytes by their offset gets them.
func (o *attachOptions) joins(ctx context.Context, svc api.Sessions, session string, id sandbox.ID) (bool, error) {
	if !o.terminals || o.opts.Stdout != 0 {
		return false, nil
	}
	v, err := svc.Session(ctx, session)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(v.Execs, func(e sandbox.ExecRecord) bool { return e.ID == id && e.Terminal }), nil
}

// tell says how far an exec was read, and exits as it did.
func (o *attachOptions) tell(cfg Config, r sandbox.Attached, failed error) error {
	if failed != nil && !r.Ended {
		return failed
	}
	if o.json {
		if err := json.NewEncoder(cfg.IO.Err).Encode(r); err != nil {
			return err
		}
	} else if n := r.Lost.Stdout + r.Lost.Stderr; n > 0 {
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: %s of older output were not kept\n", sandbox.Bytes(n).Human()) // as in printError
	}
	if !o.opts.Follow || !r.Ended {
		return failed
	}
	if failed != nil {
		printError(cfg.IO.Err, failed) // it has ended, and that could not be written down: both are told
	}
	return exitOr(r.Exit.Code)
}

func newInput(cfg Config) *cobra.Command {
	var end bool
	cmd := &cobra.Command{
		Use:   "input SESSION EXEC",
		Short: "Write standard input to that of an exec in the background",
		Long: `Write standard input to that of an exec that was started with --detach --input,
and wait until it was taken. It stays open for the next unless --close is given.`,
		Example: `  id=$(caisson exec work --detach --input -- sort)
  echo b | caisson input work "$id"
  echo a | caisson input work "$id" --close
  caisson attach work "$id"`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[execRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			id, err := execID(cmd.Context(), svc, args[0], args[1])
			if err != nil {
				return err
			}
			return input(cmd.Context(), svc, args[0], id, cfg.IO.In, end)
		},
	}
	cmd.Flags().BoolVar(&end, "close", false, "close it behind that: the exec reads its end")
	return cmd
}

// input passes on what r gives, as it comes, and then with end closes the exec's
// input.
func input(ctx context.Context, svc api.ExecControl, session string, id sandbox.ID, r io.Reader, end bool) error {
	buf := make([]byte, 32<<10)
	for first := true; ; first = false {
		n, err := r.Read(buf)
		over := errors.Is(err, io.EOF)
		if err != nil && !over {
			return sandbox.Errorf(sandbox.Invalid, "read standard input: %w", err).WithHint("give it from a file, a pipe or a terminal")
		}
		if n > 0 || over && (end || first) { // nothing at all asks too whether it could be
			if _, err := svc.InputExec(ctx, session, id, buf[:n], over && end); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
	}
}
