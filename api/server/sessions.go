package server

import (
	"context"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// InSession names the session that a call is about.
type InSession struct {
	Session string `path:"session" maxLength:"255"`
}

// below is a call's path below /v1/sessions/NAME.
func below(path string) string { return "/v1/sessions/{session}" + path }

func sessions(s *Server) {
	handle(s, call{"CreateSession", post, "/v1/sessions", "Make a session", 201}, func(ctx context.Context, in *struct{ Body api.SessionOptions }) (sandbox.Session, error) {
		return s.svc.CreateSession(ctx, in.Body, sandbox.Local{})
	})
	handle(s, call{"Sessions", get, "/v1/sessions", "List sessions, by name", 0}, func(ctx context.Context, in *struct {
		Selection
		Paging
		Name    string `query:"name" doc:"only the one of that name"`
		Running bool   `query:"running" doc:"without the execs that have ended"`
	}) (wire.Page[sandbox.SessionView], error) {
		list, err := s.svc.Sessions(ctx, sandbox.SessionFilter{Owner: in.owner(), Labels: in.labels(), After: in.Cursor, Limit: in.Limit + 1, Name: in.Name, Running: in.Running})
		return page(in.Paging, list, func(v sandbox.SessionView) string { return v.Name }), err
	})
	handle(s, call{"Session", get, below(""), "One session, with its sandboxes and execs", 0}, func(ctx context.Context, in *InSession) (sandbox.SessionView, error) {
		return s.svc.Session(ctx, in.Session)
	})
	handleNone(s, call{"RemoveSession", del, below(""), "Destroy a session with its workspace", 0}, func(ctx context.Context, in *struct {
		InSession
		Force bool `query:"force" doc:"also while something runs in it"`
	}) error {
		return s.svc.RemoveSession(ctx, in.Session, in.Force)
	})
	handleNone(s, call{"RenewSession", post, below("/renew"), "Set when its sandboxes end, from now on", 0}, func(ctx context.Context, in *struct {
		InSession
		Body api.RenewOptions
	}) error {
		return s.svc.RenewSession(ctx, in.Session, in.Body)
	})
	handle(s, call{"ChangeNetwork", post, below("/network"), "Change which hosts it may reach, also while it runs", 0}, func(ctx context.Context, in *struct {
		InSession
		Body sandbox.NetworkChange
	}) (sandbox.Network, error) {
		return s.svc.ChangeNetwork(ctx, in.Session, in.Body)
	})
	handleNone(s, call{"PauseSession", post, below("/pause"), "Freeze its sandboxes", 0}, func(ctx context.Context, in *InSession) error {
		return s.svc.PauseSession(ctx, in.Session)
	})
	handleNone(s, call{"ResumeSession", post, below("/resume"), "Let them go on", 0}, func(ctx context.Context, in *InSession) error {
		return s.svc.ResumeSession(ctx, in.Session)
	})
	handleNone(s, call{"StopSession", post, below("/stop"), "End its sandboxes with all that runs in them; its workspace stays", 0}, func(ctx context.Context, in *InSession) error {
		return s.svc.StopSession(ctx, in.Session)
	})
	handle(s, call{"SessionEnv", get, below("/env"), "Its environment, with the values", 0}, func(ctx context.Context, in *InSession) (wire.Page[string], error) {
		env, err := s.svc.SessionEnv(ctx, in.Session)
		return all(env), err
	})
	handle(s, call{"SessionStats", get, below("/stats"), "What its sandboxes use now", 0}, func(ctx context.Context, in *InSession) (sandbox.SessionStats, error) {
		return s.svc.SessionStats(ctx, in.Session)
	})
	snapshots(s)
}

func snapshots(s *Server) {
	type named struct {
		InSession
		Body wire.Named `required:"false"`
	}
	handle(s, call{"Snapshot", post, below("/snapshots"), "Keep its workspace as it is", 201}, func(ctx context.Context, in *named) (sandbox.Snapshot, error) {
		return s.svc.Snapshot(ctx, in.Session, in.Body.Name)
	})
	type which struct {
		InSession
		Snapshot string `path:"snapshot" maxLength:"255"`
	}
	handle(s, call{"RestoreSession", post, below("/snapshots/{snapshot}/restore"), "Make its workspace what a snapshot kept", 0}, func(ctx context.Context, in *which) (sandbox.Snapshot, error) {
		return s.svc.RestoreSession(ctx, in.Session, in.Snapshot)
	})
	handleNone(s, call{"RemoveSnapshot", del, below("/snapshots/{snapshot}"), "Forget a snapshot", 0}, func(ctx context.Context, in *which) error {
		return s.svc.RemoveSnapshot(ctx, in.Session, in.Snapshot)
	})
	handle(s, call{"ForkSession", post, below("/fork"), "Make a session with a copy of its workspace", 201}, func(ctx context.Context, in *struct {
		InSession
		Body api.ForkOptions `required:"false"`
	}) (api.Forked, error) {
		return s.svc.ForkSession(ctx, in.Session, in.Body)
	})
}
