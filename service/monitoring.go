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
	who, of, err := session(ctx, reads, f.Session)
	if err != nil {
		return nil, err
	}
	f.Session = of
	if f.Owner, err = own(who, f.Owner); err != nil {
		return nil, err
	}
	if f.Live {
		if err := s.cfg.Manager.Reach(asLocal(ctx)); err != nil {
			return nil, err
		}
	}
	list, err := s.cfg.Findings.Readings(ctx, f)
	for i := range list {
		list[i].Session = who.Shown(list[i].Session)
	}
	return list, err
}

// Alerts returns alerts, the newest first.
func (s *Service) Alerts(ctx context.Context, f sandbox.AlertFilter) ([]sandbox.Alert, error) {
	who, of, err := session(ctx, reads, f.Session)
	if err != nil {
		return nil, err
	}
	f.Session = of
	if f.Owner, err = own(who, f.Owner); err != nil {
		return nil, err
	}
	list, err := s.cfg.Findings.Alerts(ctx, f)
	for i := range list {
		list[i].Session = who.Shown(list[i].Session)
	}
	return list, err
}

// Metrics writes what is counted of all processes.
func (s *Service) Metrics(ctx context.Context, w io.Writer) error {
	if _, err := may(ctx, governs); err != nil {
		return err
	}
	return s.cfg.Metrics.Write(ctx, w)
}

// AlertNews returns alerts of this process as they fire and are resolved.
func (s *Service) AlertNews(ctx context.Context) iter.Seq[sandbox.AlertNews] {
	who, err := may(ctx, reads)
	if s.cfg.Watch == nil || err != nil {
		return func(func(sandbox.AlertNews) bool) {}
	}
	all := s.cfg.Watch.Subscribe(ctx)
	return func(yield func(sandbox.AlertNews) bool) {
		for news := range all {
			news.Session = who.Shown(news.Session)
			if (who.Sees(news.Owner) || news.ID == "") && !yield(news) {
				return
			}
		}
	}
}
