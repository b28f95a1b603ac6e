package client

import (
	"context"
	"net"
	"strconv"

	"github.com/coder/websocket"
)

// DialPort implements [api.Ports]. The connection has no half: who closes it ends it.
func (c *Client) DialPort(ctx context.Context, session string, port int) (net.Conn, error) {
	ws, err := c.dial(ctx, path("/v1/sessions/%/ports/%", session, strconv.Itoa(port)))
	if err != nil {
		return nil, whole(err)
	}
	ws.SetReadLimit(-1)
	return websocket.NetConn(context.WithoutCancel(ctx), ws, websocket.MessageBinary), nil
}
