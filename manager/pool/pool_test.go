package pool_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/manager/pool"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// python is what runs of Python are, of the image that there is.
var python = sandbox.Spec{Language: "python", Image: sandbox.Image{ID: "sha256:1"}}

// maker makes sandboxes in memory.
type maker struct {
	runtimetest.Memory
	fails    atomic.Bool
	made     atomic.Int32 // and begun to be
	underWay atomic.Int32
	most     atomic.Int32 // that were under way at once
	takes    time.Duration
}

func (m *maker) make(ctx context.Context, k pool.Kind) (runtimes.Instance, sandbox.Image, error) {
	m.made.Add(1)
	m.most.Store(max(m.most.Load(), m.underWay.Add(1)))
	defer m.underWay.Add(-1)
	select {
	case <-time.After(m.takes):
	case <-ctx.Done():
		return nil, sandbox.Image{}, ctx.Err()
	}
	if m.fails.Load() {
		return nil, sandbox.Image{}, errors.New("no engine")
	}
	spec, id := k.Spec(), sandbox.NewID()
	spec.Image, spec.Identity = python.Image, sandbox.IdentityFor(id)
	spec.Workspace = sandbox.Workspace{}
	plan, err := m.Plan(ctx, spec)
	if err != nil {
		return nil, spec.Image, err
	}
	inst, err := m.Create(ctx, id, plan)
	return inst, spec.Image, err
}

func (m *maker) left(t *testing.T) int {
	t.Helper()
	list, err := m.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// filled runs a pool of size sandboxes of Python for do, in a time of its own. Nothing
// may be left of it.
func filled(t *testing.T, size int, m *maker, do func(*testing.T, *pool.Pool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, err := pool.New(pool.Config{Wants: []sandbox.PoolWant{{Language: "python", Runtime: "memory", Size: size}}, Make: m.make, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		time.Sleep(time.Minute)
		do(t, p)
		cancel()
		<-done
		if n := m.left(t); n > 0 {
			t.Errorf("%d sandboxes are left", n)
		}
		if p.Take(t.Context(), "memory", "", python) != nil {
			t.Error("taken from a pool that is closed")
		}
	})
}

func shelf(t *testing.T, p *pool.Pool, at int) sandbox.PoolShelf {
	t.Helper()
	list, err := p.Shelves(t.Context())
	if err != nil || len(list) <= at {
		t.Fatalf("%v, %+v", err, list)
	}
	return list[at]
}

// As many are ready as are wanted, each is taken by one, and is destroyed once it is
// over. What was taken is replaced by few at a time.
func TestTake(t *testing.T) {
	t.Parallel()
	m := &maker{takes: time.Second}
	filled(t, 5, m, func(t *testing.T, p *pool.Pool) {
		if s := shelf(t, p, 0); s.Ready != 5 || s.Size != 5 || m.made.Load() != 5 {
			t.Errorf("ready is %+v, %d were made", s, m.made.Load())
		}
		seen := map[sandbox.ID]bool{}
		var taken []box.Ready
		for range 5 {
			r := p.Take(t.Context(), "memory", "", python)
			if r == nil || seen[r.Handle().ID] {
				t.Fatalf("taken %v, of %v", r, seen)
			}
			seen[r.Handle().ID] = true
			taken = append(taken, r)
		}
		if r := p.Take(t.Context(), "memory", "", python); r != nil {
			t.Errorf("taken from an empty pool: %+v", r.Handle())
		}
		time.Sleep(time.Minute)
		if s := shelf(t, p, 0); s.Ready != 5 || s.Taken != 5 || s.Missed != 1 || m.left(t) != 10 {
			t.Errorf("refilled to %+v, and %d there", s, m.left(t))
		}
		if most := m.most.Load(); most != 2 {
			t.Errorf("%d were made at once by two workers", most)
		}
		for _, r := range taken {
			if err := r.Over(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := m.left(t); n != 5 {
			t.Errorf("%d are there after five were over", n)
		}
	})
}

// While somebody asks, the machine is theirs; but not for ever.
func TestCalm(t *testing.T) {
	t.Parallel()
	m := &maker{}
	filled(t, 40, m, func(t *testing.T, p *pool.Pool) {
		before := m.made.Load()
		take := func(n int) {
			for range n {
				if r := p.Take(t.Context(), "memory", "", python); r == nil || r.Over() != nil {
					t.Fatal("none is ready")
				}
				time.Sleep(40 * time.Millisecond)
			}
		}
		take(10)
		if n := m.made.Load() - before; n > 0 {
			t.Errorf("%d were made while somebody asked", n)
		}
		for range 5 {
			take(10)
		}
		if m.made.Load() == before {
			t.Error("none was made while somebody asked all the time")
		}
	})
}

// The pool follows what is asked for: another kind is kept once it was, as many as
// were; and what nobody asks for is let down.
func TestDemand(t *testing.T) {
	t.Parallel()
	m := &maker{}
	filled(t, 3, m, func(t *testing.T, p *pool.Pool) {
		roomy := python
		roomy.Limits.Tmp = sandbox.GiB
		for _, other := range []sandbox.Spec{{Language: "node"}, {Language: "python", Keep: true}, {Language: "python", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: "/x"}}} {
			if p.Take(t.Context(), "memory", "", other) != nil {
				t.Errorf("taken for %+v", other)
			}
		}
		bare := python
		bare.Image.ID = "sha256:2"
		if p.Take(t.Context(), "memory", "", bare) != nil || p.Take(t.Context(), "another", "", python) != nil {
			t.Error("taken for another image, or another runtime")
		}
		for range 2 {
			if p.Take(t.Context(), "memory", "", roomy) != nil {
				t.Error("taken for what nobody has asked for yet")
			}
		}
		time.Sleep(time.Minute)
		if s := shelf(t, p, 1); s.Ready != 2 || s.Missed != 2 {
			t.Errorf("after two were asked for: %+v", s)
		}
		limited := roomy
		limited.Limits.Memory, limited.Limits.CPUs, limited.Network = sandbox.GiB, 2, sandbox.Network{Mode: sandbox.NetworkAllow}
		if r := p.Take(t.Context(), "memory", "", limited); r == nil {
			t.Error("what is settled at a claim keeps it from being taken")
		} else if err := r.Over(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		list, err := p.Shelves(t.Context())
		if err != nil || len(list) != 1 || list[0].Ready != 1 || m.left(t) != 1 {
			t.Errorf("after an hour without a question: %v, %+v, %d there", err, list, m.left(t))
		}
		before := m.made.Load()
		time.Sleep(24 * time.Hour)
		if n := m.made.Load() - before; n > 0 {
			t.Errorf("%d were made for nobody", n)
		}
		r := p.Take(t.Context(), "memory", "", python)
		if r == nil || r.Over() != nil {
			t.Fatal("none is ready after all")
		}
		time.Sleep(time.Minute)
		if s := shelf(t, p, 0); s.Ready != 3 {
			t.Errorf("after it was asked again: %+v", s)
		}
	})
}

// Images that somebody names are kept as other kinds are, with a language and without.
func TestNamedImages(t *testing.T) {
	t.Parallel()
	m := &maker{}
	filled(t, 2, m, func(t *testing.T, p *pool.Pool) {
		bare := sandbox.Spec{Image: python.Image}
		if p.Take(t.Context(), "memory", "", bare) != nil {
			t.Error("taken for neither a language nor an image")
		}
		for range 3 {
			if p.Take(t.Context(), "memory", "mine:1", python) != nil || p.Take(t.Context(), "memory", "mine:1", bare) != nil {
				t.Error("taken for an image that nobody has asked for yet")
			}
		}
		time.Sleep(time.Minute)
		for at, language := range []string{"python", ""} {
			if s := shelf(t, p, at+1); s.Image != "mine:1" || s.Language != language || s.Ready != 2 || s.Missed != 3 {
				t.Errorf("after three were asked for: %+v", s)
			}
		}
		seen := map[sandbox.ID]bool{}
		for _, spec := range []sandbox.Spec{python, bare} {
			r := p.Take(t.Context(), "memory", "mine:1", spec)
			if r == nil || seen[r.Handle().ID] || r.Over() != nil {
				t.Fatalf("none is ready for %+v", spec)
			}
			seen[r.Handle().ID] = true
		}
		if s := shelf(t, p, 0); s.Taken != 0 || s.Ready != 2 {
			t.Errorf("of the language's own image: %+v", s)
		}
	})
}

// Of other kinds no more than a few are kept, those that were asked for last.
func TestFewKinds(t *testing.T) {
	t.Parallel()
	m := &maker{}
	filled(t, 1, m, func(t *testing.T, p *pool.Pool) {
		for n := range 10 {
			other := python
			other.Limits.Tmp = sandbox.Bytes(n+1) * sandbox.GiB
			p.Take(t.Context(), "memory", "", other)
			time.Sleep(time.Second)
		}
		list, err := p.Shelves(t.Context())
		if err != nil || len(list) != 4 || m.left(t) != 4 {
			t.Errorf("%v, %+v, %d there", err, list, m.left(t))
		}
	})
}

// What fails is tried again later and later, and says why.
func TestBackOff(t *testing.T) {
	t.Parallel()
	m := &maker{}
	m.fails.Store(true)
	filled(t, 1, m, func(t *testing.T, p *pool.Pool) {
		if n := m.made.Load(); n < 3 || n > 8 {
			t.Errorf("tried %d times in a minute", n)
		}
		before := m.made.Load()
		time.Sleep(time.Hour)
		if n := m.made.Load() - before; n < 5 || n > 31 {
			t.Errorf("tried %d times in an hour", n)
		}
		if s := shelf(t, p, 0); s.Problem != "no engine" || s.Ready != 0 {
			t.Errorf("said of it: %+v", s)
		}
		m.fails.Store(false)
		time.Sleep(3 * time.Minute)
		if s := shelf(t, p, 0); s.Problem != "" || s.Ready != 1 {
			t.Errorf("once it goes again: %+v", s)
		}
	})
}

// One that has died is given up and replaced.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	m := &maker{}
	filled(t, 1, m, func(t *testing.T, p *pool.Pool) {
		list, err := m.List(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %+v", err, list)
		}
		m.Break(list[0].ID)
		time.Sleep(time.Minute)
		r := p.Take(t.Context(), "memory", "", python)
		if r == nil || r.Handle().ID == list[0].ID || r.Over() != nil {
			t.Errorf("taken after one had died: %+v", r)
		}
	})
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	m := &maker{}
	for name, cfg := range map[string]pool.Config{
		"nobody makes": {}, "no runtime": {Make: m.make, Wants: []sandbox.PoolWant{{Language: "python", Size: 1}}},
		"none": {Make: m.make, Wants: []sandbox.PoolWant{{Language: "python", Runtime: "memory"}}},
	} {
		if _, err := pool.New(cfg); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
