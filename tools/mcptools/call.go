package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
)

// call has the server answer. One that no longer knows the session has not done
// anything: it is asked again in another. Nothing else is done twice.
func (s *Server) call(ctx context.Context, t sandbox.Tool, arguments json.RawMessage) (json.RawMessage, error) {
	for again := range 2 {
		session, name, err := s.there(ctx, t)
		if err != nil {
			return nil, err
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
		if errors.Is(err, mcp.ErrSessionMissing) && again == 0 {
			s.lost(session)
			continue
		}
		if err != nil {
			return nil, s.failed(ctx, t.Name, err)
		}
		return resultOf(t.Name, result)
	}
	return nil, sandbox.Errorf(sandbox.Unavailable, "tool %s: its server forgets its sessions", t.Name)
}

// lost ends a session that the server does not know.
func (s *Server) lost(session *mcp.ClientSession) {
	s.set(func() {
		if s.now == session {
			s.now = nil
		}
	})
	_ = session.Close() // it has ended
}

// kinds class the protocol's own errors; others are the tool's.
var kinds = map[int64]sandbox.Kind{
	jsonrpc.CodeInvalidParams: sandbox.Invalid, jsonrpc.CodeMethodNotFound: sandbox.NotFound,
}

// failed says why there is no result.
func (s *Server) failed(ctx context.Context, tool string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		kind, known := kinds[said.Code]
		if !known {
			kind = sandbox.Internal
		}
		return sandbox.Errorf(kind, "tool %s: %s", tool, said.Message)
	}
	return sandbox.Errorf(sandbox.Unavailable, "tool %s: the MCP server %s has not answered: %w", tool, s.name, err)
}

// resultOf is what a program gets: structured content where there is some, else the
// text where that is all, else the list of what there is. Errors: Internal.
func resultOf(tool string, r *mcp.CallToolResult) (json.RawMessage, error) {
	if r.IsError {
		var said []string
		for _, c := range r.Content {
			if text, ok := c.(*mcp.TextContent); ok {
				said = append(said, text.Text)
			}
		}
		return nil, sandbox.Errorf(sandbox.Internal, "tool %s: %s", tool, strings.Join(said, "\n"))
	}
	if r.StructuredContent != nil {
		return json.Marshal(r.StructuredContent)
	}
	if len(r.Content) == 0 {
		return json.RawMessage("null"), nil
	}
	if text, ok := r.Content[0].(*mcp.TextContent); ok && len(r.Content) == 1 {
		return json.Marshal(text.Text)
	}
	return json.Marshal(r.Content)
}
