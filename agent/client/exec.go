package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/internal/known"
	"github.com/caisson-dev/caisson/sandbox"
)

// Command is a process to run. Like os/exec's, it reads Stdin and writes Stdout
// and Stderr while it runs.
type Command struct {
	ID      sandbox.ID // fresh; "" makes one
	Argv    []string
	Env     []string // over the claim's, KEY=VALUE
	Dir     string   // "" is the workspace
	Role    sandbox.Role
	Timeout time.Duration // 0 is none
	// MaxOutput ends the exec once either stream has passed it. 0 is no cap.
	MaxOutput sandbox.Bytes
	// Stdin is read until the exec ends. A Read that blocks keeps the
	// goroutine that it runs on, as in os/exec. nil is /dev/null.
	Stdin io.Reader
	// Stdout and Stderr get the bytes in order, from one goroutine. One that
	// blocks stalls this exec and no other. nil discards.
	Stdout, Stderr io.Writer
	// Reap ends, with the process, everything that it started.
	Reap bool
	// Drop keeps the newest output where nobody reads it, instead of stalling.
	Drop bool
	// Hold stalls a background exec while somebody who attached is behind: see
	// [sandbox.Run].
	Hold bool
	// Look is for who attaches and does not answer for the exec: nothing is
	// acknowledged, and an end of ctx or a writer that fails ends the look alone,
	// with that error.
	Look bool
	// Later keeps the standard input of a background exec open: see
	// [Client.Start].
	Later bool
	// Stage are files that the user can read and not write, at [StagePath].
	Stage []StageFile
	// Track books what it does to the workspace: see [Client.Observe]. It is a
	// Conflict where something is there to be observed before, unless Late is
	// set. Fresh says that what is there is nobody's doing.
	Track, Late, Fresh bool
	// Shell makes it a shell of that kind, in place of Argv: see [Client.OpenShell].
	Shell sandbox.ShellKind
	// Terminal gives a background exec a terminal of that size: see [Client.Start].
	Terminal *sandbox.TerminalSize
	// Warm forks a warm Python in place of starting one, with modules imported before,
	// where that is the same for the program: see [Outcome].
	Warm *Warm
	// Tools gives it a socket by which the host's tools are called: see [Client.Tools].
	Tools bool
	// Answer lets it hand something back, of at most so many bytes, by [AnswerSocket]:
	// see [Client.Answer].
	Answer sandbox.Bytes
	// Starts has what it starts seen: see [Client.Judge]. The agent must be able to
	// ([Client.SeesStarts]).
	Starts *Starts
	// Clock, where set, can be stopped while it runs.
	Clock *Clock
	// In runs a text in a shell, in place of Argv, Env, Dir, Role and Stage.
	In *ShellText
}

// Warm names the modules that a warm interpreter has imported before.
type Warm struct{ Modules []string }

// StageFile is a file that an exec finds at [StagePath] and that goes with it.
type StageFile struct {
	Name string
	Data []byte
}

// Outcome is what came of a command.
type Outcome struct {
	sandbox.Exit
	Usage sandbox.Usage
	// Stdout and Stderr count the bytes that the process wrote, Lost those
	// that never came here.
	Stdout, Stderr int64
	Lost           sandbox.Truncated
	// Message is the agent's word on a process that could not begin.
	Message string
	// Touched counts what there is to be observed.
	Touched int
	// Warm says that it was forked from a warm interpreter.
	Warm bool
	// Answer is the size of what it has handed back; 0 is nothing. Answered is that
	// itself, where it is small; nil is to be had by [Client.Answer].
	Answer   int64
	Answered []byte
	// Starts counts the programs that it started, Refused those that it could not, and
	// Unjudged those of them that nobody was there to judge, where that was seen.
	Starts, Refused, Unjudged int
	// Told are those, and how they ended, where no [Judge] was called for: see [Starts].
	Told []Start
	// Dir is where the shell is that a text ran in, ShellEnded why that has ended.
	Dir, ShellEnded string
	// Broken says that the sandbox must not be used again. Cut is of those: its
	// connection was lost, and nothing is known of the sandbox itself.
	Broken, Cut bool
}

// cancelPatience is how long a cancelled exec may take to be answered, at least.
const cancelPatience = 6 * time.Second

// Run runs a command to its end. Cancelling ctx ends it, and everything that it
// started, with [sandbox.ReasonCanceled].
//
// An error means that it never began: with [Command].In, a [MovedError] too. Afterwards whatever happens is an
// Outcome: a connection that breaks is [sandbox.ReasonInfra].
func (c *Client) Run(ctx context.Context, cmd Command) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	if cmd.ID == "" {
		cmd.ID = sandbox.NewID()
	}
	req := wire.Request{Op: wire.OpExec}
	if cmd.In != nil {
		req = wire.Request{Op: wire.OpShell, Shell: shellRequest(cmd)}
	} else {
		req.Exec = c.execRequest(cmd)
	}
	s, err := c.open(ctx, req)
	if err != nil {
		return Outcome{}, err
	}
	f := &follower{c: c, s: s, cmd: cmd}
	return f.follow(ctx)
}

func (c *Client) execRequest(cmd Command) *wire.Exec {
	req := &wire.Exec{
		ID: string(cmd.ID), Argv: cmd.Argv, Env: cmd.Env, Dir: cmd.Dir, Role: string(cmd.Role), TimeoutMS: ceilMS(cmd.Timeout),
		MaxOutput: int64(cmd.MaxOutput), Stdin: cmd.Stdin != nil, Reap: cmd.Reap, Drop: cmd.Drop, Hold: cmd.Hold,
		Track: cmd.Track, Late: cmd.Late, Fresh: cmd.Fresh, Shell: string(cmd.Shell), Tools: cmd.Tools, Answer: int64(cmd.Answer),
	}
	if t := cmd.Terminal; t != nil {
		req.Terminal = &wire.Size{Rows: t.Rows, Cols: t.Cols}
	}
	if cmd.Warm != nil {
		req.Warm = &wire.Warm{Modules: cmd.Warm.Modules}
	}
	if s := cmd.Starts; s != nil {
		req.Starts = &wire.Starts{Ask: s.Ask, End: s.End, Call: s.Call != nil, Variables: s.Variables, Rules: s.Rules}
	}
	for _, f := range cmd.Stage {
		digest, rest := known.Cut(f.Data, c.welcome.Known)
		req.Stage = append(req.Stage, wire.Stage{Name: f.Name, Known: digest, Data: rest})
	}
	return req
}

// Attach follows an exec that was started before, from the given offsets on. It
// uses ID, Stdout, Stderr, MaxOutput, Drop and Look of cmd. Errors: NotFound.
func (c *Client) Attach(ctx context.Context, cmd Command, stdout, stderr int64) (Outcome, error) {
	s, err := c.open(ctx, wire.Request{Op: wire.OpAttach, Attach: &wire.Attach{ID: string(cmd.ID), Stdout: stdout, Stderr: stderr}})
	if err != nil {
		return Outcome{}, err
	}
	cmd.Timeout, cmd.Stdin = 0, nil
	f := &follower{c: c, s: s, cmd: cmd, got: [2]int64{stdout, stderr}}
	return f.follow(ctx)
}

func ceilMS(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// follower reads one exec's stream.
type follower struct {
	c     *Client
	s     *yamux.Stream
	cmd   Command
	got   [2]int64 // offset that comes next
	acked [2]int64
	lost  [2]int64
	sink  error // first error of a writer

	called bool // its judge was
	noWait bool // a Reply says that the exec goes on
	over   bool // the agent's last word was taken

	mu       sync.Mutex
	canceled bool
	source   error // why standard input could not be read to its end
	started  bool
	begun    time.Time // when that was heard
	stdin    *yamux.Stream
	deadline time.Time // until when the agent must have answered; zero is never
	still    bool      // it stands still
}

// ackEvery is how many bytes are delivered between two acknowledgements.
const ackEvery = 128 << 10

func (f *follower) follow(ctx context.Context) (Outcome, error) {
	defer f.leave()
	if f.cmd.Timeout > 0 {
		patience := f.c.patience
		if f.cmd.In != nil {
			patience = max(patience, shellPatience)
		}
		f.expect(time.Now().Add(f.cmd.Timeout + patience))
	}
	if f.cmd.Clock != nil {
		f.cmd.Clock.of(f)
	}
	stop := context.AfterFunc(ctx, f.cancel)
	defer stop()
	defer f.closeStdin()
	r := wire.NewReader(f.s)
	for {
		frame, err := r.Next()
		if f.cmd.Look && ctx.Err() != nil {
			return f.outcome(), context.Cause(ctx)
		}
		if err == nil && f.late() {
			err = yamux.ErrTimeout // the stream itself times out only while it is silent
		}
		if err != nil {
			return f.fell(err)
		}
		if frame.Type == wire.TypeFailure {
			err := failure(frame)
			if f.hasStarted() {
				return f.infra(err), nil
			}
			return Outcome{}, err
		}
		if frame.Type == wire.TypeReply && f.noWait {
			return Outcome{}, errNotEnded
		}
		if frame.Type == wire.TypeReply && f.cmd.In != nil && !f.hasStarted() {
			return Outcome{}, moved(frame)
		}
		end, err := f.take(ctx, frame)
		if err != nil {
			return f.infra(err), nil
		}
		if f.cmd.Look && f.sink != nil {
			return f.outcome(), fmt.Errorf("write the output: %w", f.sink)
		}
		if end != nil {
			return f.conclude(end), nil
		}
	}
}

// take deals with one frame, and returns the end where it is that. Its errors
// wrap [wire.ErrFrame], or are those of the connection.
func (f *follower) take(ctx context.Context, frame wire.Frame) (*wire.End, error) {
	switch frame.Type {
	case wire.TypeStarted:
		return nil, f.begin(ctx)
	case wire.TypeStdout, wire.TypeStderr:
		return nil, f.deliver(frame)
	case wire.TypeJudge:
		if s := f.cmd.Starts; s != nil && s.Call != nil && !f.called {
			f.called = true
			go s.Call()
			return nil, nil
		}
	case wire.TypeEnd:
		var end wire.End
		if err := frame.Message(&end); err != nil {
			return nil, err
		}
		if end.Error == "" && !f.hasStarted() {
			return nil, fmt.Errorf("%w: the end of what never began", wire.ErrFrame)
		}
		return &end, nil
	default: // a type that has no place here
	}
	return nil, fmt.Errorf("%w: type %d in an exec", wire.ErrFrame, frame.Type)
}

// expect sets until when the agent must have answered.
func (f *follower) expect(by time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deadline, f.still = by, false
	_ = f.s.SetDeadline(by) // never fails on a stream
}

// forgive gives the agent the time that the caller's own writer took: until
// the writer goes on, the agent cannot.
func (f *follower) forgive(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d > time.Millisecond && !f.deadline.IsZero() {
		f.deadline = f.deadline.Add(d)
		_ = f.s.SetDeadline(f.deadline) // never fails on a stream
	}
}

func (f *follower) late() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.still && !f.deadline.IsZero() && time.Now().After(f.deadline)
}

// cancel asks the agent to end the exec. Who only looks stops looking.
func (f *follower) cancel() {
	if f.cmd.Look {
		f.expect(time.Unix(1, 0))
		return
	}
	f.mu.Lock()
	f.canceled = true
	f.mu.Unlock()
	f.expect(time.Now().Add(max(cancelPatience, f.c.patience)))
	_ = wire.WriteFrame(f.s, wire.TypeCancel, nil) // a broken stream shows in the reader
}

func (f *follower) isCanceled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.canceled
}

func (f *follower) hasStarted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// begin notes that the process runs, and starts to feed it.
func (f *follower) begin(ctx context.Context) error {
	f.mu.Lock()
	again := f.started
	f.started, f.begun = true, time.Now()
	f.mu.Unlock()
	if again {
		return fmt.Errorf("%w: started again", wire.ErrFrame)
	}
	if f.cmd.Stdin == nil {
		return nil
	}
	s, err := f.c.open(ctx, wire.Request{Op: wire.OpStdin, Stdin: &wire.Stdin{ID: string(f.cmd.ID)}})
	if err != nil {
		return nil // where the connection broke, the exec's own stream did too
	}
	f.mu.Lock()
	f.stdin = s
	f.mu.Unlock()
	go f.feed(s)
	return nil
}

// feed copies standard input until it ends or nobody takes it. Where it cannot be read
// to its end the exec is ended, which would else take a part for the whole.
func (f *follower) feed(s *yamux.Stream) {
	buf := make([]byte, 32<<10)
	for {
		n, err := f.cmd.Stdin.Read(buf)
		if n > 0 && wire.WriteFrame(s, wire.TypeStdin, buf[:n]) != nil {
			return
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = wire.WriteFrame(s, wire.TypeStdinEOF, nil) // the exec may have ended
			return
		case err != nil:
			f.mu.Lock()
			f.source = err
			f.mu.Unlock()
			f.cancel()
			return
		}
	}
}

func (f *follower) closeStdin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stdin != nil {
		_ = f.stdin.SetWriteDeadline(time.Unix(1, 0)) // frees a feed that waits for the window
		_ = f.stdin.Close()
	}
}

// deliver checks an output frame and hands its bytes on.
func (f *follower) deliver(frame wire.Frame) error {
	i := 0
	w := f.cmd.Stdout
	if frame.Type == wire.TypeStderr {
		i, w = 1, f.cmd.Stderr
	}
	offset, data, err := frame.Output()
	if err != nil {
		return err
	}
	if !f.hasStarted() {
		return fmt.Errorf("%w: output of what never began", wire.ErrFrame)
	}
	if offset < f.got[i] {
		return fmt.Errorf("%w: output at offset %d again", wire.ErrFrame, offset)
	}
	if gap := offset - f.got[i]; gap > 0 {
		if !f.cmd.Drop {
			return fmt.Errorf("%w: %d bytes of output missing", wire.ErrFrame, gap)
		}
		f.lost[i] += gap
		if skipper, ok := w.(sandbox.Skipper); ok && f.sink == nil {
			skipper.Skip(gap)
		}
	}
	f.got[i] = offset + int64(len(data))
	if f.cmd.MaxOutput > 0 && f.got[i] > int64(f.cmd.MaxOutput) {
		return fmt.Errorf("%w: output beyond the cap", wire.ErrFrame)
	}
	if w != nil && f.sink == nil {
		start := time.Now()
		_, err := w.Write(data)
		f.forgive(time.Since(start))
		if err != nil {
			f.sink = err
			f.cancel()
		}
	}
	if !f.cmd.Look && f.got[0]-f.acked[0]+f.got[1]-f.acked[1] >= ackEvery {
		return f.ack()
	}
	return nil
}

func (f *follower) ack() error {
	f.acked = f.got
	_, err := f.s.Write(wire.AppendAck(nil, wire.Ack{Stdout: f.got[0], Stderr: f.got[1]}))
	return err
}

// fell is for a stream that ended without an end.
func (f *follower) fell(err error) (Outcome, error) {
	var late net.Error
	if !errors.As(err, &late) || !late.Timeout() {
		if !f.hasStarted() {
			return Outcome{}, broken("start the exec", f.c.orFault(err))
		}
		return f.infra(err), nil
	}
	out := f.outcome()
	out.Broken = true
	out.Code, out.Signal = 128+int(unix.SIGKILL), "SIGKILL"
	out.Reason = sandbox.ReasonTimeout
	if f.isCanceled() {
		out.Reason = sandbox.ReasonCanceled
	}
	out.Cause = "the agent did not answer in time: the sandbox is given up"
	return out, nil
}

func (f *follower) outcome() Outcome {
	out := Outcome{Stdout: f.got[0], Stderr: f.got[1], Lost: sandbox.Truncated{Stdout: f.lost[0], Stderr: f.lost[1]}}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.started {
		out.Usage.Wall, out.Usage.Methods.Wall = time.Since(f.begun), HostClock
	}
	return out
}

// HostClock is the method of a time that no agent told.
const HostClock = "host's clock"

// infra is for an exec that nobody can say the end of.
func (f *follower) infra(err error) Outcome {
	err = f.c.orFault(err)
	out := f.outcome()
	out.Code, out.Reason, out.Broken, out.Cut = 128+int(unix.SIGKILL), sandbox.ReasonInfra, true, !errors.Is(err, ErrForged)
	out.Cause = "the connection to the agent broke: " + err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		out.Cause = "the agent went away"
	}
	if errors.Is(err, wire.ErrFrame) {
		out.Cause = "the agent broke the protocol: " + err.Error()
	}
	return out
}
