package service_test

import (
	"context"
	"errors"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service"
)

// TestOthersRuntimes has owners use the server's own runtime and those that they
// are given, and no folder of the host.
func TestOthersRuntimes(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *service.Config) {
		c.Runtimes, c.Served, c.Folders = []string{runtimetest.MemoryName}, true, map[string]string{"data": "/srv/data"}
	})
	alice, ops := as(t.Context(), "alice", ""), as(t.Context(), "ops", sandbox.AccessAdmin)
	run := func(ctx context.Context, runtime string) error {
		return second(p.Run(ctx, sandbox.Run{Language: "shell", Command: []string{"echo"}, Runtime: runtime}, sandbox.Streams{}))
	}
	create := func(ctx context.Context, o api.SessionOptions) error {
		return second(p.CreateSession(ctx, o, sandbox.Local{}))
	}
	for what, tt := range map[string]struct {
		err  error
		kind error
	}{
		"the default":       {run(alice, ""), nil},
		"one that is given": {run(alice, runtimetest.MemoryName), nil},
		"another":           {run(alice, "process"), sandbox.Denied},
		"in a session":      {create(alice, api.SessionOptions{Runtime: "process"}), sandbox.Denied},
		"an admin's":        {run(ops, "process"), sandbox.Invalid}, // it is not here
		"auto":              {run(ops, "auto"), sandbox.Invalid},
		"auto by an owner":  {run(alice, "auto"), sandbox.Invalid},
		"a folder":          {create(alice, api.SessionOptions{Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: "data"}}), sandbox.Denied},
	} {
		if (tt.kind == nil) != (tt.err == nil) || tt.kind != nil && !errors.Is(tt.err, tt.kind) {
			t.Errorf("%s: %v", what, tt.err)
		}
	}
}
