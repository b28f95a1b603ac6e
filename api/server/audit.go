package server

import (
	"context"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// WhichEvents selects events of the audit.
type WhichEvents struct {
	Selection
	Session string     `query:"session"`
	Exec    sandbox.ID `query:"exec" pattern:"^([0-9a-f]{32})?$" patternDescription:"32 hex digits"`
	Kind    []string   `query:"kind,explode" doc:"such as exec.ended"`
	Since   time.Time  `query:"since"`
	Until   time.Time  `query:"until"`
}

func (w WhichEvents) filter() sandbox.EventFilter {
	return sandbox.EventFilter{Since: w.Since, Until: w.Until, Session: w.Session, Exec: w.Exec, Kinds: w.Kind, Owner: w.owner(), Labels: w.labels()}
}

// seqOf reads a cursor, or an event's id.
func seqOf(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, sandbox.Errorf(sandbox.Invalid, "%s: %q is no event's number", name, text).WithHint("give the next of the page before, or leave it out")
	}
	return n, nil
}

func audit(s *Server) {
	handle(s, call{"Events", get, "/v1/audit", "Events of the audit, in their order", 0}, func(ctx context.Context, in *struct {
		WhichEvents
		Paging
		Newest bool `query:"newest" doc:"the last of them alone"`
	}) (wire.Page[sandbox.Event], error) {
		f := in.filter()
		var err error
		if f.After, err = seqOf("query.cursor", in.Cursor); err != nil {
			return wire.Page[sandbox.Event]{}, err
		}
		f.Limit, f.Newest = in.Limit+1, in.Newest
		var list []sandbox.Event
		for e, err := range s.svc.Events(ctx, f) {
			if err != nil {
				return wire.Page[sandbox.Event]{}, err
			}
			list = append(list, e)
		}
		return page(in.Paging, list, func(e sandbox.Event) string { return strconv.FormatInt(e.Seq, 10) }), nil
	})
	handle(s, call{"VerifyAudit", get, "/v1/audit/check", "Check the chain of events", 0}, func(ctx context.Context, _ *nothing) (sandbox.AuditReport, error) {
		return s.svc.VerifyAudit(ctx)
	})
	handle(s, call{"ReanchorAudit", post, "/v1/audit/reanchor", "Take a log that has lost its anchor as it is", 0}, func(ctx context.Context, in *struct{ Body wire.Reason }) (wire.Seq, error) {
		n, err := s.svc.ReanchorAudit(ctx, in.Body.Reason)
		return wire.Seq{Seq: n}, err
	})
	handle(s, call{"PruneAudit", post, "/v1/audit/prune", "Drop old events and questions", 0}, func(ctx context.Context, in *struct{ Body sandbox.Retention }) (sandbox.Pruned, error) {
		return s.svc.PruneAudit(ctx, in.Body)
	})
}

var _ huma.Resolver = (*WhichEvents)(nil)
