package tools

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Spent counts the calls of tools, by owner and tool, for bounds that outlast an exec.
// The zero value is ready; it is safe for concurrent use. Rates are forgotten with its
// process, and budgets where Kept is nil.
type Spent struct {
	// Kept is asked before the first call of an owner's what a process before this one
	// has counted for the tool's budget.
	Kept func(ctx context.Context, owner, tool string) (sandbox.ToolSpent, error)

	mu  sync.Mutex
	all map[string]map[string]*spent // by owner and tool
}

// spent is what one has called: the newest calls that its rate counts, the oldest
// first, and how many its budget has counted, which begins anew at until.
type spent struct {
	rate  sandbox.ToolRate
	times []time.Time
	until time.Time
	calls int
}

// What is remembered of owners that call no more, and of one owner's tools, is bounded.
const mostOwners, mostTools = 1024, 1024

// recall takes up what was counted for a budget before. Errors: those of Kept.
func (s *Spent) recall(ctx context.Context, owner string, t sandbox.Tool, now time.Time) error {
	if s.Kept == nil || t.OwnerBudget.Calls == 0 {
		return nil
	}
	s.mu.Lock()
	known := s.all[owner][t.Name] != nil
	s.mu.Unlock()
	if known {
		return nil
	}
	kept, err := s.Kept(ctx, owner, t.Name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[owner][t.Name] != nil {
		return nil // another call was faster
	}
	one, err := s.ofLocked(owner, t.Name, now)
	if err == nil {
		one.calls, one.until = kept.Calls, now.Add(kept.Until.Sub(now)) // and goes on by a clock that nobody sets
	}
	return err
}

// take counts a call, or says what has been spent, and returns what is to be kept of
// it. Errors: Exhausted.
func (s *Spent) take(owner string, t sandbox.Tool, now time.Time) (*sandbox.ToolSpend, error) {
	if t.Rate.Calls == 0 && t.OwnerBudget.Calls == 0 {
		return nil, nil //nolint:nilnil // nothing is
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, err := s.ofLocked(owner, t.Name, now)
	if err != nil {
		return nil, err
	}
	one.rate = t.Rate // as declared now
	one.drop(now)
	over := func(r sandbox.ToolRate, until time.Time) error {
		return sandbox.Errorf(sandbox.Exhausted, "tool %s: %d calls in %s are made", t.Name, r.Calls, r.Per).
			WithHint("call it again in %s", until.Sub(now).Round(time.Millisecond))
	}
	if n := t.Rate.Calls; n > 0 && len(one.times) >= n {
		return nil, over(t.Rate, one.times[len(one.times)-n].Add(time.Duration(t.Rate.Per)))
	}
	if n := t.OwnerBudget.Calls; n > 0 && one.calls >= n {
		return nil, over(t.OwnerBudget, one.until)
	}
	if t.Rate.Calls > 0 {
		one.times = append(one.times, now)
	}
	if t.OwnerBudget.Calls == 0 {
		return nil, nil //nolint:nilnil // nothing is
	}
	until := now.Add(time.Duration(t.OwnerBudget.Per))
	if one.calls == 0 {
		one.until = until
	}
	one.calls++
	return &sandbox.ToolSpend{Owner: owner, Tool: t.Name, At: now, Until: until}, nil
}

// ofLocked finds what an owner has called of a tool. Errors: Exhausted where there are
// too many tools, whose names may be the owner's own.
func (s *Spent) ofLocked(owner, tool string, now time.Time) (*spent, error) {
	stale := func(_ string, one *spent) bool {
		one.drop(now)
		return one.calls == 0 && len(one.times) == 0
	}
	theirs := s.all[owner]
	if one := theirs[tool]; one != nil {
		return one, nil
	}
	if len(theirs) >= mostTools {
		if maps.DeleteFunc(theirs, stale); len(theirs) >= mostTools {
			return nil, sandbox.Errorf(sandbox.Exhausted, "tool %s: %d other tools with a rate or a budget were called", tool, mostTools).WithHint("call fewer, or call it later")
		}
	}
	if theirs == nil {
		if len(s.all) >= mostOwners {
			maps.DeleteFunc(s.all, func(_ string, tools map[string]*spent) bool {
				maps.DeleteFunc(tools, stale)
				return len(tools) == 0
			})
		}
		if s.all == nil {
			s.all = map[string]map[string]*spent{}
		}
		theirs = map[string]*spent{}
		s.all[owner] = theirs
	}
	one := &spent{}
	theirs[tool] = one
	return one, nil
}

// drop forgets what counts no more.
func (o *spent) drop(now time.Time) {
	fresh := slices.IndexFunc(o.times, func(at time.Time) bool { return now.Sub(at) < time.Duration(o.rate.Per) })
	if fresh < 0 {
		fresh = len(o.times)
	}
	o.times = o.times[fresh:]
	if !now.Before(o.until) {
		o.calls = 0
	}
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
