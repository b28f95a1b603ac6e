package pool

import (
	"time"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// shelf is what is kept of one kind. The pool's lock guards it.
type shelf struct {
	kind   Kind // of any image
	most   int
	wanted bool // by the pool's owner, and not only asked for lately
	since  time.Time

	ready   []*entry // the oldest first
	making  int
	dropped bool        // it is none of the pool's any more
	asks    []time.Time // the latest, as many as most

	taken, missed int
	failures      int // in a row
	retry         time.Time
	problem       error
}

// entry is one sandbox that is ready.
type entry struct {
	kind     Kind
	instance runtimes.Instance
}

// ask notes that somebody asked, and takes the oldest that fits.
func (s *shelf) ask(k Kind, now time.Time) *entry {
	s.asks = append(s.asks, now)
	s.asks = s.asks[max(0, len(s.asks)-s.most):]
	for i, e := range s.ready {
		if e.kind == k {
			s.ready = append(s.ready[:i:i], s.ready[i+1:]...)
			s.taken++
			return e
		}
	}
	s.missed++
	return nil
}

// size is how many are to be ready: as many as were asked for lately, and all that
// its owner wants unless nobody asked for long.
func (s *shelf) size(now time.Time, idle time.Duration) int {
	lately := 0
	for _, t := range s.asks {
		if now.Sub(t) < idle {
			lately++
		}
	}
	switch {
	case !s.wanted:
		return lately
	case lately > 0 || now.Sub(s.since) < idle:
		return s.most
	}
	return min(1, s.most)
}

// Backoff after failures in a row.
const (
	firstPause = time.Second
	mostPause  = 2 * time.Minute
)

// fail has the shelf pause, and returns how long.
func (s *shelf) fail(err error, now time.Time) time.Duration {
	pause := min(firstPause<<min(s.failures, 10), mostPause)
	s.failures++
	s.problem, s.retry = err, now.Add(pause)
	return pause
}

// state is what is told of the shelf.
func (s *shelf) state(now time.Time, idle time.Duration) sandbox.PoolShelf {
	t := sandbox.PoolShelf{
		Language: s.kind.Language, Runtime: s.kind.Runtime, Image: s.kind.Named, Workspace: s.kind.Workspace, Size: s.size(now, idle),
		Ready: len(s.ready), Making: s.making, Taken: s.taken, Missed: s.missed,
	}
	if s.problem != nil {
		t.Problem = s.problem.Error()
	}
	return t
}
