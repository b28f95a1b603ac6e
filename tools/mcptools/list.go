package mcptools

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
)

// Bounds of what a server lists: programs that may call it read all of it.
const (
	mostTools   = 1000
	mostListing = 4 * sandbox.MiB
)

// relist asks a server for its tools. Those that it does not list do not exist from
// then on.
func (s *Server) relist(ctx context.Context, session *mcp.ClientSession) error {
	var list []sandbox.Callable
	has, size := map[string]declared{}, sandbox.Bytes(0)
	if can := session.InitializeResult().Capabilities; can != nil && can.Tools != nil {
		for t, err := range session.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			c, err := s.callable(t)
			size += sandbox.Bytes(len(c.Description) + len(c.Parameters) + len(c.Result))
			switch _, twice := has[c.Name]; {
			case err != nil || twice:
				s.log.Warn("a tool of a server is left out", "server", s.name, "tool", c.Name, "twice", twice, "error", err)
				continue
			case len(list) == mostTools || size > mostListing:
				s.log.Warn("the tools of a server are too many, or too long: the others are left out", "server", s.name, "tools", len(list))
			default:
				has[c.Name] = declared{t.Name, c.Tool}
				list = append(list, c)
				continue
			}
			break
		}
	}
	s.set(func() { s.now, s.list, s.has, s.err = session, list, has, nil })
	return nil
}

// callable is a tool of the server's. Errors: Invalid.
func (s *Server) callable(t *mcp.Tool) (sandbox.Callable, error) {
	c := sandbox.Callable{Tool: s.like}
	c.Name = s.like.Name + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, t.Name)
	c.Description = cmp.Or(t.Description, t.Title)
	for _, schema := range []struct {
		from any
		to   *json.RawMessage
	}{{t.InputSchema, &c.Parameters}, {t.OutputSchema, &c.Result}} {
		if schema.from == nil {
			continue
		}
		var err error
		if *schema.to, err = json.Marshal(schema.from); err != nil {
			return c, err
		}
	}
	declared := c.Tool
	c.Call = func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		return s.call(ctx, declared, arguments)
	}
	return c, c.Check()
}
