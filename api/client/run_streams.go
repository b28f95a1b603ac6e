package client

import (
	"context"
	"errors"
	"io"

	"github.com/coder/websocket"

	"github.com/caisson-dev/caisson/api/wire"
)

// sender sends one stream as the server asks for it.
type sender struct {
	credit chan int // what is granted; has room for one
	done   chan struct{}
}

// want grants a stream more pieces, and begins it where it has not begun.
func (x *connection) want(m wire.Message) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.sending[m.Stream]
	if s == nil {
		s = &sender{credit: make(chan int, 1), done: make(chan struct{})}
		x.sending[m.Stream] = s
		if m.Stream == wire.StreamStdin {
			// Nobody waits for it: a terminal may give nothing more, ever.
			go x.send(m.Stream, s, x.streams.Stdin)
		} else {
			x.tasks.Go(func() { x.sendContent(m.Stream, s, m.Ref) })
		}
	}
	select {
	case s.credit <- m.Credit:
	default: // the server asks anew only for what was taken
	}
}

func (x *connection) drop(stream uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.sending[stream]; s != nil {
		close(s.done)
		delete(x.sending, stream)
	}
}

// sendContent sends a content by its Ref.
func (x *connection) sendContent(stream uint32, s *sender, ref string) {
	r, err := x.streams.Open(ref)
	if err != nil {
		x.end(stream, err)
		return
	}
	defer r.Close()
	x.send(stream, s, r)
}

func (x *connection) send(stream uint32, s *sender, r io.Reader) {
	if r == nil {
		x.end(stream, nil)
		return
	}
	buf := make([]byte, wire.MaxPiece)
	for left := 0; ; left-- {
		for left == 0 {
			select {
			case left = <-s.credit:
			case <-s.done:
				return
			case <-x.ctx.Done():
				return
			}
		}
		n, err := r.Read(buf)
		if n > 0 && x.ws.Write(x.ctx, websocket.MessageBinary, wire.Piece(stream, buf[:n])) != nil {
			return // the reading side tells
		}
		if n == 0 {
			left++
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			x.end(stream, err)
			return
		}
	}
}

// end tells the server that a stream is over.
func (x *connection) end(stream uint32, err error) {
	m := wire.Message{Type: wire.MsgEnd, Stream: stream, Problem: problemOf(err)}
	_ = x.say(m) // the reading side tells of a connection that broke
}

func problemOf(err error) *wire.Problem {
	if err == nil {
		return nil
	}
	p := wire.ProblemOf(err, "", nil)
	return &p
}

// take hands a piece on to who reads its stream here. A reader that fails ends
// the run, as it does in process.
func (x *connection) take(stream uint32, piece []byte) error {
	var w io.Writer
	switch stream {
	case wire.StreamStdout:
		w = x.streams.Stdout
	case wire.StreamStderr:
		w = x.streams.Stderr
	default:
		return x.takeArtifact(stream, piece)
	}
	if w == nil || x.unread {
		return nil
	}
	if _, err := w.Write(piece); err != nil {
		x.unread = true
		return x.say(wire.Message{Type: wire.MsgCancel})
	}
	return nil
}

// ask asks a person beside all that goes on.
func (x *connection) ask(m wire.Message) {
	ctx, cancel := context.WithCancel(x.ctx)
	x.mu.Lock()
	x.asking[m.Stream] = cancel
	x.mu.Unlock()
	x.tasks.Go(func() {
		defer cancel()
		a, err := x.streams.Ask(ctx, *m.Approval)
		x.mu.Lock()
		delete(x.asking, m.Stream)
		x.mu.Unlock()
		reply := wire.Message{Type: wire.MsgAnswer, Stream: m.Stream, Problem: problemOf(err)}
		if err == nil {
			reply.Answer = &a
		}
		_ = x.say(reply) // as in end
	})
}

// artifact asks who takes artifacts whether this one is taken.
func (x *connection) artifact(m wire.Message) error {
	if x.streams.Artifact == nil {
		return x.say(wire.Message{Type: wire.MsgTake, Stream: m.Stream, None: true})
	}
	w, err := x.streams.Artifact(*m.Artifact)
	if err == nil && w != nil {
		x.taking[m.Stream] = &artifact{WriteCloser: w}
	}
	return x.say(wire.Message{Type: wire.MsgTake, Stream: m.Stream, None: w == nil, Problem: problemOf(err)})
}

// artifact is one that is taken, with the error that its writer gave.
type artifact struct {
	io.WriteCloser
	failed error
}

func (x *connection) takeArtifact(stream uint32, piece []byte) error {
	if a := x.taking[stream]; a != nil && a.failed == nil {
		_, a.failed = a.Write(piece)
	}
	return nil
}

// taken closes an artifact that has come whole.
func (x *connection) taken(stream uint32) error {
	a := x.taking[stream]
	if a == nil {
		return nil
	}
	delete(x.taking, stream)
	return x.say(wire.Message{Type: wire.MsgTake, Stream: stream, Problem: problemOf(errors.Join(a.failed, a.Close()))})
}

// abandon closes artifacts that never came whole.
func (x *connection) abandon() {
	for _, a := range x.taking {
		_ = a.Close() // the run has failed
	}
}
