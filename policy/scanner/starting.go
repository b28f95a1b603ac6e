package scanner

import (
	"context"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// Starting is a [Pool] that is being made while the caller does other things,
// such as compiling rules. It is safe for concurrent use.
type Starting struct {
	done  chan struct{}
	pool  *Pool
	ready Ready
	err   error
}

// Start calls config (which reads the tables), makes a pool and starts its
// first process, all in the background. ctx bounds the start. Close waits for
// it.
func Start(ctx context.Context, config func() (Config, error)) *Starting {
	s := &Starting{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		c, err := config()
		if err != nil {
			s.err = err
			return
		}
		if s.pool, s.err = New(c); s.err != nil {
			return
		}
		s.ready, s.err = s.pool.Warm(ctx)
	}()
	return s
}

// Ready waits until the first process runs and says what lockdown it reached.
func (s *Starting) Ready(ctx context.Context) (Ready, error) {
	select {
	case <-s.done:
		return s.ready, s.err
	case <-ctx.Done():
		return Ready{}, sandbox.Errorf(sandbox.TimedOut, "wait for the scanner: %w", context.Cause(ctx))
	}
}

// Scan is [Pool.Scan], once there is a pool.
func (s *Starting) Scan(ctx context.Context, r facts.Request) (*facts.Document, error) {
	if _, err := s.Ready(ctx); err != nil {
		return nil, err
	}
	return s.pool.Scan(ctx, r)
}

// Close waits for the start and closes the pool. It may be called twice.
func (s *Starting) Close() error {
	<-s.done
	if s.pool == nil {
		return nil
	}
	return s.pool.Close()
}
