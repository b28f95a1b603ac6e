package manager

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// ChangeNetwork changes which hosts a session may reach, and returns what it is now.
// It holds for the next connection of what runs, in whatever process; what is open
// stays so. Errors: NotFound, Invalid, Conflict where its network has no list.
func (m *Manager) ChangeNetwork(ctx context.Context, name string, change sandbox.NetworkChange) (sandbox.Network, error) {
	v, unlock, err := m.lockSession(ctx, name)
	if err != nil {
		return sandbox.Network{}, err
	}
	defer unlock()
	if v.Network.Mode != sandbox.NetworkAllow {
		return v.Network, sandbox.Errorf(sandbox.Conflict, "the network of session %s is %s, and that is made with its sandbox", name, v.Network.Mode).
			WithHint("make another session with --network allow")
	}
	listed := m.cfg.Egress.Named(sandbox.Network{Allow: change.Allow, Deny: change.Deny})
	dropped := m.cfg.Egress.Named(sandbox.Network{Allow: change.Drop})
	change.Allow, change.Deny, change.Drop = listed.Allow, listed.Deny, dropped.Allow
	n, err := v.Network.Changed(change)
	if err != nil {
		return v.Network, err
	}
	v.Network = n
	return n, m.recordLate(ctx, sandbox.Transaction{
		PutSession: &v.Session, Events: []sandbox.Event{{Kind: sandbox.EventSessionChanged, Session: name, Data: data(map[string]any{"network": n})}},
	})
}
