package server

import (
	"context"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// OfShell names the shell that a call is about.
type OfShell struct {
	InSession
	Shell string `path:"shell" maxLength:"255"`
}

func shells(s *Server) {
	handle(s, call{"OpenShell", post, below("/shells"), "Open a shell", 201}, func(ctx context.Context, in *struct {
		InSession
		Body wire.OpenShell
	}) (sandbox.Shell, error) {
		return s.svc.OpenShell(ctx, in.Session, in.Body.Name, in.Body.ShellOptions)
	})
	handle(s, call{"RunShell", post, below("/shells/{shell}/run"), "Run a text in a shell", 0}, func(ctx context.Context, in *struct {
		OfShell
		Body sandbox.ShellRun
	}) (sandbox.Result, error) {
		return s.svc.RunShell(ctx, in.Session, in.Shell, in.Body, sandbox.Streams{})
	})
	handleNone(s, call{"CloseShell", del, below("/shells/{shell}"), "Close a shell", 0}, func(ctx context.Context, in *OfShell) error {
		return s.svc.CloseShell(ctx, in.Session, in.Shell)
	})
	handle(s, call{"ListShells", get, below("/shells"), "List a session's shells", 0}, func(ctx context.Context, in *InSession) (wire.Page[sandbox.Shell], error) {
		list, err := s.svc.ListShells(ctx, in.Session)
		return all(list), err
	})
}
