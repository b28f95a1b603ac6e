package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// conn is a program's connection. One goroutine reads it; answers leave piece by
// piece, so that a large one holds up no other.
type conn struct {
	w     *Way
	out   io.Writer
	calls sync.WaitGroup

	mu   sync.Mutex
	open map[uint32]*call

	write sync.Mutex
	buf   []byte
}

// call is one that is open.
type call struct {
	request []byte // what has come of it
	cancel  context.CancelFunc
	running bool  // all of it has come
	failed  error // why what still comes of it is not kept
}

// Serve answers what comes on a connection of a program's, until it ends, it says what
// makes no sense, or ctx is done. Then what it has asked is given up, and the
// connection is closed.
func (w *Way) Serve(ctx context.Context, program io.ReadWriteCloser) {
	ctx, cancel := context.WithCancel(ctx)
	c := &conn{w: w, out: program, open: map[uint32]*call{}}
	closed := context.AfterFunc(ctx, func() { _ = program.Close() })
	r := wire.NewCallReader(program)
	for {
		f, err := r.Next()
		if err == nil {
			err = c.take(ctx, f)
		}
		if err != nil {
			break
		}
	}
	cancel()
	c.calls.Wait()
	if closed() {
		_ = program.Close()
	}
	for _, left := range c.open {
		w.share.give(len(left.request))
	}
}

var errNonsense = errors.New("a program speaks otherwise than calls do")

// take has one piece of a call. Its error ends the connection.
func (c *conn) take(ctx context.Context, f wire.CallFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.open[f.Call]
	switch {
	case f.Type == wire.CallCancel:
		c.giveUpLocked(f.Call, one)
		return nil
	case one != nil && one.running:
		return errNonsense
	case one == nil && len(c.open) >= wire.MaxCallOpen:
		return errNonsense // who is honest waits
	case one == nil:
		one = &call{}
		c.open[f.Call] = one
	}
	c.keep(one, f.Payload)
	if f.Type != wire.CallLast {
		return nil
	}
	one.running = true
	ctx, one.cancel = context.WithCancel(ctx)
	c.calls.Go(func() { c.run(ctx, f.Call, one) })
	return nil
}

// giveUpLocked ends a call that the program wants no more. One that has just been
// answered is none.
func (c *conn) giveUpLocked(number uint32, one *call) {
	switch {
	case one == nil:
	case one.running:
		one.cancel() // whoever runs it takes it out
	default:
		delete(c.open, number)
		c.w.share.give(len(one.request))
	}
}

// keep adds a piece to a request, where there is room for it.
func (c *conn) keep(one *call, piece []byte) {
	switch {
	case one.failed != nil:
		return
	case len(one.request)+len(piece) > int(sandbox.MaxToolData):
		one.failed = sandbox.Errorf(sandbox.Exhausted, "arguments of more than %s", sandbox.MaxToolData.Human()).WithHint("put large data into a file of the workspace, or call several times")
	case !c.w.share.take(len(piece)):
		one.failed = sandbox.Errorf(sandbox.Exhausted, "the program's calls hold too much at once").WithHint("wait for some of them")
	default:
		one.request = append(one.request, piece...)
		return
	}
	c.w.share.give(len(one.request))
	one.request = nil
}

// run answers a call that has come whole. Its number is free before the answer's end
// is sent.
func (c *conn) run(ctx context.Context, number uint32, one *call) {
	defer one.cancel()
	answer, held := c.answer(ctx, one)
	defer c.w.share.give(held)
	given := ctx.Err() != nil
	_ = wire.CallFrames(number, answer, func(f wire.CallFrame) error {
		if f.Type == wire.CallLast {
			c.mu.Lock()
			delete(c.open, number)
			c.mu.Unlock()
		}
		if given { // nobody waits for it
			return nil
		}
		return c.send(f)
	})
}

// answer is what a program is told, and how much of its share that holds.
func (c *conn) answer(ctx context.Context, one *call) (text []byte, held int) {
	result, err := c.call(ctx, one)
	if err == nil {
		if c.w.share.take(len(result)) {
			return slicesOf(`{"result":`, result, `}`), len(result)
		}
		err = sandbox.Errorf(sandbox.Exhausted, "the results of the program's calls hold too much at once").WithHint("read some of them first")
	}
	said := wire.CallError{Kind: sandbox.KindOf(err).String(), Message: shortened(err.Error()), Hint: shortened(sandbox.HintOf(err))}
	text, err = json.Marshal(wire.CallAnswer{Error: &said})
	if err != nil {
		text = []byte(`{"error":{"kind":"internal","message":"an error that cannot be told"}}`)
	}
	return text, 0
}

func slicesOf(before string, text []byte, after string) []byte {
	b := make([]byte, 0, len(before)+len(text)+len(after))
	return append(append(append(b, before...), text...), after...)
}

// call reads a request and takes it its way.
func (c *conn) call(ctx context.Context, one *call) (json.RawMessage, error) {
	request := one.request
	one.request = nil
	defer c.w.share.give(len(request))
	if one.failed != nil {
		return nil, one.failed
	}
	var r struct {
		Tool      string                `json:"tool"`
		Arguments json.RawMessage       `json:"arguments"`
		Return    json.RawMessage       `json:"return"`
		Raise     *sandbox.ProgramError `json:"raise"`
	}
	if err := json.Unmarshal(request, &r); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "a call that is not JSON: %s", shortened(err.Error()))
	}
	if r.Return != nil || r.Raise != nil {
		return json.RawMessage("null"), c.w.returns(r.Return, r.Raise)
	}
	return c.w.Call(ctx, r.Tool, r.Arguments)
}

// send writes one piece. A program that does not read holds up its own calls alone.
func (c *conn) send(f wire.CallFrame) error {
	c.write.Lock()
	defer c.write.Unlock()
	c.buf = wire.AppendCall(c.buf[:0], f)
	_, err := c.out.Write(c.buf)
	return err
}
