package mcp

import (
	"cmp"
	"context"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// sessionIdle is how long the sandboxes of a session wait where nobody says it: a
// conversation may end without a word. The workspace stays.
const sessionIdle = sandbox.Duration(time.Hour)

type (
	newSession struct {
		Name     string  `json:"name,omitempty" jsonschema:"made up if not given"`
		Language string  `json:"language,omitempty" jsonschema:"that of its first sandbox, such as python; each language has one of its own"`
		Memory   int64   `json:"memory_mb,omitempty" jsonschema:"memory limit of each sandbox; 512 if not given"`
		CPUs     float64 `json:"cpus,omitempty" jsonschema:"share of cores; 0.5 if not given"`
		Idle     float64 `json:"idle_seconds,omitempty" jsonschema:"its sandboxes end when nothing was asked of them for this long; 3600 if not given. The workspace stays"`
	}
	ofSession struct {
		Session string `json:"session" jsonschema:"the session's name"`
	}
	removal struct {
		ofSession
		Force bool `json:"force,omitempty" jsonschema:"also while something runs in it"`
	}
	keeping struct {
		ofSession
		Name string `json:"name,omitempty" jsonschema:"a name for it"`
	}
	restoring struct {
		ofSession
		Snapshot string `json:"snapshot" jsonschema:"its id or its name"`
	}
	forking struct {
		ofSession
		Name     string `json:"name,omitempty" jsonschema:"of the copy; made up if not given"`
		Snapshot string `json:"snapshot,omitempty" jsonschema:"copy what this snapshot kept, in the place of what there is now"`
	}
	nothing struct{}
	// done is the answer where there is nothing to tell.
	done struct {
		Done bool `json:"done"`
	}
)

func sessionTools(s *Server) {
	add(s, about{name: "session_create", title: "Make a session", text: "Make a session: a workspace that stays between calls, with sandboxes that are made when they are needed."},
		func(ctx context.Context, in newSession) (any, error) {
			return s.svc.CreateSession(ctx, api.SessionOptions{
				Name: in.Name, Language: in.Language, Idle: cmp.Or(seconds(in.Idle), sessionIdle),
				Limits: sandbox.Limits{Memory: sandbox.Bytes(in.Memory) * sandbox.MiB, CPUs: in.CPUs},
			}, sandbox.Local{})
		})
	add(s, about{name: "session_list", title: "List sessions", text: "List the sessions with their sandboxes and what runs in them.", reads: true},
		func(ctx context.Context, _ nothing) (any, error) {
			return listed(s.svc.Sessions(ctx, sandbox.SessionFilter{}))
		})
	add(s, about{name: "session_remove", title: "Remove a session", text: "Destroy a session with its workspace.", harms: true},
		func(ctx context.Context, in removal) (any, error) {
			return done{true}, s.svc.RemoveSession(ctx, in.Session, in.Force)
		})
	add(s, about{name: "session_snapshot", title: "Keep a workspace as it is", text: "Keep a session's workspace as it is now, to be restored or forked later. Its sandboxes end for it."},
		func(ctx context.Context, in keeping) (any, error) {
			return s.svc.Snapshot(ctx, in.Session, in.Name)
		})
	add(s, about{name: "session_restore", title: "Go back to a snapshot", text: "Make a session's workspace what a snapshot kept. What it held is gone.", harms: true},
		func(ctx context.Context, in restoring) (any, error) {
			return s.svc.RestoreSession(ctx, in.Session, in.Snapshot)
		})
	add(s, about{name: "session_fork", title: "Copy a session", text: "Make a session with a copy of another's workspace."},
		func(ctx context.Context, in forking) (any, error) {
			return s.svc.ForkSession(ctx, in.Session, api.ForkOptions{Name: in.Name, Snapshot: in.Snapshot})
		})
}
