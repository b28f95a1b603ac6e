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
	// durable. Events get their place in the chain.
	Apply(ctx context.Context, c sandbox.Change) error
	// Session returns one session with its sandboxes and execs.
	Session(ctx context.Context, name string) (sandbox.SessionView, error)
	// Sessions returns all of them, by name. Execs that belong to no session
	// stand under the name "", where there are any.
	Sessions(ctx context.Context) ([]sandbox.SessionView, error)
	// Events returns events in the order of their Seq. It holds nothing open
	// between two of them, so that a reader may take its time.
	Events(ctx context.Context, f sandbox.EventFilter) iter.Seq2[sandbox.Event, error]
	// Approval returns one question. Errors: NotFound.
	Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error)
	// Approvals returns the questions that a filter selects, the newest first.
	Approvals(ctx context.Context, f sandbox.ApprovalFilter) ([]sandbox.Approval, error)
	// Verify checks the chain of events.
	Verify(ctx context.Context) (sandbox.AuditReport, error)
	// Prune drops the oldest events beyond what is to be kept, and returns how
	// many. A checkpoint and an event stand for them.
	Prune(ctx context.Context, keep sandbox.Retention) (int64, error)
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
	return hex.EncodeToString(h.Sum(nil))
}
