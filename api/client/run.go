package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// Run implements [api.Runner].
func (c *Client) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	return connect[sandbox.Result](ctx, c, wire.Begin{Run: &run}, streams)
}

// Exec implements [api.Execs].
func (c *Client) Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	return connect[sandbox.Result](ctx, c, wire.Begin{Session: session, Run: &run}, streams)
}

// StartExec implements [api.Execs].
func (c *Client) StartExec(ctx context.Context, session string, run sandbox.Run, local sandbox.Local) (sandbox.ExecRecord, error) {
	return connect[sandbox.ExecRecord](ctx, c, wire.Begin{Session: session, Run: &run, Start: true}, sandbox.Streams{Local: local})
}

// cancelPatience bounds how long a run that its caller has given up has to end.
const cancelPatience = time.Minute

// connection is a run over a WebSocket, seen from the client.
type connection struct {
	c       *Client
	ws      *websocket.Conn
	ctx     context.Context // of the connection
	streams sandbox.Streams
	tasks   sync.WaitGroup

	mu      sync.Mutex
	sending map[uint32]*sender
	asking  map[uint32]context.CancelFunc

	// Of the reading goroutine alone.
	taking map[uint32]*artifact
	unread bool // nobody reads the output any more
}

// connect carries out what begin says over a connection of its own. Where ctx
// ends, the server ends it, and what came of it is returned nonetheless.
func connect[O any](ctx context.Context, c *Client, begin wire.Begin, streams sandbox.Streams) (out O, err error) {
	if err := errors.Join(noFolder(streams.Local), noTools(begin, streams.Local), ctx.Err()); err != nil {
		return out, err
	}
	begin.Stdin, begin.Stdout, begin.Stderr = streams.Stdin != nil, streams.Stdout != nil, streams.Stderr != nil
	begin.Asks, begin.Artifacts, begin.Starts = streams.Ask != nil, streams.Artifact != nil, streams.Started != nil
	for _, t := range streams.Tools {
		begin.Tools = append(begin.Tools, t.Tool)
	}
	ws, err := c.dial(ctx, wire.ConnectPath)
	if err != nil {
		return out, whole(err)
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(-1)
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	x := &connection{c: c, ws: ws, ctx: life, streams: streams, sending: map[uint32]*sender{}, asking: map[uint32]context.CancelFunc{}, taking: map[uint32]*artifact{}}
	defer x.abandon()
	defer x.tasks.Wait()
	defer cancel()
	if err := x.say(begin); err != nil {
		return out, c.unreachable(ctx, err)
	}
	given := context.AfterFunc(ctx, func() {
		_ = x.say(wire.Message{Type: wire.MsgCancel}) // a connection that broke ends the run too
		time.AfterFunc(cancelPatience, cancel)
	})
	defer given()
	m, err := x.read()
	if err != nil {
		return out, c.unreachable(ctx, err)
	}
	if m.Result != nil {
		if err := json.Unmarshal(m.Result, &out); err != nil {
			return out, err
		}
	}
	if m.Problem != nil {
		err = m.Problem.Err()
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			err = ctx.Err()
		}
	}
	return out, err
}

// dial opens a WebSocket at a path.
func (c *Client) dial(ctx context.Context, at string) (*websocket.Conn, error) {
	header := http.Header{}
	c.sign(header)
	telemetry.Inject(ctx, header)
	ws, res, err := websocket.Dial(ctx, c.base+at, &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: header}) //nolint:bodyclose // Dial has read what it returns
	if err == nil {
		return ws, nil
	}
	if res != nil && res.StatusCode >= http.StatusBadRequest && res.Body != nil {
		return nil, problemIn(res)
	}
	return nil, c.unreachable(ctx, err)
}

// say sends a message.
func (x *connection) say(m any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return x.ws.Write(x.ctx, websocket.MessageText, b)
}

// read takes in what the server says, until the result.
func (x *connection) read() (wire.Message, error) {
	for {
		kind, b, err := x.ws.Read(x.ctx)
		if err != nil {
			return wire.Message{}, err
		}
		if kind == websocket.MessageBinary {
			stream, piece, err := wire.ParsePiece(b)
			if err != nil {
				return wire.Message{}, err
			}
			if err := x.take(stream, piece); err != nil {
				return wire.Message{}, err
			}
			continue
		}
		var m wire.Message
		if err := json.Unmarshal(b, &m); err != nil {
			return m, err
		}
		if m.Type == wire.MsgResult {
			return m, nil
		}
		if err := x.heed(m); err != nil {
			return m, err
		}
	}
}

// heed does what a message asks for.
func (x *connection) heed(m wire.Message) error {
	switch m.Type {
	case wire.MsgWant:
		x.want(m)
	case wire.MsgDrop:
		x.drop(m.Stream)
	case wire.MsgAsk:
		if m.Approval != nil {
			x.ask(m)
		}
	case wire.MsgCall:
		x.call(m)
	case wire.MsgAsked:
		x.mu.Lock()
		defer x.mu.Unlock()
		if cancel := x.asking[m.Stream]; cancel != nil {
			cancel()
		}
	case wire.MsgArtifact:
		if m.Artifact != nil {
			return x.artifact(m)
		}
	case wire.MsgEnd:
		return x.taken(m.Stream)
	case wire.MsgStarted:
		if m.Start != nil && x.streams.Started != nil {
			x.streams.Started(*m.Start)
		}
	case wire.MsgProgress:
		if m.Progress != nil {
			x.c.cfg.Progress(*m.Progress)
		}
	}
	return nil
}
