package manager_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestReader lets readers of an exec's output go before its end, in every way.
// The exec goes on.
func TestReader(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	e, err := p.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"bash", "-c", "while :; do echo line; sleep 0.01; done"}}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	reader := p.manager(t)
	const broken = "no more room"
	for name, look := range map[string]func(context.Context, context.CancelFunc) error{
		"canceled": func(ctx context.Context, cancel context.CancelFunc) error {
			_, err := reader.AttachExec(ctx, "work", e.ID, sandbox.AttachOptions{Follow: true}, &signalWriter{first: cancel}, io.Discard)
			return err
		},
		"broken": func(ctx context.Context, _ context.CancelFunc) error {
			_, err := reader.AttachExec(ctx, "work", e.ID, sandbox.AttachOptions{Follow: true}, failingWriter{}, io.Discard)
			return err
		},
		"broken, without waiting": func(ctx context.Context, _ context.CancelFunc) error {
			_, err := reader.AttachExec(ctx, "work", e.ID, sandbox.AttachOptions{}, failingWriter{}, io.Discard)
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if err := look(ctx, cancel); err == nil || !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), broken) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if list, err := p.Processes(t.Context(), "work"); err != nil || len(list) != 1 || !list[0].Running {
			t.Errorf("%s: it does not run any more: %+v, %v", name, list, err)
		}
		if v, err := p.Session(t.Context(), "work"); err != nil || len(v.Execs) != 1 || !v.Execs[0].Ended.IsZero() {
			t.Errorf("%s: recorded are %+v, %v", name, v.Execs, err)
		}
	}
	if err := p.KillExec(t.Context(), "work", e.ID); err != nil {
		t.Error(err)
	}
}

// TestReaderBeside reads all that another's exec puts out, from beginning to
// end. Whoever runs it gets every byte, and tells its end.
func TestReaderBeside(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	const much = 4 << 20
	reader, looked := p.manager(t), make(chan error, 1)
	var once sync.Once
	w := &signalWriter{first: func() {
		once.Do(func() {
			v, err := reader.Session(t.Context(), "work")
			if err != nil || len(v.Execs) != 1 {
				looked <- errors.Join(err, errors.New("the exec is not listed"))
				return
			}
			// The holder takes nothing until the reader has a good part.
			read := &milestone{most: 256 << 10, passed: make(chan struct{})}
			go func() {
				_, err := reader.AttachExec(t.Context(), "work", v.Execs[0].ID, sandbox.AttachOptions{Follow: true}, read, io.Discard)
				looked <- err
			}()
			await(t, read.passed)
		})
	}}
	res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"sh", "-c", "head -c 4194304 /dev/zero; exit 3"}}, sandbox.Streams{Stdout: w})
	if err != nil || res.Code != 3 || res.Reason != sandbox.ReasonExited || res.Truncated.Stdout+int64(len(res.Stdout)) != much {
		t.Errorf("%v; code %d, %s (%s), %d of %d bytes", err, res.Code, res.Reason, res.Cause, res.Truncated.Stdout+int64(len(res.Stdout)), much)
	}
	if err := <-looked; err != nil {
		t.Errorf("the reader: %v", err)
	}
}

// milestone says when it was given more than so many bytes.
type milestone struct {
	n, most int
	passed  chan struct{}
}

func (c *milestone) Write(p []byte) (int, error) {
	before := c.n
	if c.n += len(p); c.n > c.most && before <= c.most {
		close(c.passed)
	}
	return len(p), nil
}
