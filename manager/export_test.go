package manager

import "github.com/caisson-dev/caisson/agent/client"

// Client is the sandbox's connection to its agent, for tests that ask the agent
// itself.
func (s *Sandbox) Client() *client.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		return nil
	}
	return s.live.client
}
