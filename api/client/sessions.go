package client

import (
	"context"
	"net/url"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

const (
	get  = "GET"
	post = "POST"
	put  = "PUT"
	del  = "DELETE"
)

// noFolder refuses a folder of this host.
func noFolder(local sandbox.Local) error {
	if local.Folder == "" {
		return nil
	}
	return sandbox.Errorf(sandbox.Unsupported, "a folder of this host cannot be the workspace on a server").WithHint("copy it: caisson files push, or name a folder that the server's caisson.yaml lists")
}

// CreateSession implements [api.Sessions].
func (c *Client) CreateSession(ctx context.Context, o api.SessionOptions, local sandbox.Local) (sandbox.Session, error) {
	if err := noFolder(local); err != nil {
		return sandbox.Session{}, err
	}
	return call[sandbox.Session](ctx, c, request{method: post, path: "/v1/sessions", body: o})
}

// Session implements [api.Sessions].
func (c *Client) Session(ctx context.Context, name string) (sandbox.SessionView, error) {
	return call[sandbox.SessionView](ctx, c, request{method: get, path: path("/v1/sessions/%", name)})
}

// Sessions implements [api.Sessions].
func (c *Client) Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	return listAll[sandbox.SessionView](ctx, c, request{method: get, path: "/v1/sessions", query: selection(f.Owner, f.Labels)}, f.After, f.Limit)
}

// RenewSession implements [api.Sessions].
func (c *Client) RenewSession(ctx context.Context, name string, o api.RenewOptions) error {
	return c.none(ctx, request{method: post, path: path("/v1/sessions/%/renew", name), body: o})
}

// ChangeNetwork implements [api.Networks].
func (c *Client) ChangeNetwork(ctx context.Context, name string, change sandbox.NetworkChange) (sandbox.Network, error) {
	return call[sandbox.Network](ctx, c, request{method: post, path: path("/v1/sessions/%/network", name), body: change})
}

// RemoveSession implements [api.Sessions].
func (c *Client) RemoveSession(ctx context.Context, name string, force bool) error {
	q := url.Values{}
	setBool(q, "force", force)
	return c.none(ctx, request{method: del, path: path("/v1/sessions/%", name), query: q})
}

// PauseSession implements [api.Pauser].
func (c *Client) PauseSession(ctx context.Context, name string) error {
	return c.none(ctx, request{method: post, path: path("/v1/sessions/%/pause", name)})
}

// ResumeSession implements [api.Pauser].
func (c *Client) ResumeSession(ctx context.Context, name string) error {
	return c.none(ctx, request{method: post, path: path("/v1/sessions/%/resume", name)})
}

// SessionEnv implements [api.Insight].
func (c *Client) SessionEnv(ctx context.Context, name string) ([]string, error) {
	return list[string](ctx, c, request{method: get, path: path("/v1/sessions/%/env", name)})
}

// SessionStats implements [api.Insight].
func (c *Client) SessionStats(ctx context.Context, name string) (sandbox.SessionStats, error) {
	return call[sandbox.SessionStats](ctx, c, request{method: get, path: path("/v1/sessions/%/stats", name)})
}

// Snapshot implements [api.Snapshots].
func (c *Client) Snapshot(ctx context.Context, session, name string) (sandbox.Snapshot, error) {
	return call[sandbox.Snapshot](ctx, c, request{method: post, path: path("/v1/sessions/%/snapshots", session), body: wire.Named{Name: name}})
}

// RestoreSession implements [api.Snapshots].
func (c *Client) RestoreSession(ctx context.Context, session, snapshot string) (sandbox.Snapshot, error) {
	return call[sandbox.Snapshot](ctx, c, request{method: post, path: path("/v1/sessions/%/snapshots/%/restore", session, snapshot)})
}

// RemoveSnapshot implements [api.Snapshots].
func (c *Client) RemoveSnapshot(ctx context.Context, session, snapshot string) error {
	return c.none(ctx, request{method: del, path: path("/v1/sessions/%/snapshots/%", session, snapshot)})
}

// ForkSession implements [api.Snapshots].
func (c *Client) ForkSession(ctx context.Context, session string, o api.ForkOptions) (api.Forked, error) {
	return call[api.Forked](ctx, c, request{method: post, path: path("/v1/sessions/%/fork", session), body: o})
}
