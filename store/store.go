// Package store is the contract of what caisson remembers: sessions, their
// sandboxes and execs, and the audit's chain of events. It holds no
// implementation: package store/sqlite has one, and store/storetest the suite
// that every one passes.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Store remembers. It is safe for concurrent use, and several processes may
// use one state folder. Who opened it closes it.
//
// Errors: Conflict, NotFound, Exhausted for a full disk, Unavailable for a
// folder that cannot be written or is locked too long, Internal for one that is
// corrupt.
type Store interface {
	// Apply makes all of a change or nothing of it. What it returned from is
	// durable. Events get their place in the chain. Execs, events and questions of a
	// session get its owner, whatever they say themselves.
	Apply(ctx context.Context, c sandbox.Transaction) error
	// Session returns one session with its sandboxes and execs.
	Session(ctx context.Context, name string) (sandbox.SessionView, error)
	// Sessions returns those that a filter selects, by name. Where it selects all,
	// execs that belong to no session stand before them, under the name "", where
	// there are any.
	Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error)
	// Execs returns the execs that a filter selects, the newest first.
	Execs(ctx context.Context, f sandbox.ExecFilter) ([]sandbox.ExecRecord, error)
	// Events returns events in the order of their Seq. It holds nothing open
	// between two of them, so that a reader may take its time.
	Events(ctx context.Context, f sandbox.EventFilter) iter.Seq2[sandbox.Event, error]
	// Approval returns one question. Errors: NotFound.
	Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error)
	// Approvals returns the questions that a filter selects, the newest first.
	Approvals(ctx context.Context, f sandbox.ApprovalFilter) ([]sandbox.Approval, error)
	// Readings returns what sandboxes use and have used, the newest sandbox first,
	// and Alerts what rules made of it, the newest first. Both have the owner of
	// their session, whatever they say themselves.
	Readings(ctx context.Context, f sandbox.ReadingFilter) ([]sandbox.Reading, error)
	Alerts(ctx context.Context, f sandbox.AlertFilter) ([]sandbox.Alert, error)
	// Function returns an owner's function, and FunctionFiles its files, where it is
	// still the one that is kept. Errors: NotFound.
	Function(ctx context.Context, owner, name string) (sandbox.Function, error)
	FunctionFiles(ctx context.Context, f sandbox.Function) ([]sandbox.File, error)
	// Functions returns the functions that a filter selects, by name.
	Functions(ctx context.Context, f sandbox.FunctionFilter) ([]sandbox.Function, error)
	// Denied counts the runs that were refused since a time, to the second, by
	// session; under "" are those of one-shots.
	Denied(ctx context.Context, since time.Time) (map[string]int, error)
	// Tokens returns all tokens, by name, and TokenByHash the one with that hash of
	// its secret. Errors: NotFound.
	Tokens(ctx context.Context) ([]sandbox.Token, error)
	TokenByHash(ctx context.Context, hash []byte) (sandbox.Token, error)
	// ToolSpent returns what an owner has called of a tool since its budget began.
	ToolSpent(ctx context.Context, owner, tool string) (sandbox.ToolSpent, error)
	// TakeLetters returns the oldest letters to a receiver that are due now, and
	// puts them off until a time: until then nobody else takes them.
	TakeLetters(ctx context.Context, to string, now, until time.Time, most int) ([]sandbox.Letter, error)
	// Execution returns one execution with its run and its result. Errors: NotFound.
	Execution(ctx context.Context, id sandbox.ID) (sandbox.Execution, error)
	// Executions returns those that a filter selects, the newest first, without
	// their runs and results.
	Executions(ctx context.Context, f sandbox.ExecutionFilter) ([]sandbox.Execution, error)
	// ExecutionOptions returns what was submitted, with its secrets: what is left of
	// it. Errors: NotFound.
	ExecutionOptions(ctx context.Context, id sandbox.ID) (sandbox.ExecutionOptions, error)
	// Queued returns the executions that wait and were submitted after another, the
	// oldest first.
	Queued(ctx context.Context, after int64) ([]sandbox.QueuedExecution, error)
	// Verify checks the chain of events.
	Verify(ctx context.Context) (sandbox.AuditReport, error)
	// Reanchor takes a log whose end nobody can vouch for as it is, by an event
	// that says who does so and why, and returns its number. Until then Verify
	// finds such a log broken. Errors: Conflict for one that has its anchor.
	Reanchor(ctx context.Context, actor, reason string) (int64, error)
	// Prune drops the oldest events beyond what is to be kept, and the oldest
	// questions that are over, and returns how many. A checkpoint and an event
	// stand for the events.
	Prune(ctx context.Context, keep sandbox.Retention) (sandbox.Pruned, error)
	// Sizes tells how much there is of what grows.
	Sizes(ctx context.Context) ([]sandbox.StateSize, error)
	// ID names the state folder.
	ID() string
	Close() error
}

// Genesis is the Prev of the first event of all.
const Genesis = ""

// Hash is the hash of an event: SHA-256 over every field but itself, each with
// its length before it, so that no two events have the same text.
func Hash(e sandbox.Event) string {
	h := sha256.New()
	var n [8]byte
	put := func(b []byte) {
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	binary.BigEndian.PutUint64(n[:], uint64(e.Seq))
	h.Write(n[:])
	for _, s := range []string{
		e.Prev, e.Time.UTC().Format(time.RFC3339Nano), e.Kind, e.Actor, e.Session, string(e.Sandbox), string(e.Exec),
	} {
		put([]byte(s))
	}
	put(e.Data)
	if e.Owner != "" { // so that what was written before there were owners keeps its hash
		put([]byte(e.Owner))
	}
	return hex.EncodeToString(h.Sum(nil))
}
