// Package service implements [api.Service] by joining the manager and the
// images. It is the one place that joins them, and knows no adapter.
package service

import (
	"context"
	"log/slog"
	"sync"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// Config joins the parts. Manager, Images, Audit, Desk and Check are required.
type Config struct {
	Manager *manager.Manager
	Images  Images
	Audit   Log
	Desk    Desk
	// Check judges a text without running it.
	Check func(ctx context.Context, language string, code []byte, file string) (sandbox.Decision, error)
	// Bridge has the records of changes; the manager's Recorder is the same
	// one. nil: nothing is recorded.
	Bridge *bridge.Bridge
	Doctor Doctor       // nil: nobody can be asked
	Log    *slog.Logger // nil discards
}

// Service is caisson in this process. Its owner closes it.
type Service struct {
	cfg   Config
	sweep sync.Once
	tasks sync.WaitGroup
}

var _ api.Service = (*Service)(nil)

// New checks a Config and starts nothing. Errors: Invalid.
func New(cfg Config) (*Service, error) {
	if cfg.Manager == nil || cfg.Images == nil || cfg.Audit == nil || cfg.Desk == nil || cfg.Check == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "service: manager, images, audit, desk and check are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{cfg: cfg}, nil
}

// Run runs one exec in a sandbox of its own. The first run of a process also
// removes what dead processes left, beside its own work.
func (s *Service) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	s.tidy(ctx, true)
	return s.cfg.Manager.Run(ctx, run, streams)
}

// Sweep removes what dead processes left behind.
func (s *Service) Sweep(ctx context.Context, opts api.SweepOptions) ([]api.Orphan, error) {
	found, err := s.cfg.Manager.Sweep(ctx, opts.DryRun, opts.Kept)
	if err != nil {
		return nil, err
	}
	orphans := make([]api.Orphan, 0, len(found))
	for _, o := range found {
		a := api.Orphan{Kind: o.Kind, ID: o.ID, Name: o.Name, Created: o.Created, Removed: o.Removed}
		if o.Err != nil {
			a.Error = o.Err.Error()
		}
		orphans = append(orphans, a)
	}
	return orphans, nil
}

// Close destroys what is open and waits for the service's own work. It is
// idempotent.
func (s *Service) Close() error {
	err := s.cfg.Manager.Close()
	s.tasks.Wait()
	return err
}
