package manager

import (
	"context"
	"errors"
	"net"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// DialPort connects to a TCP port that a session's programs listen on, in whichever of
// its sandboxes that is: by localhost there, whatever the network is. It makes no
// sandbox. The first connection to each port is audited. Errors: Invalid, NotFound,
// Conflict for a session that is paused, Unavailable where nothing listens, Unsupported
// where the session has its ports together with the host.
func (m *Manager) DialPort(ctx context.Context, session string, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, sandbox.Errorf(sandbox.Invalid, "%d is no port", port).WithHint("give 1 to 65535")
	}
	v, err := m.running(ctx, session)
	if err != nil {
		return nil, err
	}
	for _, rec := range v.Sandboxes {
		if rec.State == sandbox.StateCreating {
			continue
		}
		conn, err := m.dialIn(ctx, v, rec, port)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, sandbox.NotFound) && !errors.Is(err, box.ErrEnded) {
			return nil, err
		}
	}
	return nil, sandbox.Errorf(sandbox.Unavailable, "nothing listens on port %d in session %s", port, session).
		WithHint("start a server in it, in the background, that listens on localhost:%d", port)
}

// dialIn connects to a port of one sandbox.
func (m *Manager) dialIn(ctx context.Context, v sandbox.SessionView, rec sandbox.SandboxRecord, port int) (net.Conn, error) {
	b, err := m.connect(ctx, v, rec)
	if err != nil {
		return nil, err
	}
	rt, err := m.runtimeOf(b.Plan.Runtime)
	if err != nil {
		return nil, err
	}
	caps, err := rt.Capabilities(ctx)
	if err != nil {
		return nil, err
	}
	if caps.NoNetwork != runtimes.Enforced {
		return nil, sandbox.Errorf(sandbox.Unsupported, "what listens under the runtime %s listens on the host", b.Plan.Runtime).WithHint("connect to localhost:%d there", port)
	}
	conn, err := b.Client.Dial(ctx, port)
	if err != nil {
		return nil, err
	}
	if b.FirstDial(port) {
		event := sandbox.Event{Kind: sandbox.EventPortOpened, Session: v.Name, Sandbox: b.ID, Data: data(map[string]int{"port": port})}
		if err := m.record(ctx, sandbox.Transaction{Events: []sandbox.Event{event}}); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}
