package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// terminalRoles are what it takes to join a terminal.
type terminalRoles interface {
	api.Terminals
	api.ExecControl
}

// terminalOptions are the flags of who joins an exec's terminal.
type terminalOptions struct {
	record string
	keys   string
}

func (o *terminalOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.record, "record", "", "record what the terminal shows into `FILE`, as asciicast v2")
	f.StringVar(&o.keys, "detach-keys", "ctrl-p,ctrl-q", "leave the terminal, which goes on, by these `KEYS`")
}

// errDetached is why a terminal was left that goes on.
var errDetached = errors.New("detached")

// ownTerminal is caisson's own terminal, where both its input and its output are one.
func ownTerminal(cfg Config) (in, out *os.File, ok bool) {
	in, isIn := cfg.IO.In.(*os.File)
	out, isOut := cfg.IO.Out.(*os.File)
	return in, out, isIn && isOut && isTerminal(in) && isTerminal(out)
}

// sizeOf is the size of a terminal; the zero value where it does not tell.
func sizeOf(f *os.File) sandbox.TerminalSize {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return sandbox.TerminalSize{}
	}
	return sandbox.TerminalSize{Rows: uint16(min(rows, 1<<16-1)), Cols: uint16(min(cols, 1<<16-1))}
}

// leaveTerminal puts back what a program that goes on may have set: the other screen,
// a hidden cursor, pasting and mice that are told, colours.
const leaveTerminal = "\x1b[?1049l\x1b[?25h\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1l\x1b>\x1b[0m\r\n"

// join shows an exec's terminal until its end. With types, what is typed here goes
// there, key by key, and it gets the size of this one. [errDetached] is that the
// person has left.
func (o *terminalOptions) join(ctx context.Context, cfg Config, svc terminalRoles, session string, id sandbox.ID, types bool) (_ sandbox.Attached, err error) {
	keys, err := parseKeys(o.keys)
	if err != nil {
		return sandbox.Attached{}, err
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	streams := sandbox.Streams{Stdout: cfg.IO.Out}
	in, out, own := ownTerminal(cfg)
	size := sandbox.TerminalSize{}
	if own {
		size = sizeOf(out)
	}
	var rec *cast
	if o.record != "" {
		if rec, err = newCast(o.record, size, cfg.getenv("TERM")); err != nil {
			return sandbox.Attached{}, err
		}
		defer func() { err = errors.Join(err, rec.close()) }()
		streams.Stdout = io.MultiWriter(cfg.IO.Out, rec)
	}
	switch {
	case types && own:
		state, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return sandbox.Attached{}, sandbox.Errorf(sandbox.Unavailable, "set the terminal: %w", err).WithHint("start it in a terminal, or watch with --watch")
		}
		defer func() { _ = term.Restore(int(in.Fd()), state) }() // as it could be set, it can be set back
		streams.Stdin = &keyboard{in: in, keys: keys, leave: func() { leave(errDetached) }}
		defer o.follow(ctx, svc, session, id, out, rec)()
	case types:
		streams.Stdin = cfg.IO.In
	}
	a, err := svc.AttachTerminal(ctx, session, id, streams)
	if errors.Is(context.Cause(ctx), errDetached) && !a.Ended {
		_, _ = io.WriteString(cfg.IO.Out, leaveTerminal) // who reads it is leaving
		return a, errDetached
	}
	if e, ok := errors.AsType[*sandbox.Error](err); ok && e.Kind == sandbox.Conflict && types {
		err = e.WithHint("watch with: caisson attach %s %s --watch", session, id.Short())
	}
	return a, err
}

// follow gives the exec's terminal the size of out, now and whenever that changes,
// until the returned function is called. Sizes that are over are passed by.
func (o *terminalOptions) follow(ctx context.Context, svc terminalRoles, session string, id sandbox.ID, out *os.File, rec *cast) func() {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() {
		for first := true; ; first = false {
			s := sizeOf(out)
			_ = svc.ResizeExec(ctx, session, id, s.Rows, s.Cols) // it may have ended, as who follows it hears
			if rec != nil && !first {
				rec.resize(s)
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		signal.Stop(changed)
		stop()
		following.Wait()
	}
}

// openInTerminal starts an exec with a terminal and joins that.
func (o *runOptions) openInTerminal(ctx context.Context, cfg Config, svc runRoles, local sandbox.Local) error {
	if err := o.checkTerminal(cfg); err != nil {
		return err
	}
	session, remove := o.session, func() error { return nil }
	if session == "" {
		s, err := svc.CreateSession(ctx, o.sessionOf(), sandbox.Local{})
		if err != nil {
			return err
		}
		session = s.Name
		remove = func() error { return svc.RemoveSession(context.WithoutCancel(ctx), session, true) }
		o.run.Image, o.run.Network, o.run.Limits, o.run.Workspace, o.run.Runtime, o.run.OCIRuntime = "", sandbox.Network{}, sandbox.Limits{}, sandbox.Workspace{}, "", ""
	}
	e, err := svc.StartExec(ctx, session, o.run, local)
	if err != nil {
		return errors.Join(err, remove())
	}
	a, err := o.terminal.join(ctx, cfg, svc, session, e.ID, o.interactive)
	left := errors.Is(err, errDetached)
	if !a.Ended && (left || o.session != "") && cfg.Leave != nil { // it goes on, also where this terminal was closed
		if err := cfg.Leave(context.WithoutCancel(ctx), session, e.ID); err != nil {
			printError(cfg.IO.Err, err)
		}
	}
	if left {
		if o.session == "" {
			if err := svc.RenewSession(context.WithoutCancel(ctx), session, api.RenewOptions{Keep: true}); err != nil {
				return err
			}
		}
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: it goes on; come back with: caisson attach %s %s\n", session, e.ID.Short()) // as in printError
		return nil
	}
	if !a.Ended && err == nil {
		err = sandbox.Errorf(sandbox.Unavailable, "the terminal was lost").WithHint("see what runs with: caisson ps %s", session)
	}
	if err = errors.Join(err, remove()); err != nil {
		return err
	}
	return o.ended(cfg, a)
}

// ended tells how an exec with a terminal ended.
func (o *runOptions) ended(cfg Config, a sandbox.Attached) error {
	if a.Exit.Reason != sandbox.ReasonExited && a.Exit.Cause != "" {
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: %s\n", visible(a.Exit.Cause)) // as in printError
	}
	return exitOr(a.Exit.Code)
}

// checkTerminal refuses what does not go with a terminal, and sets its size.
func (o *runOptions) checkTerminal(cfg Config) error {
	for name, is := range map[string]bool{
		"--json": o.json, "--summary": o.summary, "--stdin": o.stdin != "", "--artifacts-to": o.into != "", "--keep": o.run.Keep, "code on standard input": o.codeRead,
	} {
		if is {
			return sandbox.Errorf(sandbox.Invalid, "%s with --tty", name).WithHint("leave one of them out")
		}
	}
	_, out, own := ownTerminal(cfg)
	if o.interactive && !own {
		return sandbox.Errorf(sandbox.Invalid, "--interactive with --tty, and no terminal here").WithHint("start it in a terminal, or leave --interactive out")
	}
	o.run.Terminal = &sandbox.TerminalSize{}
	if own {
		*o.run.Terminal = sizeOf(out)
	}
	return nil
}

// sessionOf is a session for one run in a terminal, which can be left and come back
// to. It is removed with the run's end, and where this process dies before it is left.
func (o *runOptions) sessionOf() sandbox.SessionOptions {
	r := &o.run
	return sandbox.SessionOptions{
		Name: "run-" + sandbox.NewID().Short(), Labels: r.Labels, Language: r.Language, Image: r.Image,
		Network: r.Network, Workspace: r.Workspace, Limits: r.Limits, Runtime: r.Runtime, OCIRuntime: r.OCIRuntime, Idle: sessionIdle, Temporary: true,
	}
}
