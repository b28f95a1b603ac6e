package monitor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/monitor"
	"github.com/caisson-dev/caisson/sandbox"
)

// slowBoxes are sandboxes of which some take their time for a sample, and some
// never answer.
type slowBoxes struct {
	live   []sandbox.LiveSandbox
	silent map[sandbox.ID]bool
}

func (b *slowBoxes) Live() []sandbox.LiveSandbox {
	return append([]sandbox.LiveSandbox(nil), b.live...)
}

func (b *slowBoxes) Sample(ctx context.Context, id sandbox.ID) (sandbox.Sample, error) {
	at := time.Now()
	if b.silent[id] {
		<-ctx.Done()
		return sandbox.Sample{}, ctx.Err()
	}
	time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
	return sandbox.Sample{Time: at, Memory: 1, Cores: 2}, nil
}

func (b *slowBoxes) Act(context.Context, sandbox.ID, sandbox.AlertAction, string) error { return nil }

// slowStore keeps the newest sample of each sandbox, and takes its time for it.
type slowStore struct {
	mu      sync.Mutex
	newest  map[sandbox.ID]time.Time
	samples int
}

func (s *slowStore) Apply(_ context.Context, c sandbox.Transaction) error {
	time.Sleep(300 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range c.PutReadings {
		s.newest[r.Sandbox] = r.Sample.Time
		s.samples++
	}
	return nil
}

func (s *slowStore) Readings(context.Context, sandbox.ReadingFilter) ([]sandbox.Reading, error) {
	return nil, nil
}

func (s *slowStore) Alerts(context.Context, sandbox.AlertFilter) ([]sandbox.Alert, error) {
	return nil, nil
}

func (s *slowStore) Denied(context.Context, time.Time) (map[string]int, error) {
	time.Sleep(100 * time.Millisecond)
	return nil, nil //nolint:nilnil // none were refused
}

// TestSamplesAreFresh looks for ten minutes, by a clock of the test's own, whether
// the newest sample of a sandbox that answers is ever older than five seconds: while
// a third of all never answer, and the store is slow.
func TestSamplesAreFresh(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{monitor.DefaultEvery, 3 * time.Second} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { fresh(t, every) })
		})
	}
}

func fresh(t *testing.T, every time.Duration) {
	const sandboxes, oldest = 150, 5 * time.Second
	b := &slowBoxes{silent: map[sandbox.ID]bool{}}
	for i := range sandboxes {
		l := sandbox.LiveSandbox{ID: sandbox.NewID()}
		b.live, b.silent[l.ID] = append(b.live, l), i < sandboxes/3
	}
	store := &slowStore{newest: map[sandbox.ID]time.Time{}}
	m, err := monitor.New(monitor.Config{Sandboxes: b, Store: store, Every: every})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var task sync.WaitGroup
	task.Go(func() { m.Run(ctx) })
	for ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		now := time.Now()
		if now.Sub(begun) < oldest {
			continue
		}
		store.mu.Lock()
		for _, l := range b.live {
			if age := now.Sub(store.newest[l.ID]); !b.silent[l.ID] && age > oldest {
				t.Errorf("after %v the newest sample of %s is %v old", now.Sub(begun), l.ID.Short(), age)
				cancel()
			}
		}
		store.mu.Unlock()
	}
	task.Wait()
	if store.samples < sandboxes {
		t.Errorf("%d samples", store.samples)
	}
}

func TestTooSeldom(t *testing.T) {
	t.Parallel()
	if _, err := monitor.New(monitor.Config{Sandboxes: &slowBoxes{}, Store: &slowStore{}, Every: 5 * time.Second}); err == nil {
		t.Error("samples every 5 s are older than that, and were not refused")
	}
}
