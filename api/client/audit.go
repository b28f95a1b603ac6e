package client

import (
	"context"
	"iter"
	"strconv"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Events implements [api.Audit]. It reads a page at a time.
func (c *Client) Events(ctx context.Context, f sandbox.EventFilter) iter.Seq2[sandbox.Event, error] {
	return func(yield func(sandbox.Event, error) bool) {
		q := selection(f.Owner, f.Labels)
		setString(q, "session", f.Session)
		setString(q, "exec", string(f.Exec))
		setTime(q, "since", f.Since)
		setTime(q, "until", f.Until)
		for _, kind := range f.Kinds {
			q.Add("kind", kind)
		}
		if f.Newest {
			q.Set("newest", "true")
		}
		cursor, left := strconv.FormatInt(f.After, 10), f.Limit
		for {
			size := wire.MaxPage
			if f.Limit > 0 {
				size = min(size, left)
			}
			q.Set("cursor", cursor)
			q.Set("limit", strconv.Itoa(size))
			p, err := call[wire.Page[sandbox.Event]](ctx, c, request{method: get, path: "/v1/audit", query: q})
			if err != nil {
				yield(sandbox.Event{}, err)
				return
			}
			for _, e := range p.Items {
				if !yield(e, nil) {
					return
				}
			}
			left -= len(p.Items)
			if cursor = p.Next; cursor == "" || f.Limit > 0 && left <= 0 {
				return
			}
		}
	}
}

// VerifyAudit implements [api.Audit].
func (c *Client) VerifyAudit(ctx context.Context) (sandbox.AuditReport, error) {
	return call[sandbox.AuditReport](ctx, c, request{method: get, path: "/v1/audit/check"})
}

// ReanchorAudit implements [api.Audit].
func (c *Client) ReanchorAudit(ctx context.Context, reason string) (int64, error) {
	s, err := call[wire.Seq](ctx, c, request{method: post, path: "/v1/audit/reanchor", body: wire.Reason{Reason: reason}})
	return s.Seq, err
}

// PruneAudit implements [api.Audit].
func (c *Client) PruneAudit(ctx context.Context, keep sandbox.Retention) (sandbox.Pruned, error) {
	return call[sandbox.Pruned](ctx, c, request{method: post, path: "/v1/audit/prune", body: keep})
}
