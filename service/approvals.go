package service

import (
	"cmp"
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
	who, err := may(ctx, reads)
	if err != nil {
		return nil, err
	}
	if f.Owner, err = own(who, f.Owner); err != nil {
		return nil, err
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	list, err := s.cfg.Desk.Approvals(ctx, f)
	for i := range list {
		list[i].Session = who.Shown(list[i].Session)
	}
	return list, err
}

// Approval returns one question.
func (s *Service) Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error) {
	return s.approval(ctx, reads, id)
}

// AnswerApproval answers a question; the first answer wins.
func (s *Service) AnswerApproval(ctx context.Context, a sandbox.ApprovalAnswer) (sandbox.Approval, error) {
	asked, err := s.approval(ctx, answers, a.ID)
	if err != nil {
		return asked, err
	}
	if who := sandbox.CallerFrom(ctx); who.Name != "" {
		if s.cfg.OthersApprove && who.Name == asked.Actor && a.Approve {
			return asked, sandbox.Errorf(sandbox.Denied, "who asks may not approve").WithHint("have another answer, who may")
		}
		a.By = who.Name
	}
	answered, err := s.cfg.Desk.Answer(ctx, a)
	answered.Session = asked.Session
	return answered, err
}

// RevokeApproval takes back an approval that still holds.
func (s *Service) RevokeApproval(ctx context.Context, id sandbox.ID, by string) (sandbox.Approval, error) {
	asked, err := s.approval(ctx, answers, id)
	if err != nil {
		return asked, err
	}
	revoked, err := s.cfg.Desk.Revoke(ctx, id, cmp.Or(sandbox.CallerFrom(ctx).Name, by))
	revoked.Session = asked.Session
	return revoked, err
}

// approval is a question that the caller sees.
func (s *Service) approval(ctx context.Context, a act, id sandbox.ID) (sandbox.Approval, error) {
	who, err := may(ctx, a)
	if err != nil {
		return sandbox.Approval{}, err
	}
	asked, err := s.cfg.Desk.Approval(ctx, id)
	if err == nil && !who.Sees(asked.Owner) {
		return sandbox.Approval{}, sandbox.Errorf(sandbox.NotFound, "no question %s", id.Short()).WithHint("see those there are with: caisson approvals list")
	}
	asked.Session = who.Shown(asked.Session)
	return asked, err
}

// CheckCode judges a text without running it.
func (s *Service) CheckCode(ctx context.Context, language string, code []byte, file string) (sandbox.Decision, error) {
	if _, err := may(ctx, reads); err != nil {
		return sandbox.Decision{}, err
	}
	return s.cfg.Check(ctx, language, code, file)
}
