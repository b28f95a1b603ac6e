package server

import (
	"context"
	"io"
	"os"
	"sync"

	"github.com/coder/websocket"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// input is a stream that the client sends as it is asked for.
type input struct {
	c      *connection
	stream uint32
	ref    string

	pieces chan []byte // has room for all that was asked for; closed at the end
	failed error       // set before that
	over   sync.Once
	asked  int // pieces that may still come; of the reader alone, but for what arrives
	rest   []byte
}

// open opens a stream of the client's; nothing is asked for before it is read.
func (c *connection) open(stream uint32, ref string) *input {
	in := &input{c: c, stream: stream, ref: ref, pieces: make(chan []byte, wire.Credit)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inputs[stream] = in
	return in
}

// content opens a content by its Ref.
func (c *connection) content(ref string) (io.ReadCloser, error) {
	return c.open(c.number(), ref), nil
}

func (c *connection) number() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return c.last
}

// Read implements [io.Reader].
func (in *input) Read(p []byte) (int, error) {
	if len(in.rest) == 0 {
		if in.asked == 0 {
			if err := in.c.say(wire.Message{Type: wire.MsgWant, Stream: in.stream, Ref: in.ref, Credit: wire.Credit}); err != nil {
				return 0, err
			}
			in.asked = wire.Credit
		}
		select {
		case piece, ok := <-in.pieces:
			if !ok {
				if in.failed != nil {
					return 0, in.failed
				}
				return 0, io.EOF
			}
			in.asked--
			in.rest = piece
		case <-in.c.ctx.Done():
			return 0, in.c.ctx.Err()
		}
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// Close tells the client that no more is wanted.
func (in *input) Close() error {
	in.c.mu.Lock()
	delete(in.c.inputs, in.stream)
	in.c.mu.Unlock()
	return in.c.say(wire.Message{Type: wire.MsgDrop, Stream: in.stream})
}

// take hands a piece to who reads its stream. It is false where the client sent
// more than it was asked for.
func (c *connection) take(stream uint32, piece []byte) bool {
	c.mu.Lock()
	in := c.inputs[stream]
	c.mu.Unlock()
	if in == nil {
		return stream <= c.highest() // it was dropped meanwhile
	}
	if len(piece) > wire.MaxPiece {
		return false
	}
	select {
	case in.pieces <- piece:
		return true
	default:
		return false
	}
}

func (c *connection) highest() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// ended takes in the end of a stream of the client's. No piece may follow it.
func (c *connection) ended(m wire.Message) {
	c.mu.Lock()
	in := c.inputs[m.Stream]
	delete(c.inputs, m.Stream)
	c.mu.Unlock()
	if in == nil {
		return
	}
	in.over.Do(func() {
		if m.Problem != nil {
			in.failed = m.Problem.Err()
		}
		close(in.pieces)
	})
}

// piecewise is a stream that the client reads.
type piecewise struct {
	c      *connection
	stream uint32
}

// Write implements [io.Writer]. It waits for a client that is slow.
func (w *piecewise) Write(p []byte) (int, error) {
	if err := w.c.ws.Write(w.c.ctx, websocket.MessageBinary, wire.Piece(w.stream, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ask has the client ask a person.
func (c *connection) ask(ctx context.Context, a sandbox.Approval) (sandbox.ApprovalAnswer, error) {
	m, err := c.request(ctx, wire.Message{Type: wire.MsgAsk, Stream: c.number(), Approval: &a})
	switch {
	case err != nil:
		return sandbox.ApprovalAnswer{}, err
	case m.Answer == nil:
		return sandbox.ApprovalAnswer{}, sandbox.Errorf(sandbox.Invalid, "an answer without an answer")
	}
	return *m.Answer, nil
}

// artifact has the client take an artifact. It is a [sandbox.ArtifactTaker].
func (c *connection) artifact(a sandbox.Artifact) (io.WriteCloser, error) {
	stream := c.number()
	m, err := c.request(c.ctx, wire.Message{Type: wire.MsgArtifact, Stream: stream, Artifact: &a})
	if err != nil || m.None {
		return nil, err
	}
	return &artifactPieces{piecewise: piecewise{c, stream}}, nil
}

// answer has a client that can do so open an answer. It is a [sandbox.AnswerTaker].
func (c *connection) answer(f *os.File, size int64) (bool, error) {
	m, err := c.request(c.ctx, wire.Message{
		Type: wire.MsgArtifact, Stream: c.number(), Artifact: &sandbox.Artifact{Path: sandbox.AnswerPath, Size: size}, Descriptor: int(f.Fd()),
	})
	return err == nil && !m.None, err
}

// artifactPieces is the content of an artifact.
type artifactPieces struct {
	piecewise
	closed bool
}

// Close waits until the client has taken all of it.
func (w *artifactPieces) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	_, err := w.c.request(w.c.ctx, wire.Message{Type: wire.MsgEnd, Stream: w.stream})
	return err
}

// request sends a message and waits for the reply, which names the same stream.
func (c *connection) request(ctx context.Context, m wire.Message) (wire.Message, error) {
	replies := make(chan wire.Message, 1)
	c.mu.Lock()
	c.replies[m.Stream] = replies
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.replies, m.Stream)
	}()
	if err := c.say(m); err != nil {
		return m, err
	}
	select {
	case r := <-replies:
		if r.Problem != nil {
			return r, r.Problem.Err()
		}
		return r, nil
	case <-ctx.Done():
		_ = c.say(wire.Message{Type: wire.MsgAsked, Stream: m.Stream}) // a client that is gone needs no word
		return m, ctx.Err()
	case <-c.ctx.Done():
		return m, c.ctx.Err()
	}
}

// reply hands a reply to who waits for it.
func (c *connection) reply(m wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if replies := c.replies[m.Stream]; replies != nil {
		delete(c.replies, m.Stream) // one reply each
		replies <- m
	}
}
