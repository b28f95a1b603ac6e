package server

import (
	"context"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// OfExec names the exec that a call is about.
type OfExec struct {
	InSession
	Exec sandbox.ID `path:"exec" pattern:"^[0-9a-f]{32}$" patternDescription:"32 hex digits"`
}

func execs(s *Server) {
	handle(s, call{"StartExec", post, below("/execs/background"), "Start an exec that goes on by itself", 201}, func(ctx context.Context, in *struct {
		InSession
		Body sandbox.Run
	}) (sandbox.ExecRecord, error) {
		return s.svc.StartExec(ctx, in.Session, in.Body, sandbox.Local{})
	})
	handle(s, call{"ListExecs", get, "/v1/execs", "List execs, the newest first", 0}, func(ctx context.Context, in *struct {
		Selection
		Paging
		ID      sandbox.ID `query:"id"`
		Session string     `query:"session"`
		Running bool       `query:"running" doc:"only those that run"`
	}) (wire.Page[sandbox.ExecRecord], error) {
		list, err := s.svc.ListExecs(ctx, sandbox.ExecFilter{
			ID: in.ID, Session: in.Session, Owner: in.owner(), Labels: in.labels(), Running: in.Running, After: sandbox.ID(in.Cursor), Limit: in.Limit + 1,
		})
		return page(in.Paging, list, func(e sandbox.ExecRecord) string { return string(e.ID) }), err
	})
	handle(s, call{"Processes", get, below("/processes"), "Its execs as its sandboxes know them", 0}, func(ctx context.Context, in *InSession) (wire.Page[api.Process], error) {
		list, err := s.svc.Processes(ctx, in.Session)
		return all(list), err
	})
	handlePartly(s, call{"InputExec", post, below("/execs/{exec}/input"), "Write to an exec's standard input", 0}, func(ctx context.Context, in *struct {
		OfExec
		Body wire.Input
	}) (wire.Taken, error) {
		n, err := s.svc.InputExec(ctx, in.Session, in.Exec, in.Body.Bytes(), in.Body.End)
		return wire.Taken{Bytes: int64(n)}, err
	})
	handleNone(s, call{"SignalExec", post, below("/execs/{exec}/signal"), "Signal an exec", 0}, func(ctx context.Context, in *struct {
		OfExec
		Body wire.Signal
	}) error {
		return s.svc.SignalExec(ctx, in.Session, in.Exec, in.Body.Signal, in.Body.All)
	})
	handleNone(s, call{"KillExec", post, below("/execs/{exec}/kill"), "End an exec with everything that it started", 0}, func(ctx context.Context, in *OfExec) error {
		return s.svc.KillExec(ctx, in.Session, in.Exec)
	})
	handleNone(s, call{"ResizeExec", post, below("/execs/{exec}/resize"), "Set the size of its terminal", 0}, func(ctx context.Context, in *struct {
		OfExec
		Body wire.Size
	}) error {
		return s.svc.ResizeExec(ctx, in.Session, in.Exec, in.Body.Rows, in.Body.Cols)
	})
}
