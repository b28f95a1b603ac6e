package client

import (
	"context"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// PutFunction implements [api.Functions].
func (c *Client) PutFunction(ctx context.Context, o sandbox.FunctionOptions, local sandbox.Local) (sandbox.Function, error) {
	return connect[sandbox.Function](ctx, c, wire.Begin{Function: &o}, sandbox.Streams{Local: local})
}

// Function implements [api.Functions].
func (c *Client) Function(ctx context.Context, name string) (sandbox.Function, error) {
	return call[sandbox.Function](ctx, c, request{method: get, path: path("/v1/functions/%", name)})
}

// Functions implements [api.Functions].
func (c *Client) Functions(ctx context.Context, f sandbox.FunctionFilter) ([]sandbox.Function, error) {
	return listAll[sandbox.Function](ctx, c, request{method: get, path: "/v1/functions", query: selection(f.Owner, f.Labels)}, f.After, f.Limit)
}

// RemoveFunction implements [api.Functions].
func (c *Client) RemoveFunction(ctx context.Context, name string) error {
	return c.none(ctx, request{method: del, path: path("/v1/functions/%", name)})
}

// InvokeFunction implements [api.Functions].
func (c *Client) InvokeFunction(ctx context.Context, i sandbox.Invocation, local sandbox.Local) (sandbox.Invoked, error) {
	return connect[sandbox.Invoked](ctx, c, wire.Begin{Invoke: &i}, sandbox.Streams{Local: local})
}
