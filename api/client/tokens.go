package client

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// CreateToken implements [api.Tokens].
func (c *Client) CreateToken(ctx context.Context, o sandbox.TokenOptions) (sandbox.NewToken, error) {
	return call[sandbox.NewToken](ctx, c, request{method: post, path: "/v1/tokens", body: o})
}

// Tokens implements [api.Tokens].
func (c *Client) Tokens(ctx context.Context) ([]sandbox.Token, error) {
	return list[sandbox.Token](ctx, c, request{method: get, path: "/v1/tokens"})
}

// RevokeToken implements [api.Tokens].
func (c *Client) RevokeToken(ctx context.Context, name string) error {
	return c.none(ctx, request{method: del, path: path("/v1/tokens/%", name)})
}
