package service

import (
	"context"
	"iter"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/sandbox"
)

// book opens a session's book, by its name as it is kept. Errors: NotFound,
// Unsupported.
func (s *Service) book(ctx context.Context, session string) (sandbox.SessionView, *bridge.Book, error) {
	if s.cfg.Bridge == nil {
		return sandbox.SessionView{}, nil, sandbox.Errorf(sandbox.Unsupported, "this caisson records no changes")
	}
	v, err := s.cfg.Manager.Session(ctx, session)
	if err != nil {
		return v, nil, err
	}
	b, err := s.cfg.Bridge.Book(ctx, v.ID, false)
	return v, b, err
}

// recorded opens a session's book once what was touched is in it, where that is asked
// for.
func (s *Service) recorded(ctx context.Context, of string, o api.ChangesOptions) (*bridge.Book, error) {
	who, of, err := session(ctx, reads, of)
	if err != nil {
		return nil, err
	}
	v, b, err := s.book(ctx, of)
	if err != nil || o.Recorded || len(v.Sandboxes) == 0 {
		return b, err
	}
	release, err := s.admitFiles(ctx, who, of)
	if err != nil {
		return nil, err
	}
	defer release()
	return b, s.cfg.Manager.RecordSession(ctx, of, o.Exact)
}

// Changes returns the records of a session.
func (s *Service) Changes(ctx context.Context, of string, o api.ChangesOptions) ([]sandbox.ChangeRecord, error) {
	b, err := s.recorded(ctx, of, o)
	if err != nil {
		return nil, err
	}
	records, err := b.Ledger.Records(ctx, bridge.RecordFilter{Exec: o.Exec, Limit: o.Limit})
	if o.Exec != "" {
		records = bridge.OwnShare(records, o.Exec)
	}
	for i := range records {
		records[i].Changes = bridge.Shown(records[i].Changes)
	}
	return records, err
}

// Diff reads changes as differences.
func (s *Service) Diff(ctx context.Context, of string, o api.ChangesOptions) ([]sandbox.FileDiff, error) {
	b, err := s.recorded(ctx, of, o)
	if err != nil {
		return nil, err
	}
	records, err := b.Ledger.Records(ctx, bridge.RecordFilter{Exec: o.Exec, Limit: o.Limit})
	if err != nil {
		return nil, err
	}
	if o.Exec != "" {
		records = bridge.OwnShare(records, o.Exec)
	}
	changes := bridge.Shown(bridge.Merge(records))
	if !o.Names {
		return b.Diffs(ctx, changes)
	}
	diffs := make([]sandbox.FileDiff, len(changes))
	for i, c := range changes {
		diffs[i].FileChange = c
	}
	return diffs, nil
}

// Undo takes back what an exec changed.
func (s *Service) Undo(ctx context.Context, name string, o api.UndoOptions) (api.Undone, error) {
	who, of, err := session(ctx, uses, name)
	if err != nil {
		return api.Undone{}, err
	}
	if s.cfg.Bridge == nil {
		return api.Undone{}, sandbox.Errorf(sandbox.Unsupported, "this caisson records no changes")
	}
	if !o.Exec.Valid() {
		return api.Undone{}, sandbox.Errorf(sandbox.Invalid, "no exec").WithHint("name it with --exec; see: caisson changes %s", name)
	}
	if err := s.cfg.Manager.Quiet(ctx, of); err != nil {
		return api.Undone{}, err
	}
	release, err := s.admitFiles(ctx, who, of)
	if err != nil {
		return api.Undone{}, err
	}
	defer release()
	v, tree, err := s.cfg.Manager.Tree(ctx, of)
	if err != nil {
		return api.Undone{}, err
	}
	u, err := s.cfg.Bridge.Undo(ctx, v.ID, of, tree, bridge.UndoOptions{Exec: o.Exec, Since: o.Since, Force: o.Force})
	u.Record.Changes = bridge.Shown(u.Record.Changes)
	if u.Record.ID != 0 {
		if err2 := s.cfg.Manager.Undone(ctx, of, u.Record); err == nil {
			err = err2
		}
	}
	return api.Undone{Record: u.Record, Skipped: u.Skipped}, err
}

// Feed returns changes as they are recorded.
func (s *Service) Feed(ctx context.Context) iter.Seq[sandbox.ChangeNews] {
	who, err := may(ctx, reads)
	if s.cfg.Bridge == nil || s.cfg.Bridge.Feed() == nil || err != nil {
		return func(func(sandbox.ChangeNews) bool) { <-ctx.Done() }
	}
	all := s.cfg.Bridge.Feed().Subscribe(ctx)
	return func(yield func(sandbox.ChangeNews) bool) {
		for news := range all {
			switch {
			case who.Sees(sandbox.SessionOwner(news.Session)):
				news.Session = who.Shown(news.Session)
			case news.Lost == 0:
				continue
			default:
				news = sandbox.ChangeNews{Lost: news.Lost} // some of these may have been the caller's
			}
			if !yield(news) {
				return
			}
		}
	}
}
