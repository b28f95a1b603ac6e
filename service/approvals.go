package service

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// Desk is what the service needs of the approvals.
type Desk interface {
	Approvals(ctx context.Context, filter sandbox.ApprovalFilter) ([]sandbox.Approval, error)
	Answer(ctx context.Context, answer sandbox.ApprovalAnswer) (sandbox.Approval, error)
	Revoke(ctx context.Context, id sandbox.ID, by string) (sandbox.Approval, error)
	Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error)
}

// Approvals lists questions, the newest first.
func (s *Service) Approvals(ctx context.Context, f sandbox.ApprovalFilter) ([]sandbox.Approval, error) {
	return s.cfg.Desk.Approvals(ctx, f)
}

// Approval returns one question.
func (s *Service) Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error) {
	return s.cfg.Desk.Approval(ctx, id)
}

// AnswerApproval answers a question; the first answer wins.
func (s *Service) AnswerApproval(ctx context.Context, a sandbox.ApprovalAnswer) (sandbox.Approval, error) {
	return s.cfg.Desk.Answer(ctx, a)
}

// RevokeApproval takes back an approval that still holds.
func (s *Service) RevokeApproval(ctx context.Context, id sandbox.ID, by string) (sandbox.Approval, error) {
	return s.cfg.Desk.Revoke(ctx, id, by)
}

// CheckCode judges a text without running it.
func (s *Service) CheckCode(ctx context.Context, language string, code []byte, file string) (sandbox.Decision, error) {
	return s.cfg.Check(ctx, language, code, file)
}
