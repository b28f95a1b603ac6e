package client

import (
	"context"
	"io"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Type types what r gives into an exec's terminal, until r ends or the returned
// function is called, which does so at once: a Read that blocks keeps its goroutine.
// Nobody else types meanwhile. Errors: NotFound, and Conflict where somebody does or
// the exec has no terminal.
func (c *Client) Type(ctx context.Context, id sandbox.ID, r io.Reader) (stop func(), err error) {
	s, err := c.open(ctx, wire.Request{Op: wire.OpStdin, Stdin: &wire.Stdin{ID: string(id)}})
	if err != nil {
		return nil, err
	}
	stop = func() {
		_ = s.SetWriteDeadline(time.Unix(1, 0)) // frees one that waits for the window
		_ = s.Close()
	}
	cancel := context.AfterFunc(ctx, func() { _ = s.SetReadDeadline(time.Unix(1, 0)) })
	f, err := wire.NewReader(s).Next()
	cancel()
	switch {
	case err != nil:
		err = orContext(ctx, broken("type into the terminal", c.orFault(err)))
	case f.Type == wire.TypeFailure:
		err = failure(f)
	case f.Type != wire.TypeReply:
		err = broken("type into the terminal", wire.ErrFrame)
	}
	if err != nil {
		stop()
		return nil, err
	}
	go typeIn(s, r, stop)
	return stop, nil
}

// typeIn copies what is typed until it ends or nobody takes it.
func typeIn(s io.Writer, r io.Reader, stop func()) {
	defer stop()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 && wire.WriteFrame(s, wire.TypeStdin, buf[:n]) != nil || err != nil {
			return
		}
	}
}
