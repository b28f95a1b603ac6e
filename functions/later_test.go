package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/sandbox"
)

// served notes the events that handlers get; those that are "wait" stay.
type served struct {
	mu     sync.Mutex
	events map[string]int
}

func (s *served) serve(ctx context.Context, event string) string {
	s.mu.Lock()
	s.events[event]++
	s.mu.Unlock()
	if event == `"wait"` {
		<-ctx.Done()
		return ""
	}
	return "1"
}

func (s *served) times(event string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[event]
}

func (s *served) until(t *testing.T, event string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); s.times(event) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s was not served within a minute", event)
		}
	}
}

// nobodyWaits calls a function for later, in ann's name.
func nobodyWaits(t *testing.T, fs *functions.Functions, event string) {
	t.Helper()
	done, err := fs.InvokeFunction(ofAnn(t), sandbox.Invocation{Function: "f", Event: json.RawMessage(event), Later: true}, sandbox.Local{})
	if err != nil || done.RequestID == "" || done.Function != "f" || done.Version != 1 || done.Value != nil {
		t.Errorf("%+v, %v", done, err)
	}
}

func ofAnn(t *testing.T) context.Context {
	t.Helper()
	return sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: "ann", Name: "a token"})
}

// TestLater has calls that nobody waits for be made once each, by the process that
// makes them, whichever took them; what waits is the next process's after its end, and
// what had begun is not made again.
func TestLater(t *testing.T) {
	t.Parallel()
	s := &served{events: map[string]int{}}
	fs, _, cfg := onFake(t, s.serve, nil)
	o := simple
	o.Concurrency = 1
	if _, err := fs.PutFunction(ofAnn(t), o, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	nobodyWaits(t, fs, `"first"`) // nobody makes it yet
	one := open(t, cfg)
	one.Start()
	s.until(t, `"first"`)
	nobodyWaits(t, one, `"wait"`)
	s.until(t, `"wait"`)
	for i := range 20 {
		nobodyWaits(t, one, fmt.Sprintf(`"waits %d"`, i)) // behind the one that stays
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	two := open(t, cfg)
	two.Start()
	defer two.Close()
	for i := range 20 {
		s.until(t, fmt.Sprintf(`"waits %d"`, i))
	}
	nobodyWaits(t, two, `"last"`)
	s.until(t, `"last"`)
	s.mu.Lock()
	defer s.mu.Unlock()
	for event, n := range s.events {
		if n != 1 {
			t.Errorf("%s was served %d times", event, n)
		}
	}
}

// TestLaterAgain tries again what found no room, gives up what cannot be, and refuses
// what is too large to keep.
func TestLaterAgain(t *testing.T) {
	t.Parallel()
	s := &served{events: map[string]int{}}
	fs, k, _ := onFake(t, s.serve, nil)
	if _, err := fs.PutFunction(ofAnn(t), simple, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	k.refuse = sandbox.Errorf(sandbox.Exhausted, "the quota is used up")
	k.mu.Unlock()
	nobodyWaits(t, fs, `"full"`)
	fs.Start()
	s.until(t, `"full"`)
	if n := k.count(); n != 2 {
		t.Errorf("it was tried %d times", n)
	}
	large := sandbox.Invocation{Function: "f", Event: json.RawMessage(`"` + strings.Repeat("x", int(sandbox.MaxLaterPayload)) + `"`), Later: true}
	if _, err := fs.InvokeFunction(ofAnn(t), large, sandbox.Local{}); !errors.Is(err, sandbox.Exhausted) {
		t.Errorf("a large event: %v", err)
	}
	if _, err := fs.InvokeFunction(ofAnn(t), sandbox.Invocation{Function: "none", Later: true}, sandbox.Local{}); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("no such function: %v", err)
	}
}
