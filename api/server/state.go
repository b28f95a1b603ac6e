package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// state are the calls about what is left behind, what is used, and what is well.
func state(s *Server) {
	handlePartly(s, call{"Sweep", post, "/v1/sweep", "Remove what dead processes left behind", 0}, func(ctx context.Context, in *struct {
		Body api.SweepOptions `required:"false"`
	}) (wire.Page[sandbox.Orphan], error) {
		list, err := s.svc.Sweep(ctx, in.Body)
		return all(list), err
	})
	handle(s, call{"StateSizes", get, "/v1/state", "How much there is of what grows", 0}, func(ctx context.Context, _ *nothing) (wire.Page[sandbox.StateSize], error) {
		list, err := s.svc.StateSizes(ctx)
		return all(list), err
	})
	handle(s, call{"PoolShelves", get, "/v1/pool", "Which sandboxes are kept ready", 0}, func(ctx context.Context, _ *nothing) (wire.Page[sandbox.PoolShelf], error) {
		list, err := s.svc.PoolShelves(ctx)
		return all(list), err
	})
	handle(s, call{"Doctor", get, "/v1/doctor", "Look at what caisson stands on", 0}, func(ctx context.Context, _ *nothing) (wire.Page[api.Check], error) {
		list, err := s.svc.Doctor(ctx)
		return all(list), err
	})
	monitoring(s)
}

func monitoring(s *Server) {
	handle(s, call{"Readings", get, "/v1/readings", "What sandboxes use and have used, the newest sample first", 0}, func(ctx context.Context, in *struct {
		Selection
		Paging
		Live    bool      `query:"live" doc:"only of sandboxes that live"`
		Since   time.Time `query:"since"`
		Session string    `query:"session"`
	}) (wire.Page[sandbox.Reading], error) {
		list, err := s.svc.Readings(ctx, sandbox.ReadingFilter{
			Live: in.Live, Since: in.Since, Session: in.Session, Owner: in.owner(), Labels: in.labels(), After: sandbox.ID(in.Cursor), Limit: in.Limit + 1,
		})
		return page(in.Paging, list, func(r sandbox.Reading) string { return string(r.Sandbox) }), err
	})
	handle(s, call{"Alerts", get, "/v1/alerts", "List alerts, the newest first", 0}, func(ctx context.Context, in *struct {
		Selection
		Paging
		Firing  bool   `query:"firing" doc:"only those that are not resolved"`
		Session string `query:"session"`
		Rule    string `query:"rule"`
	}) (wire.Page[sandbox.Alert], error) {
		list, err := s.svc.Alerts(ctx, sandbox.AlertFilter{
			Firing: in.Firing, Session: in.Session, Rule: in.Rule, Owner: in.owner(), Labels: in.labels(), After: sandbox.ID(in.Cursor), Limit: in.Limit + 1,
		})
		return page(in.Paging, list, func(a sandbox.Alert) string { return string(a.ID) }), err
	})
	handleRaw(s, call{"AlertNews", get, "/v1/alerts/news", "Alerts as they fire and are resolved, as events", 0}, map[string]*huma.Schema{typeEvents: eventSchema()}, func(_ *nothing, w http.ResponseWriter, r *http.Request) error {
		r, stop := s.tillEnd(r)
		defer stop()
		return sendAll(s, w, r, wire.EventAlert, nil, sure(s.svc.AlertNews(r.Context())))
	})
	handleRaw(s, call{"Metrics", get, "/metrics", "What is counted, in Prometheus's text format", 0}, map[string]*huma.Schema{"text/plain": {Type: huma.TypeString}}, func(_ *nothing, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		return s.svc.Metrics(r.Context(), w)
	})
}
