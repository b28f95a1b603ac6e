package client

import (
	"context"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// OpenShell implements [api.Shells].
func (c *Client) OpenShell(ctx context.Context, session, name string, o sandbox.ShellOptions) (sandbox.Shell, error) {
	return call[sandbox.Shell](ctx, c, request{method: post, path: path("/v1/sessions/%/shells", session), body: wire.OpenShell{Name: name, ShellOptions: o}})
}

// RunShell implements [api.Shells].
func (c *Client) RunShell(ctx context.Context, session, name string, run sandbox.ShellRun, streams sandbox.Streams) (sandbox.Result, error) {
	return connect[sandbox.Result](ctx, c, wire.Begin{Session: session, Shell: name, ShellRun: &run}, streams)
}

// CloseShell implements [api.Shells].
func (c *Client) CloseShell(ctx context.Context, session, name string) error {
	return c.none(ctx, request{method: del, path: path("/v1/sessions/%/shells/%", session, name)})
}

// ListShells implements [api.Shells].
func (c *Client) ListShells(ctx context.Context, session string) ([]sandbox.Shell, error) {
	return list[sandbox.Shell](ctx, c, request{method: get, path: path("/v1/sessions/%/shells", session)})
}
