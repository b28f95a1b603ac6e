package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// whichChanges selects changes, as [api.ChangesOptions] has it.
type whichChanges struct {
	InSession
	Exec     string `query:"exec" pattern:"^([0-9a-f]{32})?$" patternDescription:"32 hex digits" doc:"only what this exec did"`
	Limit    int    `query:"limit" minimum:"0" doc:"records, the newest"`
	Exact    bool   `query:"exact" doc:"walk the workspace first, whatever the watches say"`
	Recorded bool   `query:"recorded" doc:"only what is recorded already, without a look"`
	Names    bool   `query:"names" doc:"leave the texts out of differences"`
}

func (w whichChanges) options() api.ChangesOptions {
	return api.ChangesOptions{Exec: sandbox.ID(w.Exec), Limit: w.Limit, Exact: w.Exact, Recorded: w.Recorded, Names: w.Names}
}

func changes(s *Server) {
	handle(s, call{"Changes", get, below("/changes"), "What execs changed, the oldest first", 0}, func(ctx context.Context, in *whichChanges) (wire.Page[sandbox.ChangeRecord], error) {
		list, err := s.svc.Changes(ctx, in.Session, in.options())
		return all(list), err
	})
	handle(s, call{"Diff", get, below("/diff"), "Changes as differences of texts", 0}, func(ctx context.Context, in *whichChanges) (wire.Page[sandbox.FileDiff], error) {
		list, err := s.svc.Diff(ctx, in.Session, in.options())
		return all(list), err
	})
	handlePartly(s, call{"Undo", post, below("/undo"), "Take back what an exec changed", 0}, func(ctx context.Context, in *struct {
		InSession
		Body api.UndoOptions
	}) (api.Undone, error) {
		return s.svc.Undo(ctx, in.Session, in.Body)
	})
	handleRaw(s, call{"Feed", get, "/v1/changes", "Changes of all sessions as they are recorded, as events", 0}, map[string]*huma.Schema{typeEvents: eventSchema()}, func(_ *nothing, w http.ResponseWriter, r *http.Request) error {
		r, stop := s.tillEnd(r)
		defer stop()
		return sendAll(s, w, r, wire.EventChange, nil, sure(s.svc.Feed(r.Context())))
	})
}
