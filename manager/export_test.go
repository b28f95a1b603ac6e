package manager

import (
	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Client is the sandbox's connection to its agent, for tests that ask the agent
// itself.
func (s *Sandbox) Client() *client.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box == nil {
		return nil
	}
	return s.box.Client
}

// Instance is the runtime's part of the sandbox.
func (s *Sandbox) Instance() runtimes.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.box.Instance
}

// Judges reports whether this process judges what an exec in the background starts, in
// the place of another.
func (m *Manager) Judges(id sandbox.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.judges[id]
	return s != nil && s.again && s.seated.Load()
}
