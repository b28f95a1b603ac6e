package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newExec(cfg Config) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "exec SESSION [flags] [-c CODE | FILE | -] [-- COMMAND | ARGS…]",
		Short: "Run something in a session",
		Long: `Run something in a session, in its sandbox of the language, which is made at
first use. Files and background processes stay for the next exec.

With --detach it goes on in the background and its id is printed: see caisson
ps, logs, attach, kill, and with --input, input. With -it it has a terminal, this
one: ctrl-p ctrl-q leaves it, and caisson attach comes back. Exit codes are those of caisson
run.`,
		Example: `  caisson session create work --language python
  caisson exec work -c 'open("x", "w").write("1")'
  caisson exec work -l node -c 'console.log(require("fs").readFileSync("x", "utf8"))'
  caisson exec work --detach -- sh -c 'sleep 9; echo done'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash == 0 {
				return sandbox.Errorf(sandbox.Invalid, "no session").WithHint("name it: caisson exec SESSION -- COMMAND")
			}
			o.session = args[0]
			o.hasCode = cmd.Flags().Changed("code")
			o.untimed(cmd.Flags())
			if o.detach && cfg.Outlive != nil {
				switch outlived, code, err := cfg.Outlive(cmd.Context()); {
				case err != nil:
					return err
				case code != 0:
					return exitCode(code)
				case outlived:
					return nil
				}
			}
			if o.tty {
				o.interactive, o.run.Input = o.run.Input, false
			}
			return o.execute(cmd.Context(), cfg, args[1:], dash-1)
		},
	}
	o.execFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&o.detach, "detach", "d", false, "leave it running in the background and print its id")
	cmd.Flags().BoolVarP(&o.run.Input, "input", "i", false, "with --tty, type into it; with --detach, keep its standard input open for caisson input")
	return cmd
}

// start begins an exec in the background and prints its id.
func (o *runOptions) start(ctx context.Context, cfg Config, svc api.Execs, local sandbox.Local) error {
	if o.stdin != "" {
		return sandbox.Errorf(sandbox.Invalid, "--stdin with --detach: nobody would feed it").WithHint("put the input into a file of the workspace, or give --input and write to it with: caisson input")
	}
	if o.tty {
		o.run.Terminal = &sandbox.TerminalSize{}
	}
	e, err := svc.StartExec(ctx, o.session, o.run, local)
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(cfg.IO.Out).Encode(e)
	}
	_, err = fmt.Fprintln(cfg.IO.Out, e.ID)
	return err
}

// execRoles are what it takes to find an exec and to do something with it.
type execRoles interface {
	api.Sessions
	terminalRoles
}

func newLogs(cfg Config) *cobra.Command {
	o := &attachOptions{}
	cmd := &cobra.Command{
		Use:   "logs SESSION EXEC",
		Short: "Print what an exec in the background has put out",
		Long: `Print what an exec in the background has put out. The newest half mebibyte of
each stream is kept. With --follow, wait for its end and exit with its code. Who
stops reading ends nothing.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.attach(cmd.Context(), cfg, args[0], args[1]) },
	}
	o.flags(cmd.Flags())
	cmd.Flags().BoolVarP(&o.opts.Follow, "follow", "f", false, "wait for more until it ends")
	return cmd
}

func newKill(cfg Config) *cobra.Command {
	var signal string
	cmd := &cobra.Command{
		Use:   "kill SESSION EXEC",
		Short: "End an exec with everything that it started, or send it a signal",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[execRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			id, err := execID(cmd.Context(), svc, args[0], args[1])
			if err != nil {
				return err
			}
			if signal == "" {
				return svc.KillExec(cmd.Context(), args[0], id)
			}
			n, err := parseSignal(signal)
			if err != nil {
				return err
			}
			return svc.SignalExec(cmd.Context(), args[0], id, n, true)
		},
	}
	cmd.Flags().StringVarP(&signal, "signal", "s", "", "send `SIGNAL`, such as TERM or 15, to all its processes instead")
	return cmd
}

func parseSignal(s string) (int, error) {
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n <= 64 {
		return n, nil
	}
	if n := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG")); n != 0 {
		return int(n), nil
	}
	return 0, sandbox.Errorf(sandbox.Invalid, "unknown signal %q", s).WithHint("name it, such as TERM, or give its number")
}

// execID completes the beginning of an exec's id.
func execID(ctx context.Context, svc api.Sessions, session, prefix string) (sandbox.ID, error) {
	if id := sandbox.ID(prefix); id.Valid() {
		return id, nil
	}
	v, err := svc.Session(ctx, session)
	if err != nil {
		return "", err
	}
	var found []sandbox.ID
	for _, e := range v.Execs {
		if prefix != "" && strings.HasPrefix(string(e.ID), prefix) {
			found = append(found, e.ID)
		}
	}
	if len(found) != 1 {
		return "", sandbox.Errorf(sandbox.NotFound, "%d execs of session %s begin with %q", len(found), session, prefix).
			WithHint("see them with: caisson ps %s", session)
	}
	return found[0], nil
}
