package tools

import (
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// rate holds the callers of a tool to so many calls in a time, each owner for itself:
// a call takes a token, which comes back after that time.
type rate struct {
	limit sandbox.ToolRate

	mu    sync.Mutex
	taken map[string][]time.Time // by owner: when, the oldest first
}

// mostOwners bounds what is remembered of owners that call no more.
const mostOwners = 1024

// take takes a token, or says how long there is none.
func (r *rate) take(owner string, now time.Time) (wait time.Duration, ok bool) {
	if r.limit.Calls == 0 {
		return 0, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken == nil {
		r.taken = map[string][]time.Time{}
	}
	if len(r.taken) >= mostOwners {
		for o, times := range r.taken {
			if r.fresh(times, now) == len(times) {
				delete(r.taken, o)
			}
		}
	}
	times := r.taken[owner]
	times = times[r.fresh(times, now):]
	if len(times) >= r.limit.Calls {
		r.taken[owner] = times
		return times[0].Add(time.Duration(r.limit.Per)).Sub(now), false
	}
	r.taken[owner] = append(times, now)
	return 0, true
}

// fresh is where those begin that count still.
func (r *rate) fresh(times []time.Time, now time.Time) int {
	for i, at := range times {
		if now.Sub(at) < time.Duration(r.limit.Per) {
			return i
		}
	}
	return len(times)
}

// share counts the bytes that the calls of one exec hold here.
type share struct {
	mu   sync.Mutex
	held int64
}

// mostHeld bounds those of all calls of an exec: some that are as large as they may be.
const mostHeld = 4 * int64(sandbox.MaxToolData)

// take takes n bytes more, where there are as many.
func (s *share) take(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held+int64(n) > mostHeld {
		return false
	}
	s.held += int64(n)
	return true
}

func (s *share) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= int64(n)
}
