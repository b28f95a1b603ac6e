// Package storetest is the suite that every implementation of [store.Store]
// passes.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store"
)

// Open opens a store whose state lies in dir, or somewhere that dir names. It
// is called again for what was closed, and for a second holder at once.
type Open func(t testing.TB, dir string) store.Store

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"sessions":            sessions,
		"names":               names,
		"ended":               ended,
		"whole":               whole,
		"while":               while,
		"oneshots":            oneshots,
		"neighbours":          neighbours,
		"reopened":            reopened,
		"secrets":             secrets,
		"events":              events,
		"filters":             filters,
		"reading and writing": readingAndWriting,
		"pruned by age":       prunedByAge,
		"pruned by size":      prunedBySize,
		"pruned to nothing":   prunedToNothing,
		"questions pruned":    questionsPruned,
		"readings":            readings,
		"alerts":              alerts,
		"letters":             letters,
		"denied":              denied,
		"monitored":           monitored,
		"verified under load": verifiedUnderLoad,
		"clock":               clock,
		"clock set":           clockSet,
		"two holders":         twoHolders,
		"closed":              closed,
		"owners":              owners,
		"tokens":              tokens,
		"executions":          executions,
		"execution queue":     executionQueue,
		"executions gone":     executionsForgotten,
		"functions":           functions,
		"tool calls":          toolCalls,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

// fresh opens a new store that the test's end closes.
func fresh(t *testing.T, open Open) store.Store {
	t.Helper()
	s := open(t, t.TempDir())
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// apply makes a change that has to succeed.
func apply(t testing.TB, s store.Store, c sandbox.Transaction) {
	t.Helper()
	if err := s.Apply(t.Context(), c); err != nil {
		t.Fatalf("apply: %v", err)
	}
}

// refuse makes a change that has to fail with a kind.
func refuse(t testing.TB, s store.Store, c sandbox.Transaction, kind sandbox.Kind) {
	t.Helper()
	if err := s.Apply(t.Context(), c); !errors.Is(err, kind) {
		t.Errorf("apply: error %v, not of kind %v", err, kind)
	}
}

func aSession(name string) *sandbox.Session {
	id := sandbox.NewID()
	return &sandbox.Session{
		ID: id, Name: name, Language: "python", Created: time.Now().UTC().Truncate(time.Microsecond), Idle: sandbox.Duration(time.Minute), TTL: sandbox.Duration(3 * time.Hour),
		Limits: sandbox.DefaultLimits, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceVolume, Source: "vol"}, Identity: sandbox.IdentityFor(id),
	}
}

func aSandbox(session string) sandbox.SandboxRecord {
	return sandbox.SandboxRecord{
		ID: sandbox.NewID(), Session: session, Language: "python", State: sandbox.StateReady, Handle: json.RawMessage(`{"version":1}`),
		Secret: []byte("a secret of an agent"), Image: "sha256:1", Holder: "o", Created: time.Now().UTC().Truncate(time.Microsecond),
	}
}

func anExec(session string) sandbox.ExecRecord {
	return sandbox.ExecRecord{
		ID: sandbox.NewID(), Session: session, Sandbox: sandbox.NewID(), Argv: []string{"true"}, Holder: "o",
		Started: time.Now().UTC().Truncate(time.Microsecond),
	}
}

// setClock has the store see a clock that is set by so much since the first call.
func setClock(t *testing.T, s store.Store, by time.Duration) {
	t.Helper()
	apply(t, s, sandbox.Transaction{Clock: &sandbox.ClockReading{Wall: time.Unix(1e9, 0).Add(by), Up: time.Hour, Boot: "this"}})
}

func anEvent(kind, session string) sandbox.Event {
	return sandbox.Event{Time: time.Now(), Kind: kind, Actor: "me@here", Session: session, Data: json.RawMessage(`{"a":1}`)}
}

// all reads every event that a filter selects.
func all(t testing.TB, s store.Store, f sandbox.EventFilter) []sandbox.Event {
	t.Helper()
	var list []sandbox.Event
	for e, err := range s.Events(t.Context(), f) {
		if err != nil {
			t.Fatalf("events: %v", err)
		}
		list = append(list, e)
	}
	return list
}

// Sound checks that the audit verifies, and returns what was found.
func Sound(t testing.TB, s store.Store) sandbox.AuditReport {
	t.Helper()
	r, err := s.Verify(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if !r.OK || len(r.Problems) > 0 {
		t.Errorf("the audit does not verify: %+v", r.Problems)
	}
	return r
}

// Fill writes n events, many to a change.
func Fill(t testing.TB, s store.Store, n int) {
	t.Helper()
	for n > 0 {
		var c sandbox.Transaction
		for range min(n, 1000) {
			e := anEvent(sandbox.EventExecEnded, "work")
			e.Exec, e.Sandbox = sandbox.NewID(), sandbox.NewID()
			e.Data = json.RawMessage(fmt.Sprintf(`{"exit_reason":"exited","exit_code":0,"n":%d}`, n))
			c.Events = append(c.Events, e)
		}
		apply(t, s, c)
		n -= len(c.Events)
	}
}
