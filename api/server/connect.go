package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// beginPatience bounds how long a client has for its first message.
const beginPatience = 30 * time.Second

// connection is a run that is carried out over a WebSocket: see [wire.Begin].
type connection struct {
	ws  *websocket.Conn
	ctx context.Context // of the connection: done once the client is gone

	mu      sync.Mutex
	inputs  map[uint32]*input
	replies map[uint32]chan wire.Message
	last    uint32 // number of a stream that was given
}

func connect(s *Server) {
	handleRaw(s, call{"Connect", get, wire.ConnectPath, "A run over a WebSocket, with input, output, questions and files", 0}, map[string]*huma.Schema{typeJSON: schemaOf[wire.Message](s)}, func(_ *nothing, w http.ResponseWriter, r *http.Request) error {
		return s.converse(w, r, nil)
	})
	handleRaw(s, call{"AttachTerminal", get, below("/execs/{exec}/terminal"), "Its terminal over a WebSocket: what it shows, what is typed, its size", 0}, map[string]*huma.Schema{typeJSON: schemaOf[wire.Message](s)}, func(in *struct {
		OfExec
		Watch bool `query:"watch" doc:"type nothing"`
	}, w http.ResponseWriter, r *http.Request) error {
		v, err := s.svc.Session(r.Context(), in.Session)
		if err != nil {
			return problemOf(r.Context(), err, nil)
		}
		if !slices.ContainsFunc(v.Execs, func(e sandbox.ExecRecord) bool { return e.ID == in.Exec }) {
			err := sandbox.Errorf(sandbox.NotFound, "no exec %s in session %s", in.Exec.Short(), in.Session).WithHint("see what runs with GET /v1/execs")
			return problemOf(r.Context(), err, nil)
		}
		return s.converse(w, r, &wire.Begin{Session: in.Session, Terminal: in.Exec, Stdin: !in.Watch, Stdout: true})
	})
}

// converse carries out over a WebSocket what was given, or else what its first message
// wants.
func (s *Server) converse(w http.ResponseWriter, r *http.Request, given *wire.Begin) error {
	release, err := s.takeStream()
	if err != nil {
		return err
	}
	defer release()
	ws, err := websocket.Accept(w, r, nil) // it answers itself what it refuses
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	defer func() { _ = ws.CloseNow() }() // a second time, as a rule
	ws.SetReadLimit(int64(s.cfg.MaxBody))
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &connection{ws: ws, ctx: ctx, inputs: map[uint32]*input{}, replies: map[uint32]chan wire.Message{}, last: wire.FirstStream - 1}
	begin := wire.Begin{}
	if given != nil {
		begin = *given
	} else if begin, err = c.begin(); err != nil {
		c.conclude(nil, err)
		return nil
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	local := sandbox.Local{Contents: c.content}
	if begin.Asks {
		local.Ask = c.ask
	}
	for _, t := range begin.Tools {
		local.Tools = append(local.Tools, sandbox.Callable{Tool: t, Call: c.answers(t.Name)})
	}
	streams := c.streams(begin, local)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer cancel()
		c.read(func() { stop(errCanceled) }, func(size wire.Size) {
			if begin.Terminal != "" {
				_ = s.svc.ResizeExec(ctx, begin.Session, begin.Terminal, size.Rows, size.Cols) // it may have ended, as the result says
			}
		})
	})
	var result any
	if begin.Hold != nil {
		err = s.hold(running, *begin.Hold, c.say)
	} else {
		result, err = s.begun(running, begin, streams)
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(running), errCanceled) {
		s.lost(context.WithoutCancel(r.Context()), begin.Session)
	}
	c.conclude(result, err)
	cancel()
	reading.Wait()
	return nil
}

// errCanceled is that a client wants no more of what it began.
var errCanceled = errors.New("canceled by the client")

// hold makes a session that goes once ctx ends, as it does with the client's connection,
// also while it is made. Where the server ends first, it goes with the server.
func (s *Server) hold(ctx context.Context, o sandbox.SessionOptions, say func(wire.Message) error) error {
	o.Temporary = true
	whole := context.WithoutCancel(ctx)
	made, err := s.svc.CreateSession(whole, o, sandbox.Local{})
	if err != nil {
		return err
	}
	if say(wire.Message{Type: wire.MsgMade, Session: &made}) == nil {
		select {
		case <-ctx.Done():
		case <-s.ending.Done():
			return nil
		}
	}
	s.lost(whole, made.Name)
	return nil
}

// lost has a temporary session go whose client is gone.
func (s *Server) lost(ctx context.Context, session string) {
	if session == "" {
		return
	}
	v, err := s.svc.Session(ctx, session)
	if err == nil && v.Holder != "" {
		err = s.svc.RemoveSession(ctx, session, true)
	}
	if err != nil && !errors.Is(err, sandbox.NotFound) {
		s.cfg.Log.Warn("a temporary session stays, whose client is gone", "session", session, "error", err)
	}
}

// begun does what a client wants.
func (s *Server) begun(ctx context.Context, b wire.Begin, streams sandbox.Streams) (any, error) {
	switch {
	case b.Put != nil:
		f, err := s.svc.Files(ctx, b.Session)
		if err != nil {
			return nil, err
		}
		return nil, f.Put(ctx, b.Put, streams.Local)
	case b.Submit != nil:
		e, err := s.svc.SubmitExecution(ctx, *b.Submit, streams.Local)
		return e, err
	case b.Terminal != "":
		a, err := s.svc.AttachTerminal(ctx, b.Session, b.Terminal, streams)
		return a, err
	case b.ShellRun != nil:
		res, err := s.svc.RunShell(ctx, b.Session, b.Shell, *b.ShellRun, streams)
		return resultOf(res), err
	case b.Function != nil:
		f, err := s.svc.PutFunction(ctx, *b.Function, streams.Local)
		return f, err
	case b.Invoke != nil:
		res, err := s.svc.InvokeFunction(ctx, *b.Invoke, streams.Local)
		return res, err
	case b.Start:
		rec, err := s.svc.StartExec(ctx, b.Session, *b.Run, streams.Local)
		return recordOf(rec), err
	case b.Session != "":
		res, err := s.svc.Exec(ctx, b.Session, *b.Run, streams)
		return resultOf(res), err
	}
	res, err := s.svc.Run(ctx, *b.Run, streams)
	return resultOf(res), err
}

func recordOf(rec sandbox.ExecRecord) any {
	if rec.ID == "" {
		return nil
	}
	return rec
}

// begin reads the first message.
func (c *connection) begin() (b wire.Begin, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, beginPatience)
	defer cancel()
	_, text, err := c.ws.Read(ctx)
	if err != nil {
		return b, sandbox.Errorf(sandbox.Invalid, "read the first message: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return b, sandbox.Errorf(sandbox.Invalid, "the first message: %w", err).WithHint("see docs/server.md")
	}
	wanted := 0
	for _, is := range []bool{b.Run != nil, b.Put != nil, b.Submit != nil, b.ShellRun != nil, b.Function != nil, b.Invoke != nil, b.Terminal != "", b.Hold != nil} {
		if is {
			wanted++
		}
	}
	if wanted != 1 || (b.Put != nil || b.ShellRun != nil || b.Terminal != "" || b.Start) && b.Session == "" || b.Start && b.Run == nil {
		return b, sandbox.Errorf(sandbox.Invalid, "the first message says not what is wanted").WithHint("give one of run, submit, and put with a session")
	}
	if len(b.Tools) > 0 && (b.Run == nil || b.Start) {
		return b, sandbox.Errorf(sandbox.Invalid, "tools that the client answers are for a run that it waits for").WithHint("leave tools out, or give run without start")
	}
	return b, nil
}

// streams are those of a run that its client has, or takes.
func (c *connection) streams(b wire.Begin, local sandbox.Local) sandbox.Streams {
	s := sandbox.Streams{Local: local}
	if b.Stdin {
		s.Stdin = c.open(wire.StreamStdin, "")
	}
	if b.Stdout {
		s.Stdout = &piecewise{c, wire.StreamStdout}
	}
	if b.Stderr {
		s.Stderr = &piecewise{c, wire.StreamStderr}
	}
	if b.Artifacts {
		s.Artifact = c.artifact
	}
	if b.Descriptors {
		s.Answer = c.answer
	}
	if b.Starts {
		s.Started = func(t sandbox.Start) { _ = c.say(wire.Message{Type: wire.MsgStarted, Start: &t}) } // a client that is gone ends the run
	}
	return s
}

// read takes in what the client says, until it is gone or breaks the protocol.
// stop ends the run alone; resize sets the size of the terminal that is joined.
func (c *connection) read(stop func(), resize func(wire.Size)) {
	for {
		kind, b, err := c.ws.Read(c.ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			stream, piece, err := wire.ParsePiece(b)
			if err != nil || !c.take(stream, piece) {
				_ = c.ws.Close(websocket.StatusPolicyViolation, "a piece that was not asked for") // it is over either way
				return
			}
			continue
		}
		var m wire.Message
		if json.Unmarshal(b, &m) != nil {
			_ = c.ws.Close(websocket.StatusInvalidFramePayloadData, "no message") // as above
			return
		}
		switch m.Type {
		case wire.MsgCancel:
			stop()
		case wire.MsgEnd:
			c.ended(m)
		case wire.MsgResize:
			if m.Size != nil {
				resize(*m.Size)
			}
		default:
			c.reply(m)
		}
	}
}

// say sends a message.
func (c *connection) say(m wire.Message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return c.ws.Write(c.ctx, websocket.MessageText, b)
}

// conclude sends the last message.
func (c *connection) conclude(result any, err error) {
	m := wire.Message{Type: wire.MsgResult}
	if result != nil {
		m.Result, _ = json.Marshal(result) // it has a form in JSON
	}
	if err != nil {
		p := problemOf(c.ctx, err, nil).Problem
		m.Problem = &p
	}
	if c.say(m) == nil {
		_ = c.ws.Close(websocket.StatusNormalClosure, "") // who asked may be gone
	}
}
