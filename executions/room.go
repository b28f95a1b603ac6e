package executions

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// fullPause is for how long an owner without room is left alone, where nothing of
// theirs ends here meanwhile: sessions and runs of others end too.
const fullPause = 2 * time.Second

// room has a place for an execution within its owner's quota, until release is called;
// ok is false where there is none, and it waits. The run uses the context that comes back.
func (s *server) room(ctx context.Context, q sandbox.QueuedExecution, e sandbox.Execution, run sandbox.Run) (_ context.Context, release func(), ok bool) {
	ctx = sandbox.WithCaller(ctx, e.Caller())
	run.Session = e.Session
	reserved, giveBack, err := s.runner.Reserve(ctx, run)
	if errors.Is(err, sandbox.Exhausted) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.full[q.Owner] = full{why: err.Error(), till: time.Now().Add(fullPause)}
		s.again = append(s.again, q)
		return nil, nil, false
	}
	if err != nil {
		return ctx, func() {}, true // the run meets it too, and says so
	}
	return reserved, func() { giveBack(); s.hasRoom(q.Owner) }, true
}

// mayTry reports whether an owner's next execution may find room.
func (s *server) mayTry(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !time.Now().Before(s.full[owner].till)
}

// hasRoom has an owner's next execution tried at once.
func (s *server) hasRoom(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.full, owner)
}

// why is what an owner's executions wait for, beside a worker.
func (s *server) why(owner string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full[owner].why
}
