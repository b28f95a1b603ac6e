package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestToolsOfTheClient has a client answer the calls of its run, fail, and be told of a
// call that nobody waits for any more.
func TestToolsOfTheClient(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	c := through(t, &acting{run: func(ctx context.Context, _ sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		if got, err := s.Tools[0].Call(ctx, json.RawMessage(`{"a":1}`)); err != nil || string(got) != `{"a":1}` || s.Tools[0].Description != "d" {
			t.Errorf("%+v: %s, %v", s.Tools[0].Tool, got, err)
		}
		if _, err := s.Tools[1].Call(ctx, json.RawMessage(`{}`)); !errors.Is(err, sandbox.Exhausted) || sandbox.HintOf(err) != "later" {
			t.Errorf("one that fails: %v", err)
		}
		calling, stop := context.WithCancel(ctx)
		go func() { <-began; stop() }()
		if _, err := s.Tools[2].Call(calling, json.RawMessage(`{}`)); err == nil {
			t.Error("a call that was given up has a result")
		}
		<-ended
		return sandbox.Result{}, nil
	}})
	tool := func(name string, call sandbox.ToolFunc) sandbox.Callable {
		return sandbox.Callable{Tool: sandbox.Tool{Name: name, Description: "d"}, Call: call}
	}
	_, err := c.Run(t.Context(), sandbox.Run{Code: "x"}, sandbox.Streams{Local: sandbox.Local{Tools: []sandbox.Callable{
		tool("says", func(_ context.Context, arguments json.RawMessage) (json.RawMessage, error) { return arguments, nil }),
		tool("fails", func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return nil, sandbox.Errorf(sandbox.Exhausted, "no more").WithHint("later")
		}),
		tool("stays", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			close(began)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}),
	}}})
	if err != nil {
		t.Error(err)
	}
}

// TestToolsByHand has clients answer twice and calls that there are not, vanish, and
// bring what a server would have to run.
func TestToolsByHand(t *testing.T) {
	t.Parallel()
	lost := make(chan error, 1)
	s, err := server.New(server.Config{Service: &acting{run: func(ctx context.Context, run sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		got, err := s.Tools[0].Call(ctx, json.RawMessage(`1`))
		if run.Code == "vanish" {
			lost <- err
			return sandbox.Result{}, err
		}
		again, err2 := s.Tools[0].Call(ctx, json.RawMessage(`2`))
		if err := errors.Join(err, err2); err != nil || string(got) != "1" || string(again) != "2" {
			t.Errorf("%s, %s, %v", got, again, err)
		}
		return sandbox.Result{}, nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	begin := func(text string) *websocket.Conn {
		ws, _, err := websocket.Dial(t.Context(), ts.URL+"/v1/connect", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ws.CloseNow() }) // most are closed by then
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		return ws
	}
	read := func(ws *websocket.Conn) (m wire.Message) {
		if err := wsjson.Read(t.Context(), ws, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	ws := begin(`{"run":{"code":"twice"},"tools":[{"name":"f"}]}`)
	for range 2 {
		call := read(ws)
		if call.Type != wire.MsgCall || call.Tool != "f" {
			t.Fatalf("%+v", call)
		}
		for _, answer := range []wire.Message{{Stream: call.Stream + 7, Result: json.RawMessage("9")}, {Stream: call.Stream, Result: call.Arguments}, {Stream: call.Stream, Result: json.RawMessage("8")}} {
			answer.Type = wire.MsgAnswer
			if err := wsjson.Write(t.Context(), ws, answer); err != nil {
				t.Fatal(err)
			}
		}
	}
	if end := read(ws); end.Type != wire.MsgResult || end.Problem != nil {
		t.Errorf("%+v", end)
	}
	ws = begin(`{"run":{"code":"vanish"},"tools":[{"name":"f"}]}`)
	if m := read(ws); m.Type != wire.MsgCall {
		t.Errorf("%+v", m)
	}
	_ = ws.CloseNow() // as one that dies
	if err := <-lost; !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("a call of a client that is gone: %v", err)
	}
	for _, text := range []string{
		`{"run":{"code":"x"},"tools":[{"name":"f","command":["id"]}]}`, `{"run":{"code":"x"},"tools":[{"name":"f","url":"http://x/"}]}`,
		`{"run":{"code":"x"},"tools":[{"name":"f","mcp":{"command":["id"]}}]}`, `{"run":{"code":"x"},"start":true,"session":"s","tools":[{"name":"f"}]}`,
	} {
		if m := read(begin(text)); m.Type != wire.MsgResult || m.Problem == nil || !strings.Contains(m.Problem.Kind, "invalid") {
			t.Errorf("%s: %+v", text, m)
		}
	}
}
