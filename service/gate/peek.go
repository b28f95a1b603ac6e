package gate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// peek reads ahead for a while. whole says that known is all that there is; r
// gives everything again, what was read ahead and what comes.
func peek(ctx context.Context, from io.Reader, most int, patience time.Duration) (known []byte, whole bool, r io.Reader) {
	a := &ahead{from: from, most: most, more: make(chan struct{}, 1), done: make(chan struct{})}
	go a.fill()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-a.done:
	case <-wait.C:
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(a.err, io.EOF) {
		return bytes.Clone(a.buf), true, a
	}
	return nil, false, a
}

// ahead is a reader that was read ahead of its user, up to most bytes; from
// there on it is read as its user reads it.
type ahead struct {
	from io.Reader
	most int
	more chan struct{} // has a token after something was added
	done chan struct{} // closed once nothing more is read ahead

	mu  sync.Mutex
	buf []byte // read and not given yet
	all int
	err error
}

func (a *ahead) fill() {
	defer close(a.done)
	chunk := make([]byte, 32<<10)
	for {
		n, err := a.from.Read(chunk)
		a.mu.Lock()
		a.buf, a.all, a.err = append(a.buf, chunk[:n]...), a.all+n, err
		over := a.all >= a.most
		a.mu.Unlock()
		select {
		case a.more <- struct{}{}:
		default:
		}
		if err != nil || over {
			return
		}
	}
}

// Read implements [io.Reader].
func (a *ahead) Read(p []byte) (int, error) {
	for {
		a.mu.Lock()
		if len(a.buf) > 0 {
			n := copy(p, a.buf)
			a.buf = a.buf[n:]
			a.mu.Unlock()
			return n, nil
		}
		err := a.err
		a.mu.Unlock()
		if err != nil {
			return 0, err
		}
		select {
		case <-a.more:
		case <-a.done:
			a.mu.Lock()
			empty, err := len(a.buf) == 0, a.err
			a.mu.Unlock()
			if empty && err == nil {
				return a.from.Read(p)
			}
		}
	}
}
