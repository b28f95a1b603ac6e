package storetest

import (
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// toolCalls are counted by owner and tool, from the first one of a budget to its end,
// also over another opening, and while the clock is set.
func toolCalls(t *testing.T, open Open) {
	dir := t.TempDir()
	s := open(t, dir)
	began := time.Now().UTC().Truncate(time.Millisecond)
	set := time.Duration(0)
	call := func(owner, tool string, after time.Duration) {
		at := began.Add(set + after)
		apply(t, s, sandbox.Transaction{SpendTool: &sandbox.ToolSpend{Owner: owner, Tool: tool, At: at, Until: at.Add(time.Minute)}})
	}
	spent := func(owner, tool string, calls int, until time.Duration) {
		t.Helper()
		got, err := s.ToolSpent(t.Context(), owner, tool)
		want := sandbox.ToolSpent{Calls: calls}
		if calls > 0 {
			want.Until = began.Add(set + until)
		}
		if err != nil || got.Calls != want.Calls || !got.Until.Equal(want.Until) {
			t.Errorf("%s, %s: %+v, not %+v: %v", owner, tool, got, want, err)
		}
	}
	setClock(t, s, 0)
	for after := range 3 {
		call("ann", "search", time.Duration(after)*time.Second)
	}
	call("ann", "mail", time.Second)
	call("", "search", 2*time.Second)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	spent("ann", "search", 3, time.Minute)
	spent("ann", "mail", 1, 61*time.Second)
	spent("", "search", 1, 62*time.Second)
	spent("bob", "search", 0, 0)
	set = time.Hour
	setClock(t, s, set)
	call("ann", "search", 59*time.Second)
	spent("ann", "search", 4, time.Minute)
	call("ann", "search", 61*time.Second)
	spent("ann", "search", 1, 121*time.Second)
	spent("ann", "mail", 0, 0) // it is over, and was dropped
	spent("", "search", 1, 62*time.Second)
}
