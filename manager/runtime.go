package manager

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// choose is [Choose] for callers of the manager.
func (m *Manager) choose(ctx context.Context, name string) (string, error) {
	return Choose(ctx, m.cfg.Runtimes, m.cfg.Runtime, name)
}

// Choose settles which runtime a caller gets who asks for one by name: "" is the
// usual one, [runtimes.Auto] the first that can be used here and that isolates.
// Errors: Invalid for a name that there is not; for auto, Unavailable with the
// reasons in one line where none can be used.
func Choose(ctx context.Context, all *runtimes.Registry, usual, name string) (string, error) {
	name = cmp.Or(name, usual)
	switch {
	case name == "":
		return all.Names()[0], nil
	case name != runtimes.Auto:
		_, err := all.Runtime(name)
		return name, err
	}
	var why []string
	for _, name := range all.Names() {
		rt, err := all.Runtime(name)
		if err == nil {
			var caps runtimes.Capabilities
			if caps, err = rt.Capabilities(ctx); err == nil && caps.Isolation != "none" {
				return name, nil
			}
		}
		if err != nil {
			why = append(why, name+": "+strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	return "", sandbox.Errorf(sandbox.Unavailable, "no runtime can be used here: %s", strings.Join(why, "; ")).
		WithHint("install bubblewrap (sudo apt-get install bubblewrap), or set up Docker; see: caisson doctor")
}

// runtimeOf returns the runtime of something that is there. The name is "" in
// what was kept when there was one runtime, which is the first.
func (m *Manager) runtimeOf(name string) (runtimes.Runtime, error) {
	if name != "" && !slices.Contains(m.cfg.Runtimes.Names(), name) {
		return nil, sandbox.Errorf(sandbox.Unsupported, "it was made by the runtime %s, which this caisson does not have", name).
			WithHint("it has: %s; use the program that made it", strings.Join(m.cfg.Runtimes.Names(), ", "))
	}
	return m.cfg.Runtimes.Runtime(name)
}

// capsAge is how long capabilities are good for a session, which is remembered before
// anything is made for it: asking an engine takes longer than all the rest of that.
const capsAge = 10 * time.Second

// told are the capabilities of a runtime, as they were told.
type told struct {
	caps runtimes.Capabilities
	at   time.Time
}

// capabilities are those of the runtime of that name, at most capsAge old.
func (m *Manager) capabilities(ctx context.Context, name string, rt runtimes.Runtime) (runtimes.Capabilities, error) {
	if last, ok := m.told.Load(name); ok && m.cfg.Now().Sub(last.(told).at) < capsAge {
		return last.(told).caps, nil
	}
	caps, err := rt.Capabilities(ctx)
	if err == nil {
		m.told.Store(name, told{caps, m.cfg.Now()})
	}
	return caps, err
}

// nameOf is the runtime's of a session, which may be from when there was one.
func (m *Manager) nameOf(s sandbox.Session) string {
	return cmp.Or(s.Runtime, m.cfg.Runtimes.Names()[0])
}

// attach finds a sandbox by its handle.
func (m *Manager) attach(ctx context.Context, h runtimes.Handle) (runtimes.Instance, error) {
	rt, err := m.runtimeOf(h.Runtime)
	if err != nil {
		return nil, err
	}
	return rt.Attach(ctx, h)
}

// list returns what all runtimes have made. One that cannot be asked is an error
// where it is the default, and logged where it is another: its engine may never
// have been here. What the others have is returned all the same.
func (m *Manager) list(ctx context.Context) (all []runtimes.Handle, err error) {
	usual := cmp.Or(m.cfg.Runtime, m.cfg.Runtimes.Names()[0])
	for _, name := range m.cfg.Runtimes.Names() {
		rt, failed := m.cfg.Runtimes.Runtime(name)
		if failed == nil {
			var handles []runtimes.Handle
			handles, failed = rt.List(ctx)
			all = append(all, handles...)
		}
		switch {
		case failed == nil:
		case name == usual:
			err = failed
		default:
			m.cfg.Log.Info("a runtime's sandboxes are not known", "runtime", name, "error", failed)
		}
	}
	return all, err
}
