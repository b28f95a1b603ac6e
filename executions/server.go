package executions

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/sandbox"
)

// server carries out what is queued, in the one process that does.
type server struct {
	b      *Book
	runner Runner
	unlock func()

	kick chan struct{}
	// accept ends when the server stops to begin and to follow; hard when it gives up
	// what runs.
	accept, hard         context.Context
	stopAccept, stopHard context.CancelFunc
	loop, work           sync.WaitGroup

	mu    sync.Mutex
	again []sandbox.QueuedExecution // could not begin
	full  map[string]full           // owners whose quota is used up, as it was last seen

	// What follows belongs to the goroutine of serve.
	queue queue
	seen  int64 // the last one that was queued
}

// full says why an owner's executions wait, and when they are tried again, whatever
// ends before that.
type full struct {
	why  string
	till time.Time
}

// Why an execution's context ends.
var (
	errCanceled = errors.New("it was canceled")
	errStopped  = errors.New("the server was stopped")
)

// lockPatience is how long a server that ends may take to let go.
const lockPatience = 3 * time.Second

// Start makes this the process that carries executions out, by a runner, until
// Close. First it takes up what a server before it has left. Errors: Conflict where
// another process does it, and those of the store.
func (b *Book) Start(ctx context.Context, runner Runner) error {
	waiting, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err := filelock.Lock(waiting, b.cfg.Lock)
	if errors.Is(err, context.DeadlineExceeded) {
		return sandbox.Errorf(sandbox.Conflict, "another server uses this state folder").WithHint("stop that one, or set CAISSON_STATE_DIR to another folder")
	}
	if err != nil {
		return err
	}
	s := &server{b: b, runner: runner, unlock: unlock, kick: make(chan struct{}, 1), full: map[string]full{}}
	s.accept, s.stopAccept = context.WithCancel(context.Background())
	s.hard, s.stopHard = context.WithCancel(context.Background())
	b.mu.Lock()
	if b.srv != nil {
		b.mu.Unlock()
		unlock()
		return sandbox.Errorf(sandbox.Internal, "executions: started twice")
	}
	b.srv = s
	b.mu.Unlock()
	if err := s.takeOver(ctx); err != nil {
		return errors.Join(err, b.Close())
	}
	s.loop.Go(s.serve)
	return nil
}

// Close stops to begin executions, waits for those that run as long as it may, and
// gives the rest up as lost, but for those in sessions, which go on and are taken
// up by the next server. It is idempotent.
func (b *Book) Close() error {
	s := b.server()
	if s == nil {
		return nil
	}
	s.stopAccept()
	s.loop.Wait()
	slow := time.AfterFunc(b.cfg.Drain, func() {
		s.stopHard()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, l := range b.live {
			l.cancel(errStopped)
		}
	})
	s.work.Wait()
	slow.Stop()
	s.stopHard()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.srv == s {
		b.srv = nil
		s.unlock()
	}
	return nil
}

// wake has the queue looked at. It returns at once.
func (s *server) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// serve begins what is queued as workers become free.
func (s *server) serve() {
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	prune := time.NewTicker(prunePause)
	defer prune.Stop()
	clock := s.b.clock()
	s.b.prune(s.accept)
	for {
		s.load()
		s.begin()
		select {
		case <-s.kick:
		case <-tick.C: // other processes submit and cancel too
			s.cancelAsked()
			clock = s.b.follow(s.accept, clock)
		case <-prune.C:
			s.b.prune(s.accept)
		case <-s.accept.Done():
			return
		}
	}
}

// load takes in what was queued since it was looked at last.
func (s *server) load() {
	list, err := s.b.cfg.Store.Queued(s.accept, s.seen)
	if err != nil && s.accept.Err() == nil {
		s.b.cfg.Log.Warn("the queue cannot be read", "error", err)
	}
	for _, e := range list {
		s.queue.add(e)
		s.seen = max(s.seen, e.Seq)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.again {
		s.queue.add(e)
	}
	s.again = nil
}

// begin gives free workers something to do.
func (s *server) begin() {
	for s.accept.Err() == nil {
		running, all := s.b.running()
		if all >= s.b.cfg.Workers {
			return
		}
		e, ok := s.queue.next(func(owner string) bool {
			most := s.b.cfg.Quota(owner)
			return (most <= 0 || running[owner] < most) && s.mayTry(owner)
		})
		if !ok {
			return
		}
		s.start(e.ID, e.Owner, func(ctx context.Context) { s.carryOut(ctx, e) })
	}
}

// start has something done about an execution that counts as running from now on.
func (s *server) start(id sandbox.ID, owner string, do func(ctx context.Context)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.b.mu.Lock()
	s.b.live[id] = &live{owner: owner, cancel: cancel}
	s.b.mu.Unlock()
	s.work.Go(func() {
		do(ctx)
		cancel(nil)
		s.b.mu.Lock()
		delete(s.b.live, id)
		s.b.mu.Unlock()
		s.wake()
	})
}

// running counts what runs here, by owner and in all.
func (b *Book) running() (of map[string]int, all int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of = map[string]int{}
	for _, l := range b.live {
		of[l.owner]++
	}
	return of, len(b.live)
}

// cancelAsked cancels what other processes want canceled.
func (s *server) cancelAsked() {
	if _, n := s.b.running(); n == 0 {
		return
	}
	list, err := s.b.cfg.Store.Executions(s.accept, sandbox.ExecutionFilter{States: []sandbox.ExecutionState{sandbox.ExecutionRunning}})
	if err != nil && s.accept.Err() == nil {
		s.b.cfg.Log.Warn("what runs cannot be read", "error", err)
	}
	for _, e := range list {
		if e.CancelAsked {
			s.b.stop(e.ID)
		}
	}
}
