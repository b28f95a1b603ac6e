package api

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// Approvals are questions that policy asks about runs, and their answers. Who
// waits for one, and who answers it, may be different processes.
type Approvals interface {
	// Approvals lists questions, the newest first.
	Approvals(ctx context.Context, filter sandbox.ApprovalFilter) ([]sandbox.Approval, error)
	// Approval returns one. Errors: NotFound.
	Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error)
	// AnswerApproval answers a question. Of two answers the first wins; the
	// second is a Conflict that says so. Errors: NotFound too.
	AnswerApproval(ctx context.Context, answer sandbox.ApprovalAnswer) (sandbox.Approval, error)
	// RevokeApproval takes back one that still holds. Errors: NotFound, Conflict.
	RevokeApproval(ctx context.Context, id sandbox.ID, by string) (sandbox.Approval, error)
}

// Policy judges.
type Policy interface {
	// CheckCode says what policy thinks of a text that would run in the default
	// sandbox, without running it. file names it in findings.
	CheckCode(ctx context.Context, language string, code []byte, file string) (sandbox.Decision, error)
}
