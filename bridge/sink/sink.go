// Package sink hands changes of workspaces on as JSON lines: to a file or to a
// program's standard input. Each line is one
// [sandbox.ChangeNews]: what keeps an agent's context graph reads them as they
// come. The records that caisson keeps are authoritative: a line may be
// provisional, and "lost" counts changes that nobody had room for.
package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Sink takes lines. It is for one goroutine. Its owner closes it.
type Sink interface {
	// Send hands on whole lines, and returns once they are taken.
	Send(ctx context.Context, lines []byte) error
	Close() error
}

// Pump sends news to a sink until they end. It gathers what comes at once into
// one sending, and goes on after a failure, of which it tells failed: those
// lines are lost.
func Pump(ctx context.Context, news iter.Seq[sandbox.ChangeNews], s Sink, failed func(lost int, err error)) {
	next, stop := iter.Pull(batches(news))
	defer stop()
	for {
		batch, ok := next()
		if !ok {
			return
		}
		var b bytes.Buffer
		for _, n := range batch {
			n.More = false // says when to send, and is nothing to its readers
			line, err := json.Marshal(n)
			if err != nil {
				failed(1, err)
				continue
			}
			b.Write(append(line, '\n'))
		}
		if err := s.Send(ctx, b.Bytes()); err != nil {
			failed(len(batch), err)
		}
	}
}

// batchMost bounds the lines of one sending.
const batchMost = 512

// batches gathers news until one says that nothing waits behind it.
func batches(news iter.Seq[sandbox.ChangeNews]) iter.Seq[[]sandbox.ChangeNews] {
	return func(yield func([]sandbox.ChangeNews) bool) {
		var batch []sandbox.ChangeNews
		for n := range news {
			batch = append(batch, n)
			if n.More && len(batch) < batchMost {
				continue
			}
			if !yield(batch) {
				return
			}
			batch = nil
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// stream is a sink that is written to.
type stream struct {
	*os.File
	cut bool // the last line that was written has no end
}

// Send writes lines in one go, so that those of several processes do not mix. It
// waits for a reader until ctx is done. A line that was cut off is ended by the
// next, so that its reader can go on.
func (s *stream) Send(ctx context.Context, lines []byte) error {
	defer context.AfterFunc(ctx, func() { _ = s.SetWriteDeadline(time.Unix(1, 0)) })() // a plain file has none, and keeps nobody waiting
	if s.cut {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := s.Write(lines)
	if n > 0 {
		s.cut = lines[n-1] != '\n'
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = sandbox.Errorf(sandbox.TimedOut, "nobody reads changes from %s", s.Name())
	}
	return err
}

// File appends to a file, which it makes for its owner alone. It may be a FIFO
// that somebody reads. Errors: Invalid.
func File(name string) (Sink, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "a file for changes: %w", err).WithHint("set CAISSON_CHANGES_FILE to a file that can be written")
	}
	return &stream{File: f}, nil
}

// command is a program that reads lines.
type command struct {
	stream
	cmd  *exec.Cmd
	deaf bool // it did not read what it was sent
}

// Command starts a shell's command line, whose standard input gets the lines. It
// ends when that ends; Close waits for it, not longer than five seconds, and not
// at all for one that did not read. Errors: Invalid.
func Command(line string) (Sink, error) {
	cmd := exec.Command("/bin/sh", "-c", line) //nolint:noctx // it ends with its input, and Close sees to it
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that it can be ended with all that it started
	in, out, err := os.Pipe()
	if err == nil {
		cmd.Stdin = in
		err = errors.Join(cmd.Start(), in.Close())
		if err != nil {
			_ = out.Close() // nothing was written
		}
	}
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "a program for changes: %w", err).WithHint("set CAISSON_CHANGES_COMMAND to a command line")
	}
	return &command{stream: stream{File: out}, cmd: cmd}, nil
}

func (c *command) Send(ctx context.Context, lines []byte) error {
	err := c.stream.Send(ctx, lines)
	if c.deaf = errors.Is(err, sandbox.TimedOut); c.deaf {
		err = sandbox.Errorf(sandbox.TimedOut, "the program for changes does not read them").WithHint("have the command of CAISSON_CHANGES_COMMAND read its standard input")
	}
	return err
}

func (c *command) Close() error {
	_ = c.File.Close() // it may have gone
	wait := patience
	if c.deaf {
		wait = 0
	}
	var killed atomic.Bool
	slow := time.AfterFunc(wait, func() {
		killed.Store(true)
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // it may just have ended
	})
	defer slow.Stop()
	err := c.cmd.Wait()
	if err != nil && killed.Load() {
		return sandbox.Errorf(sandbox.TimedOut, "the program for changes did not end with its input, and was killed").
			WithHint("have the command of CAISSON_CHANGES_COMMAND end when its standard input does")
	}
	return err
}

// patience bounds the end of a program.
const patience = 5 * time.Second
