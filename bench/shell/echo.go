//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/sandbox"
)

// echoed measures a key from its press to its echo, over a server on loopback.
func echoed(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, terminal = "key to echo", "terminal by a server on loopback"
	if !s.Wants(name) {
		return nil
	}
	e, err := f.own.StartExec(ctx, session, sandbox.Run{Command: []string{"cat"}, Terminal: &sandbox.TerminalSize{Rows: 24, Cols: 80}}, sandbox.Local{})
	if err != nil {
		return err
	}
	looking, leave := context.WithCancel(ctx)
	keys, pressed := io.Pipe()
	shown := make(chan struct{}, 64)
	left := make(chan error, 1)
	go func() {
		_, err := f.remote.AttachTerminal(looking, session, e.ID, sandbox.Streams{Stdin: keys, Stdout: echo(shown)})
		left <- err
	}()
	defer func() {
		leave()
		_ = pressed.Close() // never fails
		<-left
	}()
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 500, Warmup: 20,
		Subjects: []measure.Subject{{Name: terminal, Sample: measure.Millis(func(ctx context.Context) error {
			if _, err := pressed.Write([]byte("k")); err != nil {
				return err
			}
			select {
			case <-shown:
				return nil
			case err := <-left:
				left <- err
				return fmt.Errorf("the terminal was left: %w", err)
			case <-time.After(time.Minute):
				return fmt.Errorf("nothing was echoed for a minute")
			}
		})}},
		Rows: []measure.Row{{Name: "terminal/key/echo", Own: terminal, Bar: measure.Below("p99 <= 10 ms", 10)}},
	})
}

// echo tells of each key that is shown.
type echo chan<- struct{}

// Write implements [io.Writer].
func (e echo) Write(p []byte) (int, error) {
	for _, c := range p {
		if c == 'k' {
			e <- struct{}{}
		}
	}
	return len(p), nil
}
