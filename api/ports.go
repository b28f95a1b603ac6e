package api

import (
	"context"
	"net"
)

// Ports leads from outside to what programs of a session listen on.
type Ports interface {
	// DialPort connects to a TCP port of a session: to what its own programs listen on,
	// by localhost, whatever its network is. Nothing is made for it. The caller closes
	// the connection. Errors: Invalid, NotFound, Conflict for a session that is paused,
	// Unavailable where nothing listens, Unsupported where its ports are the host's.
	DialPort(ctx context.Context, session string, port int) (net.Conn, error)
}
