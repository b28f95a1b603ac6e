package server

import (
	"context"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// OfApproval names the question that a call is about.
type OfApproval struct {
	Approval sandbox.ID `path:"approval" pattern:"^[0-9a-f]{32}$" patternDescription:"32 hex digits"`
}

func policy(s *Server) {
	handle(s, call{"CheckCode", post, "/v1/policy/check", "Judge a text without running it", 0}, func(ctx context.Context, in *struct{ Body wire.Check }) (sandbox.Decision, error) {
		return s.svc.CheckCode(ctx, in.Body.Language, in.Body.Text(), in.Body.File)
	})
	handle(s, call{"Approvals", get, "/v1/approvals", "List questions, the newest first", 0}, func(ctx context.Context, in *struct {
		Selection
		Paging
		State  []sandbox.ApprovalState `query:"state,explode"`
		Digest string                  `query:"digest"`
	}) (wire.Page[sandbox.Approval], error) {
		list, err := s.svc.Approvals(ctx, sandbox.ApprovalFilter{
			Digest: in.Digest, States: in.State, Owner: in.owner(), Labels: in.labels(), After: sandbox.ID(in.Cursor), Limit: in.Limit + 1,
		})
		return page(in.Paging, list, func(a sandbox.Approval) string { return string(a.ID) }), err
	})
	handle(s, call{"Approval", get, "/v1/approvals/{approval}", "One question, whole", 0}, func(ctx context.Context, in *OfApproval) (sandbox.Approval, error) {
		return s.svc.Approval(ctx, in.Approval)
	})
	handle(s, call{"AnswerApproval", post, "/v1/approvals/{approval}/answer", "Answer a question; the first answer wins", 0}, func(ctx context.Context, in *struct {
		OfApproval
		Body wire.Answer
	}) (sandbox.Approval, error) {
		return s.svc.AnswerApproval(ctx, in.Body.To(in.Approval))
	})
	handle(s, call{"RevokeApproval", post, "/v1/approvals/{approval}/revoke", "Take back an approval that still holds", 0}, func(ctx context.Context, in *struct {
		OfApproval
		Body wire.By `required:"false"`
	}) (sandbox.Approval, error) {
		return s.svc.RevokeApproval(ctx, in.Approval, in.Body.By)
	})
}
