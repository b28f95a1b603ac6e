package mcp

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
)

// connection names that of a caller's client; its id is "" where there is one alone.
type connection struct {
	id  string
	who sandbox.Caller
}

// calls are those that are being answered. The SDK waits for them before it closes a
// connection, so they have to be ended first. The zero value is ready.
type calls struct {
	mu     sync.Mutex
	going  map[connection]map[*context.CancelFunc]bool
	closed bool
}

// middleware makes each call one that can be ended.
func (c *calls) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		of := connection{req.GetSession().ID(), sandbox.CallerFrom(ctx)}
		c.mu.Lock()
		if c.closed {
			cancel()
		}
		if c.going == nil {
			c.going = map[connection]map[*context.CancelFunc]bool{}
		}
		if c.going[of] == nil {
			c.going[of] = map[*context.CancelFunc]bool{}
		}
		c.going[of][&cancel] = true
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if delete(c.going[of], &cancel); len(c.going[of]) == 0 {
				delete(c.going, of)
			}
		}()
		return next(ctx, method, req)
	}
}

// end ends those of a connection.
func (c *calls) end(of connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cancel := range c.going[of] {
		(*cancel)()
	}
}

// close ends all of them, and those that come.
func (c *calls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, one := range c.going {
		for cancel := range one {
			(*cancel)()
		}
	}
}
