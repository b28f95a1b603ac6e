package client

import (
	"context"
	"net/url"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

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
	if o.Temporary {
		return c.hold(ctx, o)
	}
	return call[sandbox.Session](ctx, c, request{method: post, path: "/v1/sessions", body: o})
}

// hold makes a session over a connection that it keeps: by that the server knows that
// this process still wants it.
func (c *Client) hold(ctx context.Context, o api.SessionOptions) (made sandbox.Session, err error) {
	ws, err := c.dial(ctx, wire.ConnectPath)
	if err != nil {
		return made, err
	}
	defer func() {
		if err != nil {
			_ = ws.CloseNow() // what was made goes with it
		}
	}()
	ws.SetReadLimit(-1)
	var m wire.Message
	if err = wsjson.Write(ctx, ws, wire.Begin{Hold: &o}); err == nil {
		err = wsjson.Read(ctx, ws, &m)
	}
	switch {
	case err != nil:
		return made, c.unreachable(ctx, err)
	case m.Problem != nil:
		return made, m.Problem.Err()
	case m.Session == nil:
		return made, sandbox.Errorf(sandbox.Unavailable, "the server ends")
	}
	ws.CloseRead(context.WithoutCancel(ctx))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = map[string]*websocket.Conn{}
	}
	c.held[m.Session.Name] = ws
	return *m.Session, nil
}

// release ends what hold began, if it did.
func (c *Client) release(session string) {
	c.mu.Lock()
	ws := c.held[session]
	delete(c.held, session)
	c.mu.Unlock()
	if ws != nil {
		_ = ws.CloseNow() // the server may have ended it
	}
}

// Session implements [api.Sessions].
func (c *Client) Session(ctx context.Context, name string) (sandbox.SessionView, error) {
	return call[sandbox.SessionView](ctx, c, request{method: get, path: path("/v1/sessions/%", name)})
}

// Sessions implements [api.Sessions].
func (c *Client) Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	q := selection(f.Owner, f.Labels)
	setString(q, "name", f.Name)
	setBool(q, "running", f.Running)
	return listAll[sandbox.SessionView](ctx, c, request{method: get, path: "/v1/sessions", query: q}, f.After, f.Limit)
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
	err := c.none(ctx, request{method: del, path: path("/v1/sessions/%", name), query: q})
	if err == nil {
		c.release(name)
	}
	return err
}

// PauseSession implements [api.Pauser].
func (c *Client) PauseSession(ctx context.Context, name string) error {
	return c.none(ctx, request{method: post, path: path("/v1/sessions/%/pause", name)})
}

// ResumeSession implements [api.Pauser].
func (c *Client) ResumeSession(ctx context.Context, name string) error {
	return c.none(ctx, request{method: post, path: path("/v1/sessions/%/resume", name)})
}

// StopSession implements [api.Pauser].
func (c *Client) StopSession(ctx context.Context, name string) error {
	return c.none(ctx, request{method: post, path: path("/v1/sessions/%/stop", name)})
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
