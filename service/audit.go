package service

import (
	"context"
	"iter"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// Log is what the service needs of the audit log.
type Log interface {
	Events(ctx context.Context, filter sandbox.EventFilter) iter.Seq2[sandbox.Event, error]
	Verify(ctx context.Context) (sandbox.AuditReport, error)
	Reanchor(ctx context.Context, actor, reason string) (int64, error)
	Prune(ctx context.Context, keep sandbox.Retention) (sandbox.Pruned, error)
	Sizes(ctx context.Context) ([]sandbox.StateSize, error)
}

// Events returns the audit's events in their order.
func (s *Service) Events(ctx context.Context, f sandbox.EventFilter) iter.Seq2[sandbox.Event, error] {
	return func(yield func(sandbox.Event, error) bool) {
		who, of, err := session(ctx, reads, f.Session)
		if err == nil {
			f.Owner, err = own(who, f.Owner)
		}
		if err == nil {
			err = f.Check()
		}
		if err != nil {
			yield(sandbox.Event{}, err)
			return
		}
		f.Session = of
		for e, err := range s.cfg.Audit.Events(ctx, f) {
			e.Session = who.Shown(e.Session)
			if !yield(e, err) {
				return
			}
		}
	}
}

// VerifyAudit checks the chain of events.
func (s *Service) VerifyAudit(ctx context.Context) (sandbox.AuditReport, error) {
	if _, err := may(ctx, governs); err != nil {
		return sandbox.AuditReport{}, err
	}
	return s.cfg.Audit.Verify(ctx)
}

// ReanchorAudit takes a log that has lost its anchor as it is.
func (s *Service) ReanchorAudit(ctx context.Context, reason string) (int64, error) {
	if _, err := may(ctx, governs); err != nil {
		return 0, err
	}
	if strings.TrimSpace(reason) == "" {
		return 0, sandbox.Errorf(sandbox.Invalid, "no reason is given").WithHint("say why the anchor is gone: it stands in the audit")
	}
	return s.cfg.Audit.Reanchor(ctx, s.actor(ctx), reason)
}

// StateSizes tells how much there is of what grows.
func (s *Service) StateSizes(ctx context.Context) ([]sandbox.StateSize, error) {
	if _, err := may(ctx, governs); err != nil {
		return nil, err
	}
	return s.cfg.Audit.Sizes(ctx)
}

// PruneAudit drops old events and keeps the rest verifiable; and old questions.
func (s *Service) PruneAudit(ctx context.Context, keep sandbox.Retention) (sandbox.Pruned, error) {
	if _, err := may(ctx, governs); err != nil {
		return sandbox.Pruned{}, err
	}
	return s.cfg.Audit.Prune(ctx, keep)
}
