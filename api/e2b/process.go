package e2b

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// start runs a command and tells what it says until it ends. A client that goes
// away leaves it running; the deadline that it set ends it.
func (s *Server) start(ctx context.Context, h http.Header, in *startRequest, to *sender[processEvent]) error {
	v := viewFrom(ctx)
	run, err := runOf(h, in)
	if err != nil {
		return err
	}
	e, told, err := s.begin(ctx, h, run, to)
	switch {
	case errors.Is(err, errKilled):
		return to.end(&processEvent{event{End: endOf(sandbox.Exit{Code: 128 + int(syscall.SIGKILL), Signal: "SIGKILL", Reason: sandbox.ReasonSignal})}})
	case errors.Is(err, sandbox.NotFound) && strings.HasPrefix(err.Error(), "working directory "):
		return sandbox.Errorf(sandbox.Invalid, "cwd '%s' does not exist", run.Dir)
	case err != nil:
		return err
	}
	return s.follow(ctx, h, v.Name, e, told, sandbox.AttachOptions{Follow: true}, to)
}

// runOf is a command as caisson runs it.
func runOf(h http.Header, in *startRequest) (run sandbox.Run, err error) {
	p := in.Process
	if p == nil || p.Cmd == "" {
		return run, sandbox.Errorf(sandbox.Invalid, "no command")
	}
	// Whoever is asked about it answers in time, or the client's own patience ends.
	run = sandbox.Run{Command: append([]string{p.Cmd}, withoutLogin(p.Args)...), Hold: true, Guard: true, Approve: sandbox.ApproveAsk, Input: in.PTY == nil && (in.Stdin == nil || *in.Stdin)}
	if run.Env, err = envOf(p.Envs); err != nil {
		return run, err
	}
	if p.Cwd != nil && *p.Cwd != "" {
		run.Dir, err = placeOf(*p.Cwd)
		if errors.Is(err, sandbox.Denied) && path.IsAbs(*p.Cwd) {
			run.Dir, err = path.Clean(*p.Cwd), nil // a command may read it, and so begin there
		}
		if err != nil {
			return run, err
		}
	}
	if in.PTY != nil {
		size := ptySize{Cols: 80, Rows: 24}
		if in.PTY.Size != nil {
			size = *in.PTY.Size
		}
		run.Terminal = &sandbox.TerminalSize{Rows: uint16(min(size.Rows, 1<<15)), Cols: uint16(min(size.Cols, 1<<15))}
	}
	if in.Tag != nil && *in.Tag != "" {
		run.Labels = sandbox.Labels{labelTag: *in.Tag}
	}
	if ms := h.Get("Connect-Timeout-Ms"); ms != "" {
		n, err := strconv.ParseInt(ms, 10, 64)
		if err != nil || n < 1 {
			return run, sandbox.Errorf(sandbox.Invalid, "a timeout of %q milliseconds", ms)
		}
		run.Timeout = sandbox.Duration(time.Duration(n) * time.Millisecond)
	}
	return run, nil
}

// withoutLogin are the arguments of a shell that is no login shell where it runs a
// text: clients make every command one, and its start-up files are the programs' to
// write, so that policy would ask about each.
func withoutLogin(args []string) []string {
	if len(args) == 3 && args[0] == "-l" && args[1] == "-c" {
		return args[1:]
	}
	return args
}

// attach follows a command that runs, from now on.
func (s *Server) attach(ctx context.Context, h http.Header, in *selectRequest, to *sender[processEvent]) error {
	v := viewFrom(ctx)
	e, err := s.process(ctx, in.Process, true)
	if err != nil {
		return err
	}
	now, err := s.svc.AttachExec(ctx, v.Name, e.ID, sandbox.AttachOptions{}, nil, nil)
	if err != nil {
		return err
	}
	return s.follow(ctx, h, v.Name, e, 0, sandbox.AttachOptions{Stdout: now.Stdout, Stderr: now.Stderr, Follow: true}, to)
}

// follow tells a client of an exec: its number, unless one was told, what it says,
// how it ended.
func (s *Server) follow(ctx context.Context, h http.Header, box string, e sandbox.ExecRecord, told uint32, from sandbox.AttachOptions, to *sender[processEvent]) error {
	if told == 0 {
		if err := to.send(&processEvent{event{Start: &started{uint32(e.PID)}}}); err != nil {
			s.attend(ctx, box, e.ID)
			return err
		}
		to.keepAlive(h, &processEvent{event{KeepAlive: &empty{}}})
	}
	stdout := speaker{to, func(b []byte) *output { return &output{Stdout: b} }}
	if e.Terminal {
		stdout.as = func(b []byte) *output { return &output{PTY: b} }
	}
	got, err := s.svc.AttachExec(ctx, box, e.ID, from, stdout, speaker{to, func(b []byte) *output { return &output{Stderr: b} }})
	switch {
	case err != nil:
		s.attend(ctx, box, e.ID)
		return err
	case got.Exit.Signal != "" && s.gone.has(viewFrom(ctx).ID):
		return goneError("the sandbox %s was ended", box)
	case !got.Ended || got.Exit.Reason == sandbox.ReasonInfra:
		return sandbox.Errorf(sandbox.Unavailable, "the command's end was not seen: %s", cmp.Or(got.Exit.Cause, "the connection to its sandbox broke"))
	case got.Exit.Reason == sandbox.ReasonTimeout:
		return sandbox.Errorf(sandbox.TimedOut, "the time of the command is over")
	case got.Exit.Reason == sandbox.ReasonDenied: // by what it started
		return sandbox.Errorf(sandbox.Denied, "%s", got.Exit.Cause)
	}
	return to.end(&processEvent{event{End: endOf(got.Exit)}})
}

// speaker is one output of a command, on its way to a client.
type speaker struct {
	to *sender[processEvent]
	as func([]byte) *output
}

func (w speaker) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return len(b), w.to.send(&processEvent{event{Data: w.as(b)}})
}

// endOf is how a command ended, in the words that clients know from Go.
func endOf(x sandbox.Exit) *ended {
	e := &ended{ExitCode: int32(x.Code), Exited: true, Status: fmt.Sprintf("exit status %d", x.Code)}
	if x.Signal != "" {
		e.Exited, e.ExitCode, e.Status = false, -1, "signal: "+signalText(x)
	}
	if x.Reason != sandbox.ReasonExited && x.Reason != sandbox.ReasonSignal {
		e.Status = string(x.Reason)
	}
	if !e.Exited || x.Code != 0 {
		e.Error = &e.Status
	}
	return e
}

// signalText is a signal's name in Go's words, such as "killed".
func signalText(x sandbox.Exit) string {
	if n := x.Code - 128; n > 0 && n < 65 {
		return syscall.Signal(n).String()
	}
	return x.Signal
}
