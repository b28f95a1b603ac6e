package bridge

import (
	"context"
	"testing"

	"github.com/caisson-dev/caisson/internal/feed"
	"github.com/caisson-dev/caisson/sandbox"
)

func created(n int) []sandbox.ChangeRecord {
	r := sandbox.ChangeRecord{Exec: "e"}
	for range n {
		r.Changes = append(r.Changes, sandbox.FileChange{Path: "f", Op: sandbox.OpCreated})
	}
	return []sandbox.ChangeRecord{r}
}

// TestFeedIsBounded lets a subscriber be too slow: it is told how many it lost,
// with the next or at the end, and nobody waits for it.
func TestFeedIsBounded(t *testing.T) {
	t.Parallel()
	f := &Feed{}
	if f.listened() {
		t.Error("somebody listens already")
	}
	news := f.Subscribe(t.Context())
	f.tell("s", "e", created(feed.Room+10))
	got := 0
	for n := range news {
		if got++; n.Lost > 0 {
			t.Errorf("lost %d before the queue was full", n.Lost)
		}
		if got == feed.Room {
			break
		}
	}
	news = f.Subscribe(t.Context())
	f.tell("s", "other", created(feed.Room+3))
	first := true
	got, lost := 0, 0
	for n := range news {
		if first {
			first = false
			f.tell("s", "e", created(2)) // one finds room, and says what went before it
		}
		if n.Lost > 0 && n.Path == "" {
			lost += n.Lost
			continue
		}
		if n.Lost > 0 && n.Lost != 3 {
			t.Errorf("lost %d", n.Lost)
		}
		if !n.Provisional && got < feed.Room {
			t.Errorf("change %d is final", got)
		}
		lost += n.Lost
		if got++; got == feed.Room+1 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got != feed.Room+1 || lost != 4 {
		t.Errorf("%d came, %d were lost", got, lost)
	}
	for range f.Subscribe(context.Background()) {
		t.Error("a feed that is closed tells something")
	}
	f.tell("s", "e", created(1))
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	(*Feed)(nil).tell("s", "e", created(1))
}
