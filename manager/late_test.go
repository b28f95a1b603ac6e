package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// lateHolder is a runtime with a volume of a dead process, and what the engine
// made for that process after its end: it holds the volume, and the first listing
// does not see it.
type lateHolder struct {
	runtimes.Runtime
	session string
	left    map[sandbox.ID]runtimes.Handle
	listed  int
}

func newLateHolder(rt runtimes.Runtime, session string) *lateHolder {
	l := &lateHolder{Runtime: rt, session: session, left: map[sandbox.ID]runtimes.Handle{}}
	for kind, id := range map[string]sandbox.ID{runtimes.KindVolume: sandbox.NewID(), runtimes.KindSandbox: sandbox.NewID()} {
		l.left[id] = runtimes.Handle{Version: runtimes.HandleVersion, Kind: kind, ID: id, Holder: "dead", Session: session, Created: time.Unix(0, 0)}
	}
	return l
}

func (l *lateHolder) List(ctx context.Context) ([]runtimes.Handle, error) {
	handles, err := l.Runtime.List(ctx)
	l.listed++
	for _, kind := range []string{runtimes.KindSandbox, runtimes.KindVolume} {
		for _, h := range l.left {
			if h.Kind == kind && (kind == runtimes.KindVolume || l.listed > 1) {
				handles = append(handles, h)
			}
		}
	}
	return handles, err
}

func (l *lateHolder) Attach(ctx context.Context, h runtimes.Handle) (runtimes.Instance, error) {
	if h.Kind == runtimes.KindVolume || l.left[h.ID].ID != "" {
		return lateInstance{l: l, h: h}, nil
	}
	return l.Runtime.Attach(ctx, h)
}

type lateInstance struct {
	runtimes.Instance // nil: nothing else is asked of it
	l                 *lateHolder
	h                 runtimes.Handle
}

func (i lateInstance) Destroy(context.Context) error {
	for _, h := range i.l.left {
		if i.h.Kind == runtimes.KindVolume && h.Kind == runtimes.KindSandbox {
			return sandbox.Errorf(sandbox.Conflict, "the volume is in use")
		}
	}
	delete(i.l.left, i.h.ID)
	return nil
}

// What the engine makes for a dead process after the listing does not keep a
// sweep, or the end of a session, from removing the volume that it holds.
func TestHeldByWhatCameLate(t *testing.T) {
	t.Parallel()
	t.Run("sweep", func(t *testing.T) {
		t.Parallel()
		var late *lateHolder
		m, _ := light(t, func(c *manager.Config, rt *runtimetest.Memory) {
			late = newLateHolder(rt, "")
			c.Runtimes, c.Alive = runtimes.Only(runtimetest.MemoryName, late), func(holder string) bool { return holder != "dead" }
		})
		got, err := m.Sweep(t.Context(), false, false)
		if err != nil || len(late.left) > 0 || len(got) != 2 {
			t.Errorf("%v, %+v; left %v", err, got, late.left)
		}
		for _, o := range got {
			if !o.Removed || o.Problem != nil {
				t.Errorf("%+v", o)
			}
		}
	})
	t.Run("session", func(t *testing.T) {
		t.Parallel()
		var late *lateHolder
		m, _ := remembering(t, func(c *manager.Config, rt *runtimetest.Memory) {
			late = newLateHolder(anyWorkspace{rt}, "work")
			c.Runtimes, c.Alive = runtimes.Only(runtimetest.MemoryName, late), func(holder string) bool { return holder != "dead" }
		})
		if _, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work"}); err != nil {
			t.Fatal(err)
		}
		if err := m.RemoveSession(t.Context(), "work", false); err != nil {
			t.Error(err)
		}
		for _, h := range late.left {
			if h.Kind == runtimes.KindSandbox {
				t.Errorf("left %+v", h)
			}
		}
	})
}
