package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

func echo(_ context.Context, event string) string { return event }

// held holds calls until they are let go.
type held struct{ began, leave chan struct{} }

func newHeld() held { return held{make(chan struct{}, 100), make(chan struct{})} }

func (g held) serve(ctx context.Context, event string) string {
	g.began <- struct{}{}
	select {
	case <-g.leave:
		return event
	case <-ctx.Done():
		return ""
	}
}

var simple = sandbox.FunctionOptions{Name: "f", Handler: "main.handler", Files: files("main.py", "x"), Concurrency: 2}

// TestConcurrency: as many calls as may be run at once, and the others in their turn,
// each with its own answer.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	g := newHeld()
	fs, k, _ := onFake(t, g.serve, nil)
	put(t, fs, simple)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	for i := range 20 {
		wg.Go(func() {
			done, err := fs.InvokeFunction(t.Context(), sandbox.Invocation{Function: "f", Event: json.RawMessage(fmt.Sprint(i))}, sandbox.Local{})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[string(done.Value)]++
		})
	}
	for i := range 20 {
		<-g.began
		if i == 1 && len(g.began) > 0 {
			t.Error("more than two calls run")
		}
		if i > 0 {
			g.leave <- struct{}{}
		}
	}
	g.leave <- struct{}{}
	wg.Wait()
	if len(got) != 20 || k.count() != 2 || len(k.names()) != 2 {
		t.Errorf("%d answers, %d processes, %d sessions", len(got), k.count(), len(k.names()))
	}
}

// TestGivenUp: who waits for a turn and gives up holds up nobody, and who gives up a
// call that runs ends its process.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	g := newHeld()
	fs, k, _ := onFake(t, g.serve, nil)
	one := simple
	one.Concurrency = 1
	put(t, fs, one)
	ctx, cancel := context.WithCancel(t.Context())
	call := func(ctx context.Context, ended chan error) {
		_, err := fs.InvokeFunction(ctx, sandbox.Invocation{Function: "f"}, sandbox.Local{})
		ended <- err
	}
	first, second, third := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	running, stop := context.WithCancel(t.Context())
	go call(running, first)
	<-g.began
	go call(ctx, second)
	go call(t.Context(), third)
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("who waited: %v", err)
	}
	stop()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who ran: %v", err)
	}
	<-g.began
	g.leave <- struct{}{}
	if err := <-third; err != nil || k.count() != 2 || len(k.names()) != 1 {
		t.Errorf("%v, %d processes", err, k.count())
	}
}

// TestVersions: a call that begins after a put has its code, and nothing of the
// version before stays.
func TestVersions(t *testing.T) {
	t.Parallel()
	g := newHeld()
	fs, k, _ := onFake(t, g.serve, nil)
	put(t, fs, simple)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { invoke(t, fs, "f", "1") })
	}
	<-g.began
	<-g.began
	before := k.names()
	if f := put(t, fs, simple); f.Version != 2 {
		t.Errorf("version %d", f.Version)
	}
	close(g.leave)
	wg.Wait()
	for range 2 { // both at once, so that both instances are used
		wg.Go(func() {
			if done := invoke(t, fs, "f", "2"); done.Version != 2 || !done.Cold && slices.Contains(before, done.Session) {
				t.Errorf("%+v", done)
			}
		})
	}
	wg.Wait()
	put(t, fs, simple) // retires those that wait
	until(t, func() bool { return len(k.names()) == 0 })
	if _, err := fs.InvokeFunction(t.Context(), sandbox.Invocation{Function: "f", Version: 2}, sandbox.Local{}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("an old version: %v", err)
	}
}

// until waits for something that goes on beside calls.
func until(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came to that")
		}
	}
}

// TestEnds: what ends a process costs the next call a start, in the same session.
// One that is gone is replaced, and one that nobody uses goes.
func TestEnds(t *testing.T) {
	t.Parallel()
	fs, k, _ := onFake(t, func(ctx context.Context, event string) string {
		switch event {
		case `"die"`:
			return ""
		case `"hang"`:
			<-ctx.Done()
		case `"junk"`:
			return `{`
		}
		return event
	}, nil)
	o := simple
	o.Timeout = sandbox.Duration(5 * time.Second)
	put(t, fs, o)
	session := invoke(t, fs, "f", "1").Session
	for event, kind := range map[string]string{`"die"`: "Runtime.ExitError", `"hang"`: "Sandbox.Timedout", `"junk"`: ""} {
		done, err := fs.InvokeFunction(t.Context(), sandbox.Invocation{Function: "f", Event: json.RawMessage(event)}, sandbox.Local{})
		if kind == "" {
			if !errors.Is(err, sandbox.Unavailable) {
				t.Errorf("%s: %+v, %v", event, done, err)
			}
		} else if err != nil || done.Error == nil || done.Error.Type != kind || done.Error.Class != sandbox.FunctionUnhandled {
			t.Errorf("%s: %+v, %v", event, done.Error, err)
		}
		if next := invoke(t, fs, "f", "2"); !next.Cold || next.Session != session {
			t.Errorf("after %s: %+v", event, next)
		}
		if next := invoke(t, fs, "f", "3"); next.Cold {
			t.Errorf("after %s: cold again", event)
		}
	}
	invoke(t, fs, "f", `"die"`)
	if err := k.RemoveSession(t.Context(), session, true); err != nil {
		t.Fatal(err)
	}
	if next := invoke(t, fs, "f", "4"); next.Session == session || !next.Cold {
		t.Errorf("%+v", next)
	}
	invoke(t, fs, "f", `"die"`)
	k.mu.Lock()
	k.refuse = &sandbox.DeniedError{Decision: sandbox.Decision{Verdict: sandbox.Deny}}
	k.mu.Unlock()
	if _, err := fs.InvokeFunction(t.Context(), sandbox.Invocation{Function: "f"}, sandbox.Local{}); !errors.Is(err, sandbox.Denied) {
		t.Errorf("refused by policy: %v", err)
	}
	invoke(t, fs, "f", "5")
	if err := fs.RemoveFunction(t.Context(), "f"); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return len(k.names()) == 0 })
	for name, err := range map[string]error{
		"call":   second(fs.InvokeFunction(t.Context(), sandbox.Invocation{Function: "f"}, sandbox.Local{})),
		"remove": fs.RemoveFunction(t.Context(), "f"),
		"show":   second(fs.Function(t.Context(), "f")),
	} {
		if !errors.Is(err, sandbox.NotFound) {
			t.Errorf("%s what was removed: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestIdle: an instance that nobody has used for a while goes with its session.
func TestIdle(t *testing.T) {
	t.Parallel()
	fs, k, _ := onFake(t, echo, func(c *functions.Config) { c.KeepWarm = time.Millisecond })
	put(t, fs, simple)
	for range 3 {
		invoke(t, fs, "f", "1")
		until(t, func() bool { return len(k.names()) == 0 })
	}
}

// TestProcesses: of two processes each has sessions of its own, and takes over what
// another has left; those of old versions it removes.
func TestProcesses(t *testing.T) {
	t.Parallel()
	fs, k, cfg := onFake(t, echo, nil)
	put(t, fs, simple)
	mine := invoke(t, fs, "f", "1").Session
	other := open(t, cfg)
	theirs := invoke(t, other, "f", "1").Session
	if mine == theirs {
		t.Errorf("both have %s", mine)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.InvokeFunction(t.Context(), sandbox.Invocation{Function: "f"}, sandbox.Local{}); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("after its end: %v", err)
	}
	third := open(t, cfg)
	if done := invoke(t, third, "f", "1"); done.Session != theirs || !done.Cold {
		t.Errorf("it took %s, not %s", done.Session, theirs)
	}
	put(t, fs, simple)
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	if done := invoke(t, fs, "f", "1"); !slices.Equal(k.names(), []string{done.Session}) {
		t.Errorf("%q are left beside %s", k.names(), done.Session)
	}
}

// TestClose ends calls that run and calls that wait.
func TestClose(t *testing.T) {
	t.Parallel()
	g := newHeld()
	fs, _, _ := onFake(t, g.serve, nil)
	one := simple
	one.Concurrency = 1
	put(t, fs, one)
	ended := make(chan error)
	for range 3 {
		go func() {
			_, err := fs.InvokeFunction(t.Context(), sandbox.Invocation{Function: "f"}, sandbox.Local{})
			ended <- err
		}()
	}
	<-g.began
	closed := make(chan error, 1)
	go func() { closed <- fs.Close() }()
	for range 3 {
		if err := <-ended; !errors.Is(err, sandbox.Unavailable) {
			t.Errorf("%v", err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestOwners: functions are each owner's own, with their sessions, and the audit
// knows who called what.
func TestOwners(t *testing.T) {
	t.Parallel()
	fs, k, cfg := onFake(t, echo, nil)
	ann, bob := sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: "ann", Name: "ann's token"}), sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: "bob"})
	if _, err := fs.PutFunction(ann, simple, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		second(fs.Function(bob, "f")), second(fs.InvokeFunction(bob, sandbox.Invocation{Function: "f"}, sandbox.Local{})), fs.RemoveFunction(bob, "f"),
	} {
		if !errors.Is(err, sandbox.NotFound) {
			t.Errorf("another's function: %v", err)
		}
	}
	if f, err := fs.PutFunction(bob, simple, sandbox.Local{}); err != nil || f.Version != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, who := range []context.Context{ann, bob} {
		done, err := fs.InvokeFunction(who, sandbox.Invocation{Function: "f"}, sandbox.Local{})
		if err != nil || k.owners[done.Session] != sandbox.CallerFrom(who).Owner {
			t.Errorf("%+v, %v", done, err)
		}
	}
	admin := sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: "ops", Access: sandbox.AccessAdmin})
	if f, err := fs.Function(admin, "ann~f"); err != nil || f.Owner != "ann" {
		t.Errorf("an admin sees %+v, %v", f, err)
	}
	if _, err := fs.Function(bob, "ann~f"); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("another's function by its whole name: %v", err)
	}
	var told []string
	for e, err := range cfg.Store.(*sqlite.Store).Events(t.Context(), sandbox.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, strings.Join([]string{e.Kind, e.Actor, e.Owner}, " "))
	}
	want := []string{"function.put ann's token ann", "function.put me bob", "function.invoked ann's token ann", "function.invoked me bob"}
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
}
