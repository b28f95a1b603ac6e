package api

import (
	"context"
	"iter"

	"github.com/caisson-dev/caisson/sandbox"
)

// Audit is what happened, in an order that cannot be altered unseen.
type Audit interface {
	// Events returns events in their order.
	Events(ctx context.Context, filter sandbox.EventFilter) iter.Seq2[sandbox.Event, error]
	// VerifyAudit checks the chain of events.
	VerifyAudit(ctx context.Context) (sandbox.AuditReport, error)
	// ReanchorAudit takes a log that has lost its anchor as it is, and returns the
	// number of the event that says so. reason is required. Errors: Conflict for
	// one that has its anchor.
	ReanchorAudit(ctx context.Context, reason string) (int64, error)
	// PruneAudit drops old events and keeps the rest verifiable; and old questions
	// that are over, with their texts.
	PruneAudit(ctx context.Context, keep sandbox.Retention) (sandbox.Pruned, error)
}
