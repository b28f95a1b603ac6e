// Package service implements [api.Service] by joining the manager and the
// images. It is the one place that joins them, and knows no adapter.
package service

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// Config joins the parts. Manager, Images, Audit, Desk, Check, Findings, Metrics
// and Executions are required.
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
	Actor  string // who asks, for the audit
	Doctor Doctor // nil: nobody can be asked
	// Findings is what monitors keep; required. Watch is this process's own; nil
	// has no news.
	Findings Findings
	Watch    Watch
	Metrics  Metrics // required
	// Executions are carried out by whoever joins the parts; required.
	Executions Executions
	Log        *slog.Logger // nil discards
	// Functions makes what keeps and calls functions, which run by the service's own
	// roles. nil: there are none.
	Functions func(s *Service) (Functions, error)
	// Folders are folders of the host that a session may have as its workspace, by
	// the name that it is asked for with.
	Folders map[string]string
	// Runtimes are those that callers who are no admins may ask for by name, beside
	// the default: some isolate less.
	Runtimes []string
	// Served says that this is a server, which never chooses a runtime by what
	// happens to be there.
	Served bool
	// Quotas bound what owners have and use. The zero value does not.
	Quotas sandbox.Quotas
	// Keys has the tokens; nil has none.
	Keys Keys
	// OthersApprove has what a caller with a name asks be approved by another: its
	// own answers, and its way to approve everything, are refused.
	OthersApprove bool
}

// Service is caisson in this process. Its owner closes it.
type Service struct {
	cfg   Config
	sweep sync.Once

	functions Functions // nil: there are none
	tasks     sync.WaitGroup

	quotas *quotas
	ending chan struct{} // full while an idle sandbox is ended for those who wait
}

var _ api.Service = (*Service)(nil)

// New checks a Config and starts nothing. Errors: Invalid.
func New(cfg Config) (*Service, error) {
	if cfg.Manager == nil || cfg.Images == nil || cfg.Audit == nil || cfg.Desk == nil || cfg.Check == nil || cfg.Findings == nil || cfg.Metrics == nil || cfg.Executions == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "service: manager, images, audit, desk, check, findings, metrics and executions are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{cfg: cfg, quotas: newQuotas(), ending: make(chan struct{}, 1)}
	if cfg.Functions != nil {
		var err error
		if s.functions, err = cfg.Functions(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Sweep removes what dead processes left behind.
func (s *Service) Sweep(ctx context.Context, opts api.SweepOptions) ([]sandbox.Orphan, error) {
	if _, err := may(ctx, governs); err != nil {
		return nil, err
	}
	found, unlisted := s.cfg.Manager.Sweep(ctx, opts.DryRun, opts.Kept)
	strays, err := s.strays(ctx, opts.DryRun)
	return append(found, strays...), errors.Join(unlisted, err)
}

// PoolShelves says which sandboxes are kept ready.
func (s *Service) PoolShelves(ctx context.Context) ([]sandbox.PoolShelf, error) {
	if _, err := may(ctx, governs); err != nil {
		return nil, err
	}
	return s.cfg.Manager.Shelves(ctx)
}

// strays removes what is kept of sessions that are gone: who removed one may have
// died before all of it went.
func (s *Service) strays(ctx context.Context, dry bool) ([]sandbox.Orphan, error) {
	if s.cfg.Bridge == nil {
		return nil, nil
	}
	// What is listed first is not of a session that is made meanwhile.
	strays, err := s.cfg.Bridge.Strays()
	if err != nil || len(strays) == 0 {
		return nil, err
	}
	views, err := s.cfg.Manager.Sessions(ctx, sandbox.SessionFilter{})
	if err != nil {
		return nil, err
	}
	known := map[sandbox.ID]bool{}
	for _, v := range views {
		known[v.ID] = true
	}
	var orphans []sandbox.Orphan
	for _, f := range strays {
		if known[f.Session] {
			continue
		}
		o := sandbox.Orphan{Kind: "changes", ID: f.Session, Name: "of session " + f.Session.Short(), Created: f.Touched}
		if !dry {
			o.Done(s.cfg.Bridge.Forget(f.Session))
		}
		orphans = append(orphans, o)
	}
	return orphans, nil
}

// actor is who asks, for the audit.
func (s *Service) actor(ctx context.Context) string {
	return cmp.Or(sandbox.CallerFrom(ctx).Name, s.cfg.Actor)
}

// Close destroys what is open and waits for the service's own work. It is
// idempotent.
func (s *Service) Close() error {
	var err error
	if s.functions != nil {
		err = s.functions.Close()
	}
	err = errors.Join(err, s.cfg.Manager.Close())
	s.tasks.Wait()
	return err
}
