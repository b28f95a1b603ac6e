package manager

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// What a text starts in a shell, the shell's process starts. Where this process judges
// that, it hands over what is told while the text runs; else it judges it meanwhile.

// lent takes what a shell starts from now on, where this process judges that.
func (s *starting) lent(shell sandbox.ID) bool {
	s.m.mu.Lock()
	host := s.m.judges[shell]
	s.m.mu.Unlock()
	if host == nil || host.again && !host.seated.Load() {
		return false
	}
	select {
	case <-host.over: // it hears nothing any more
		return false
	default:
	}
	s.shell, s.judge, s.mark = host, host.judge, make(chan struct{}, 1)
	host.mu.Lock()
	defer host.mu.Unlock()
	if host.run != nil { // the agent refuses the text: another one runs
		return true
	}
	host.run = s
	return true
}

// taker is whose starts are told now.
func (s *starting) taker() *starting {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		return s.run
	}
	return s
}

// marked is told behind all that was to be told, with the number of what was not.
func (s *starting) marked(leftOut int) {
	s.mu.Lock()
	s.count += leftOut
	s.mu.Unlock()
	select {
	case s.mark <- struct{}{}:
	default: // nobody waits for it
	}
}

// giveBack waits for what a shell has started, where there is any, and leaves it what it
// starts later.
func (s *starting) giveBack(ctx context.Context) {
	if s.shell.taker() != s {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
	defer cancel()
	if !s.none && s.judge.Mark() == nil {
		select {
		case <-s.mark:
		case <-s.shell.over:
		case <-ctx.Done(): // the agent does not do as agents do
		}
	}
	s.shell.mu.Lock()
	defer s.shell.mu.Unlock()
	s.shell.run = nil
}
