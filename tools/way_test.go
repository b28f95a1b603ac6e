package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// calling is a tool without schemas.
func calling(name string, call sandbox.ToolFunc) sandbox.Callable {
	return sandbox.Callable{Tool: sandbox.Tool{Name: name}, Call: call}
}

func echo(_ context.Context, arguments json.RawMessage) (json.RawMessage, error) {
	return arguments, nil
}

// records keeps what is written down.
type records struct {
	mu   sync.Mutex
	list []sandbox.ToolCall
	err  error
}

func (r *records) record(_ context.Context, c sandbox.ToolCall, _ *sandbox.ToolSpend) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, c)
	return r.err
}

func allowing(context.Context, Question) (sandbox.Decision, error) {
	return sandbox.Decision{Verdict: sandbox.Allow}, nil
}

func newWay(t testing.TB, callables ...sandbox.Callable) (*Way, *records) {
	t.Helper()
	set, err := New(callables...)
	if err != nil {
		t.Fatal(err)
	}
	r := &records{}
	return NewWay(Config{Set: set, Judge: allowing, Record: r.record}), r
}

// TestOrder takes calls as far as they come, and writes each of them down.
func TestOrder(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}},"required":["n"],"additionalProperties":false}`)
	ran := 0
	number := sandbox.Callable{Tool: sandbox.Tool{Name: "number", Parameters: schema, Result: json.RawMessage(`{"type":"object"}`), Budget: 2},
		Call: func(_ context.Context, arguments json.RawMessage) (json.RawMessage, error) {
			ran++
			return arguments, nil
		}}
	var asked []string
	set, err := New(number, calling("wrong", func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage("{"), nil }),
		calling("crash", func(context.Context, json.RawMessage) (json.RawMessage, error) { panic("boom") }), calling("denied", echo))
	if err != nil {
		t.Fatal(err)
	}
	r := &records{}
	w := NewWay(Config{Set: set, Record: r.record, Judge: func(_ context.Context, q Question) (sandbox.Decision, error) {
		asked = append(asked, q.Tool.Name+string(q.Arguments))
		if q.Tool.Name == "denied" {
			return sandbox.Decision{Verdict: sandbox.Deny, Findings: []sandbox.Finding{{ID: "X-1", Message: "no"}}}, nil
		}
		return sandbox.Decision{Verdict: sandbox.Allow}, nil
	}})
	for _, tt := range []struct {
		tool, arguments string
		want            string // of the result, or of the error
		kind            error
	}{
		{"nothing", `{}`, "there is no tool", sandbox.NotFound},
		{"number", `{`, "not JSON", sandbox.Invalid},
		{"number", `{"n":1} {}`, "not JSON", sandbox.Invalid},
		{"number", `[1]`, "no object", sandbox.Invalid},
		{"number", `{"n":"1"}`, "do not fit", sandbox.Invalid},
		{"number", `{"n":1,"m":2}`, "do not fit", sandbox.Invalid},
		{"number", strings.Repeat(`{"n":`, 20000), "not JSON", sandbox.Invalid},
		{"number", `{"n":1,"n":9007199254740993}`, `{"n":9007199254740993}`, nil},
		{"number", ` {"n": 2}`, `{"n":2}`, nil},
		{"number", `{"n":3}`, "has made its 2 calls", sandbox.Exhausted},
		{"denied", `{}`, "X-1: no", sandbox.Denied},
		{"wrong", ``, "not as declared", sandbox.Internal},
		{"crash", ``, "it crashed: boom", sandbox.Internal},
	} {
		result, err := w.Call(t.Context(), tt.tool, []byte(tt.arguments))
		if tt.kind == nil && (err != nil || string(result) != tt.want) {
			t.Errorf("%s %s: %s, %v", tt.tool, tt.arguments, result, err)
		}
		if tt.kind != nil && (!errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %.40s: %v, want %v: %s", tt.tool, tt.arguments, err, tt.kind, tt.want)
		}
	}
	if ran != 2 || len(r.list) != 13 {
		t.Errorf("it ran %d times, and %d calls are written down", ran, len(r.list))
	}
	if got, want := strings.Join(asked, " "), `number{"n":9007199254740993} number{"n":2} number{"n":3} denied{} wrong{} crash{}`; got != want {
		t.Errorf("policy was asked %s, want %s", got, want)
	}
	r.err = errors.New("disk full")
	if _, err := w.Call(t.Context(), "denied", nil); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("what is not written down: %v", err)
	}
}

// TestRate holds each owner to its own rate and budget of each tool, whatever exec calls.
func TestRate(t *testing.T) {
	t.Parallel()
	minute := sandbox.Duration(time.Minute)
	s := &Spent{}
	now := time.Now()
	for i, tt := range []struct {
		owner, tool string
		after       time.Duration
		ok          bool
	}{
		{"a", "rate", 0, true}, {"a", "rate", 10 * time.Second, true}, {"a", "rate", 20 * time.Second, false}, {"b", "rate", 20 * time.Second, true},
		{"a", "rate", time.Minute, true}, {"a", "rate", 61 * time.Second, false}, {"a", "rate", 70 * time.Second, true},
		{"a", "budget", 0, true}, {"a", "budget", 50 * time.Second, true}, {"a", "budget", 59 * time.Second, false}, {"b", "budget", 59 * time.Second, true},
		{"a", "other", 59 * time.Second, true}, {"a", "budget", time.Minute, true}, {"a", "budget", 61 * time.Second, true}, {"a", "budget", 119 * time.Second, false},
	} {
		tool := sandbox.Tool{Name: tt.tool}
		if tt.tool == "rate" {
			tool.Rate = sandbox.ToolRate{Calls: 2, Per: minute}
		} else {
			tool.OwnerBudget = sandbox.ToolRate{Calls: 2, Per: minute}
		}
		_, err := s.take(tt.owner, tool, now.Add(tt.after))
		if tt.ok && err != nil || !tt.ok && (!errors.Is(err, sandbox.Exhausted) || !strings.Contains(sandbox.HintOf(err), "call it again in ")) {
			t.Errorf("%d: %v", i, err)
		}
	}
	bounded := sandbox.Tool{Name: "t", Rate: sandbox.ToolRate{Calls: 1, Per: minute}}
	for i := range 2*mostOwners + 1 {
		if _, err := s.take(fmt.Sprint(i), bounded, now.Add(time.Duration(i/mostOwners)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.all) > mostOwners+1 {
		t.Errorf("%d owners are remembered", len(s.all))
	}
	for i := range mostTools + 1 {
		bounded.Name = fmt.Sprint("t", i)
		if _, err := s.take("many", bounded, now); errors.Is(err, sandbox.Exhausted) != (i == mostTools) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if _, err := s.take("many", bounded, now.Add(time.Minute)); err != nil || len(s.all["many"]) != 1 {
		t.Errorf("%d tools are remembered, %v", len(s.all["many"]), err)
	}
}

// TestBudgetKept goes on with what a process before has counted, and says what is to be
// kept.
func TestBudgetKept(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var asked atomic.Int32
	s := &Spent{Kept: func(_ context.Context, owner, name string) (sandbox.ToolSpent, error) {
		asked.Add(1)
		switch owner + " " + name {
		case "ann limited":
			return sandbox.ToolSpent{Calls: 2, Until: now.Add(time.Hour).Round(0)}, nil
		case "bob limited":
			return sandbox.ToolSpent{Calls: 3, Until: now.Add(-time.Hour).Round(0)}, nil
		case "eve limited":
			return sandbox.ToolSpent{}, sandbox.Errorf(sandbox.Unavailable, "the state cannot be read")
		}
		return sandbox.ToolSpent{}, nil
	}}
	limited := calling("limited", echo)
	limited.OwnerBudget = sandbox.ToolRate{Calls: 3, Per: sandbox.Duration(24 * time.Hour)}
	set, err := New(limited, calling("free", echo))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		owner, tool string
		kind        error
		until       time.Duration // of what is to be kept; 0 is nothing
	}{
		{"ann", "limited", nil, 24 * time.Hour}, {"ann", "limited", sandbox.Exhausted, 0}, {"ann", "free", nil, 0},
		{"bob", "limited", nil, 24 * time.Hour}, {"carl", "limited", nil, 24 * time.Hour}, {"eve", "limited", sandbox.Unavailable, 0},
	} {
		var kept *sandbox.ToolSpend
		w := NewWay(Config{
			Set: set, Judge: allowing, Owner: tt.owner, Spent: s, Now: func() time.Time { return now },
			Record: func(_ context.Context, _ sandbox.ToolCall, spend *sandbox.ToolSpend) error { kept = spend; return nil },
		})
		_, err := w.Call(t.Context(), tt.tool, nil)
		var want *sandbox.ToolSpend
		if tt.until > 0 {
			want = &sandbox.ToolSpend{Owner: tt.owner, Tool: tt.tool, At: now, Until: now.Add(tt.until)}
		}
		if d := cmp.Diff(want, kept); d != "" || !errors.Is(err, tt.kind) {
			t.Errorf("%s, %s: %v %s", tt.owner, tt.tool, err, d)
		}
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestTime ends the wait for a tool that hangs, and keeps its turn from others.
func TestTime(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	hang := sandbox.Callable{Tool: sandbox.Tool{Name: "hang", Timeout: sandbox.Duration(50 * time.Millisecond), Concurrency: 1},
		Call: func(context.Context, json.RawMessage) (json.RawMessage, error) {
			<-leave
			return json.RawMessage("1"), nil
		}}
	w, _ := newWay(t, hang)
	for range 2 {
		if _, err := w.Call(t.Context(), "hang", nil); !errors.Is(err, sandbox.TimedOut) {
			t.Errorf("a tool that hangs: %v", err)
		}
	}
	close(leave)
}

// program is the other end of a connection that a way serves.
type program struct {
	net.Conn
	r    *wire.CallReader
	over chan struct{}
}

func serve(t *testing.T, w *Way) *program {
	t.Helper()
	ours, theirs := net.Pipe()
	p := &program{Conn: ours, r: wire.NewCallReader(ours), over: make(chan struct{})}
	go func() {
		defer close(p.over)
		w.Serve(t.Context(), theirs)
	}()
	t.Cleanup(func() {
		_ = ours.Close()
		<-p.over
		if w.share.held != 0 {
			t.Errorf("%d bytes are held at the end", w.share.held)
		}
	})
	return p
}

func (p *program) send(frames ...wire.CallFrame) error {
	var b []byte
	for _, f := range frames {
		b = wire.AppendCall(b, f)
	}
	_, err := p.Write(b)
	return err
}

// answers reads n answers, by call.
func (p *program) answers(t *testing.T, n int) map[uint32]string {
	t.Helper()
	parts, whole := map[uint32][]byte{}, map[uint32]string{}
	for len(whole) < n {
		f, err := p.r.Next()
		if err != nil {
			t.Fatalf("%d of %d answers: %v", len(whole), n, err)
		}
		parts[f.Call] = append(parts[f.Call], f.Payload...)
		if f.Type == wire.CallLast {
			whole[f.Call] = string(parts[f.Call])
		}
	}
	return whole
}

func request(tool, arguments string) []byte {
	return fmt.Appendf(nil, `{"tool":%q,"arguments":%s}`, tool, arguments)
}

// TestAtOnce has a thousand calls open, none of which is answered before all are.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	const n = 1000
	var there atomic.Int32
	all := make(chan struct{})
	together := sandbox.Callable{Tool: sandbox.Tool{Name: "together", Concurrency: n}, Call: func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		if there.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
			return arguments, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	w, _ := newWay(t, together)
	p := serve(t, w)
	go func() {
		for i := range n {
			_ = p.send(wire.CallFrame{Type: wire.CallLast, Call: uint32(i), Payload: request("together", fmt.Sprintf(`{"n":%d}`, i))})
		}
	}()
	for call, text := range p.answers(t, n) {
		if want := fmt.Sprintf(`{"result":{"n":%d}}`, call); text != want {
			t.Errorf("call %d: %s", call, text)
		}
	}
}

// TestLarge moves 64 MiB of bytes there and back while small calls pass.
func TestLarge(t *testing.T) {
	t.Parallel()
	w, _ := newWay(t, calling("echo", echo))
	p := serve(t, w)
	large := request("echo", `{"x":"`+strings.Repeat("QUJD", 64<<20/3+1)+`"}`)
	go func() {
		_ = wire.CallFrames(1, large, func(f wire.CallFrame) error {
			return p.send(f, wire.CallFrame{Type: wire.CallCancel, Call: 7})
		})
	}()
	if got := p.answers(t, 1)[1]; len(got) != len(`{"result":`)+len(large)-len(`{"tool":"echo","arguments":`) {
		t.Errorf("%d bytes came back of %d: %.100s", len(got), len(large), got)
	}
	go func() {
		for len(large) < int(sandbox.MaxToolData)+1 {
			large = append(large, large...)
		}
		_ = wire.CallFrames(2, large, func(f wire.CallFrame) error { return p.send(f) })
	}()
	if got := p.answers(t, 1)[2]; !strings.Contains(got, `"kind":"exhausted"`) {
		t.Errorf("too much: %.200s", got)
	}
}

// TestNonsense ends connections that say what makes no sense, and theirs alone.
func TestNonsense(t *testing.T) {
	t.Parallel()
	stay := make(chan struct{})
	w, _ := newWay(t, calling("echo", echo), calling("stay", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		select {
		case <-stay:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}))
	one := wire.AppendCall(nil, wire.CallFrame{Type: wire.CallLast, Call: 1, Payload: request("stay", "{}")})
	many := []byte{}
	for i := range wire.MaxCallOpen + 1 {
		many = wire.AppendCall(many, wire.CallFrame{Type: wire.CallPart, Call: uint32(i)})
	}
	for name, said := range map[string][]byte{
		"garbage": bytes.Repeat([]byte("garbage"), 100), "zeros": make([]byte, 100), "a frame too long": {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 1},
		"a number twice": append(append([]byte{}, one...), one...), "too many open": many,
	} {
		p := serve(t, w)
		go func() { _, _ = p.Write(said) }()
		if _, err := p.r.Next(); err == nil {
			t.Errorf("%s: an answer came", name)
		}
		<-p.over
	}
	close(stay)
	p := serve(t, w)
	go func() {
		_ = p.send(wire.CallFrame{Type: wire.CallCancel, Call: 9}, wire.CallFrame{Type: wire.CallLast, Call: 1, Payload: []byte("{]")}, wire.CallFrame{Type: wire.CallLast, Call: 2, Payload: request("echo", `{"a":1}`)})
	}()
	got := p.answers(t, 2)
	if got[2] != `{"result":{"a":1}}` || !strings.Contains(got[1], `"kind":"invalid"`) {
		t.Errorf("beside nonsense: %v", got)
	}
}

// TestTooLate has a tool go on after the end of who called, and answer then: nobody
// hears it, and the next one has its turn.
func TestTooLate(t *testing.T) {
	t.Parallel()
	began, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	deaf := sandbox.Callable{Tool: sandbox.Tool{Name: "deaf", Concurrency: 1}, Call: func(_ context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		if string(arguments) == `{"a":1}` {
			defer close(left)
			close(began)
			<-leave
		}
		return arguments, nil
	}}
	w, r := newWay(t, deaf)
	p := serve(t, w)
	if err := p.send(wire.CallFrame{Type: wire.CallLast, Call: 1, Payload: request("deaf", `{"a":1}`)}); err != nil {
		t.Fatal(err)
	}
	<-began
	_ = p.Close()
	<-p.over
	close(leave)
	<-left
	next := serve(t, w)
	if err := next.send(wire.CallFrame{Type: wire.CallLast, Call: 1, Payload: request("deaf", `{"b":2}`)}); err != nil {
		t.Fatal(err)
	}
	if got := next.answers(t, 1)[1]; got != `{"result":{"b":2}}` {
		t.Errorf("the next one hears %s", got)
	}
	if len(r.list) != 2 || r.list[0].Kind != "unavailable" || r.list[1].Kind != "" {
		t.Errorf("written down: %+v", r.list)
	}
}

// TestGivenUp cancels what a program wants no more, and all of it where it goes.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	w, r := newWay(t, calling("stay", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	}), calling("echo", echo))
	p := serve(t, w)
	for i := range 2 {
		if err := p.send(wire.CallFrame{Type: wire.CallLast, Call: uint32(i), Payload: request("stay", "{}")}); err != nil {
			t.Fatal(err)
		}
		<-began
	}
	if err := p.send(wire.CallFrame{Type: wire.CallCancel, Call: 0}); err != nil {
		t.Fatal(err)
	}
	<-ended
	_ = p.Close()
	<-ended
	<-p.over
	for _, c := range r.list {
		if c.Kind != "unavailable" {
			t.Errorf("a call that was given up: %+v", c)
		}
	}
	if told, _ := w.Calls(); len(told) != 2 {
		t.Errorf("%d calls are told", len(told))
	}
}
