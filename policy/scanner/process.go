package scanner

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// process is one running caisson-scan. One goroutine uses it at a time.
type process struct {
	c        Config
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	ready    Ready
	owner    string
	requests int
	bytes    int
	once     sync.Once
}

// start runs a scanner and waits until it is locked down. Where the kernel
// grants no namespaces, it runs without.
func start(ctx context.Context, c Config, tables []byte) (*process, error) {
	var last error
	for _, attr := range attempts() {
		p, err := launch(ctx, c, attr)
		if err != nil {
			last = err
			continue
		}
		if err = p.begin(ctx, tables, separate(attr)); err == nil {
			return p, nil
		}
		p.kill()
		if ctx.Err() != nil || errors.Is(err, sandbox.TimedOut) {
			return nil, err
		}
		last = err
	}
	return nil, sandbox.Errorf(sandbox.Unavailable, "start scanner %s: %w", c.Path, last).WithHint("`caisson doctor` shows what this machine allows")
}

// launch starts a scanner, which outlives the call that needed it first.
func launch(ctx context.Context, c Config, attr *syscall.SysProcAttr) (*process, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), c.Path)
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	cmd.Dir = "/"
	cmd.SysProcAttr = attr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{c: c, cmd: cmd, in: in, out: bufio.NewReaderSize(out, 64<<10)}, nil
}

// begin greets a process that has [Config.Start] of a processor to answer, and
// [facts.Patience] times as long by the clock.
func (p *process) begin(ctx context.Context, tables []byte, namespaces bool) error {
	bounded, cancel := context.WithTimeout(ctx, facts.Patience*p.c.Start)
	defer cancel()
	late := p.watch(p.c.Start)
	done := make(chan error, 1)
	go func() { done <- p.greet(tables, namespaces) }()
	var err error
	select {
	case err = <-done:
	case <-bounded.Done():
		err = bounded.Err()
	}
	switch killed := late(); {
	case ctx.Err() != nil && err != nil:
		return sandbox.Errorf(sandbox.TimedOut, "start scanner: %w", context.Cause(ctx))
	case killed || bounded.Err() != nil:
		return sandbox.Errorf(sandbox.TimedOut, "the scanner did not start within %s", p.c.Start)
	}
	return err
}

func (p *process) greet(tables []byte, namespaces bool) error {
	if err := WriteFrame(p.in, Hello{Limits: p.c.Limits, Namespaces: namespaces, Require: p.c.Require}); err != nil {
		return err
	}
	if err := writeBytes(p.in, tables); err != nil {
		return err
	}
	if err := ReadFrame(p.out, 64<<10, &p.ready); err != nil {
		return err
	}
	if p.ready.Error != "" {
		return sandbox.Errorf(sandbox.Unsupported, "%s", p.ready.Error)
	}
	if p.ready.Lockdown < p.c.Require {
		return sandbox.Errorf(sandbox.Unsupported, "the scanner is %s, %s is required", p.ready.Lockdown, p.c.Require)
	}
	return nil
}

// scan asks for one text's facts. After an error the process must be killed.
func (p *process) scan(ctx context.Context, r facts.Request) (*facts.Document, error) {
	p.requests++
	p.bytes += len(r.Code)
	ask := Ask{ID: uint64(p.requests), Lang: r.Lang, Code: r.Code, Millis: 10_000, Calls: r.Calls, Start: r.Start}
	// The scanner gives up a little earlier, so that its answer arrives.
	if d, ok := ctx.Deadline(); ok {
		ask.Millis = max(1, time.Until(d).Milliseconds()*8/10)
	}
	late := func() bool { return false }
	if r.Within > 0 {
		ask.Millis = min(ask.Millis, max(1, r.Within.Milliseconds()*8/10))
		late = p.watch(r.Within)
	}
	// What the scanner sends may take longer to read than there is time; who waits
	// is told in time, and killing it ends the reading.
	done := make(chan exchanged, 1)
	go func() {
		doc, err := p.exchange(ask)
		done <- exchanged{doc, err}
	}()
	var got exchanged
	over := false
	select {
	case got = <-done:
	case <-ctx.Done():
		over = true
	}
	if late() || over {
		p.kill()
		return nil, sandbox.Errorf(sandbox.TimedOut, "the scan took too long: %w", cmp.Or(context.Cause(ctx), context.DeadlineExceeded))
	}
	return got.doc, got.err
}

// exchanged is what came of an [process.exchange].
type exchanged struct {
	doc *facts.Document
	err error
}

// exchange asks, and reads and checks the answer.
func (p *process) exchange(ask Ask) (*facts.Document, error) {
	err := WriteFrame(p.in, ask)
	var body []byte
	if err == nil {
		body, err = readBytes(p.out, MaxAnswer)
	}
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "the scanner ended: %w", err)
	}
	a, err := decode(body, p.c.Limits)
	if err == nil {
		err = validate(a, ask, p.c.Limits)
	}
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "the scanner's answer is not valid: %w", err)
	}
	return a.Document, nil
}

// watch ends the process once it has had its time. stop ends that, and reports
// whether the process was ended.
func (p *process) watch(within time.Duration) (stop func() bool) {
	done, ended := make(chan struct{}), make(chan bool, 1)
	pid := p.cmd.Process.Pid
	begun, before := time.Now(), processorOf(pid)
	go func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		var had time.Duration
		last := usage{processor: before}
		for {
			select {
			case <-done:
				ended <- false
				return
			case <-tick.C:
			}
			now := usage{time.Since(begun), processorOf(pid), busy(pid)}
			if had += spent(last, now); had >= within {
				p.kill()
				ended <- true
				return
			}
			last = now
		}
	}()
	return func() bool {
		close(done)
		return <-ended
	}
}

// pause is between two looks at a process that is watched.
const pause = 20 * time.Millisecond

// usage is what a process had done at a look.
type usage struct {
	clock     time.Duration // since the first
	processor time.Duration
	busy      bool
}

// spent is what of the time between two looks counts as the process's own. Not
// what it waited for a processor; but all in which it slept, up to some looks:
// where those come late, who would have answered it is kept waiting too.
func spent(last, now usage) time.Duration {
	passed, worked := now.clock-last.clock, max(now.processor-last.processor, 0)
	if now.busy {
		return min(passed, worked)
	}
	return min(passed, 2*pause)
}

// kill ends the process and waits for it. It may be called twice.
func (p *process) kill() {
	p.once.Do(func() {
		// Errors here say that it has ended already, which is what is wanted.
		_ = p.in.Close()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
}
