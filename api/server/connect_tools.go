package server

import (
	"context"
	"encoding/json"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// answers has the client answer the calls of one of its tools. What it says again, or
// after a call is over, nobody hears.
func (c *connection) answers(tool string) sandbox.ToolFunc {
	return func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		m, err := c.request(ctx, wire.Message{Type: wire.MsgCall, Stream: c.number(), Tool: tool, Arguments: arguments})
		if err != nil && c.ctx.Err() != nil {
			return nil, sandbox.Errorf(sandbox.Unavailable, "tool %s: the client that answers it is gone", tool)
		}
		return m.Result, err
	}
}
