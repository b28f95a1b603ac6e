package client

import (
	"context"
	"io"
	"net/url"
	"time"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// SubmitExecution implements [api.Executions].
func (c *Client) SubmitExecution(ctx context.Context, o sandbox.ExecutionOptions, local sandbox.Local) (sandbox.Execution, error) {
	return connect[sandbox.Execution](ctx, c, wire.Begin{Submit: &o}, sandbox.Streams{Local: local})
}

// Execution implements [api.Executions].
func (c *Client) Execution(ctx context.Context, id sandbox.ID, wait sandbox.Duration) (sandbox.Execution, error) {
	q := url.Values{}
	if wait > 0 {
		q.Set("wait", time.Duration(wait).String())
	}
	return call[sandbox.Execution](ctx, c, request{method: get, path: path("/v1/executions/%", string(id)), query: q})
}

// Executions implements [api.Executions].
func (c *Client) Executions(ctx context.Context, f sandbox.ExecutionFilter) ([]sandbox.Execution, error) {
	q := selection(f.Owner, f.Labels)
	for _, state := range f.States {
		q.Add("state", string(state))
	}
	setString(q, "session", f.Session)
	setString(q, "callback", string(f.Callback))
	return listAll[sandbox.Execution](ctx, c, request{method: get, path: "/v1/executions", query: q}, string(f.After), f.Limit)
}

// CancelExecution implements [api.Executions].
func (c *Client) CancelExecution(ctx context.Context, id sandbox.ID) (sandbox.Execution, error) {
	return call[sandbox.Execution](ctx, c, request{method: post, path: path("/v1/executions/%/cancel", string(id))})
}

// ExecutionArtifact implements [api.Executions].
func (c *Client) ExecutionArtifact(ctx context.Context, id sandbox.ID, name string, w io.Writer) (int64, error) {
	counted := &counter{w: w}
	_, err := c.download(ctx, request{method: get, path: path("/v1/executions/%/artifacts", string(id)), query: url.Values{"path": {name}}}, counted)
	return counted.n, err
}

// DeadLetters implements [api.DeadLetters].
func (c *Client) DeadLetters(ctx context.Context, f sandbox.DeadLetterFilter) ([]sandbox.DeadLetter, error) {
	return listAll[sandbox.DeadLetter](ctx, c, request{method: get, path: "/v1/dead-letters", query: selection(f.Owner, f.Labels)}, string(f.After), f.Limit)
}

// ResendDeadLetter implements [api.DeadLetters].
func (c *Client) ResendDeadLetter(ctx context.Context, id sandbox.ID) (sandbox.DeadLetter, error) {
	return call[sandbox.DeadLetter](ctx, c, request{method: post, path: path("/v1/dead-letters/%/resend", string(id))})
}
