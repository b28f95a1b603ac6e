package service

import (
	"context"
	"io"
	"iter"

	"github.com/caisson-dev/caisson/sandbox"
)

// Watch is what the service needs of the monitor.
type Watch interface {
	Subscribe(ctx context.Context) iter.Seq[sandbox.AlertNews]
}

// Findings are where the monitors of all processes keep what they find.
type Findings interface {
	Readings(ctx context.Context, filter sandbox.ReadingFilter) ([]sandbox.Reading, error)
	Alerts(ctx context.Context, filter sandbox.AlertFilter) ([]sandbox.Alert, error)
}

// Metrics write what is counted.
type Metrics interface {
	Write(ctx context.Context, w io.Writer) error
}

// Readings returns what sandboxes use and have used. For those that live it
// connects to the sandboxes of sessions first.
func (s *Service) Readings(ctx context.Context, f sandbox.ReadingFilter) ([]sandbox.Reading, error) {
	if f.Live {
		if err := s.cfg.Manager.Reach(ctx); err != nil {
			return nil, err
		}
	}
	return s.cfg.Findings.Readings(ctx, f)
}

// Alerts returns alerts, the newest first.
func (s *Service) Alerts(ctx context.Context, f sandbox.AlertFilter) ([]sandbox.Alert, error) {
	return s.cfg.Findings.Alerts(ctx, f)
}

// Metrics writes what is counted of all processes.
func (s *Service) Metrics(ctx context.Context, w io.Writer) error { return s.cfg.Metrics.Write(ctx, w) }

// AlertNews returns alerts of this process as they fire and are resolved.
func (s *Service) AlertNews(ctx context.Context) iter.Seq[sandbox.AlertNews] {
	if s.cfg.Watch == nil {
		return func(func(sandbox.AlertNews) bool) {}
	}
	return s.cfg.Watch.Subscribe(ctx)
}
