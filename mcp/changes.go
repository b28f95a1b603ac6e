package mcp

import (
	"context"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

type (
	changesOf struct {
		ofSession
		Exec  string `json:"exec_id,omitempty" jsonschema:"only what this run changed; all since the session began if not given"`
		Names bool   `json:"names_only,omitempty" jsonschema:"leave the differences of texts out"`
	}
	undoing struct {
		ofSession
		Exec  string `json:"exec_id" jsonschema:"the run whose changes are taken back"`
		Since bool   `json:"since,omitempty" jsonschema:"take back everything since before that run, whoever did it"`
		Force bool   `json:"force,omitempty" jsonschema:"also what was touched later"`
	}
)

func changeTools(s *Server) {
	add(s, about{name: "changes", title: "See what changed", text: "Show what was changed in a session's workspace: files with the differences of their texts.", reads: true},
		func(ctx context.Context, in changesOf) (any, error) {
			return listed(s.svc.Diff(ctx, in.Session, api.ChangesOptions{Exec: sandbox.ID(in.Exec), Names: in.Names}))
		})
	add(s, about{name: "undo", title: "Undo a run", text: "Take back what a run changed in the workspace of its session.", harms: true},
		func(ctx context.Context, in undoing) (any, error) {
			return s.svc.Undo(ctx, in.Session, api.UndoOptions{Exec: sandbox.ID(in.Exec), Since: in.Since, Force: in.Force})
		})
}
