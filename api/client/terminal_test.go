package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// e1 is the exec that has a terminal.
const e1 = "11111111111111111111111111111111"

// seated is a service with one terminal, which shows what is typed and its size, and
// ends at a Q.
type seated struct {
	api.Service
	sizes chan wire.Size
}

func (s *seated) Session(_ context.Context, name string) (sandbox.SessionView, error) {
	return sandbox.SessionView{Session: sandbox.Session{Name: name}, Execs: []sandbox.ExecRecord{{ID: e1, Session: name}}}, nil
}

func (s *seated) ResizeExec(_ context.Context, _ string, _ sandbox.ID, rows, cols uint16) error {
	s.sizes <- wire.Size{Rows: rows, Cols: cols}
	return nil
}

func (s *seated) AttachTerminal(ctx context.Context, session string, id sandbox.ID, streams sandbox.Streams) (sandbox.Attached, error) {
	if session != "work" || id != e1 {
		return sandbox.Attached{}, sandbox.Errorf(sandbox.NotFound, "no %s of %s", id, session)
	}
	if streams.Stdin == nil {
		<-ctx.Done()
		return sandbox.Attached{Stdout: 3}, context.Cause(ctx)
	}
	for b := make([]byte, 1); ; {
		if _, err := streams.Stdin.Read(b); err != nil {
			return sandbox.Attached{}, err
		}
		if _, err := streams.Stdout.Write(bytes.ToUpper(b)); err != nil {
			return sandbox.Attached{}, err
		}
		if b[0] == 'q' {
			return sandbox.Attached{Ended: true, Exit: sandbox.Exit{Code: 9}}, nil
		}
	}
}

// TestTerminal joins a terminal through a server: keys, what is shown, the end, errors,
// and who leaves.
func TestTerminal(t *testing.T) {
	t.Parallel()
	c := through(t, &seated{})
	in, keys := io.Pipe()
	out, screen := io.Pipe()
	defer func() { _ = keys.Close() }() // who sends them ends with that
	done := make(chan error, 1)
	go func() {
		a, err := c.AttachTerminal(t.Context(), "work", e1, sandbox.Streams{Stdin: in, Stdout: screen})
		if !a.Ended || a.Exit.Code != 9 {
			t.Errorf("%+v", a)
		}
		done <- err
	}()
	for _, key := range []string{"a", "b", "q"} { // each is answered before the next
		b := make([]byte, 1)
		if _, err := io.WriteString(keys, key); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, b); err != nil || b[0] != key[0]-'a'+'A' {
			t.Errorf("%q shows %q, %v", key, b, err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := c.AttachTerminal(t.Context(), "work", "e2", sandbox.Streams{}); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("another: %v", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := c.AttachTerminal(ctx, "work", e1, sandbox.Streams{Stdout: io.Discard}); !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves: %v", err)
	}
}

// TestTerminalByHand is what a page does: one WebSocket with keys, output and sizes.
func TestTerminalByHand(t *testing.T) {
	t.Parallel()
	svc := &seated{sizes: make(chan wire.Size, 1)}
	s, err := server.New(server.Config{Service: svc})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	ws, _, err := websocket.Dial(t.Context(), ts.URL+"/v1/sessions/work/execs/"+e1+"/terminal", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.CloseNow() }() // it is closed by the server
	send := func(v any) {
		t.Helper()
		if err := wsjson.Write(t.Context(), ws, v); err != nil {
			t.Fatal(err)
		}
	}
	send(wire.Message{Type: wire.MsgResize, Size: &wire.Size{Rows: 5, Cols: 7}})
	if got := <-svc.sizes; got != (wire.Size{Rows: 5, Cols: 7}) {
		t.Errorf("its size is %+v", got)
	}
	shown := ""
	for {
		kind, b, err := ws.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if kind == websocket.MessageBinary {
			_, piece, _ := wire.ParsePiece(b)
			shown += string(piece)
			continue
		}
		var m wire.Message
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		if m.Type == wire.MsgWant {
			if err := ws.Write(t.Context(), websocket.MessageBinary, wire.Piece(wire.StreamStdin, []byte("q"))); err != nil {
				t.Fatal(err)
			}
		}
		if m.Type == wire.MsgResult {
			var a sandbox.Attached
			if err := json.Unmarshal(m.Result, &a); err != nil || a.Exit.Code != 9 || shown != "Q" || m.Problem != nil {
				t.Errorf("%s, %v, %q", b, err, shown)
			}
			return
		}
	}
}
