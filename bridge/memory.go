package bridge

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// Memory is a [Ledger] in memory, for what goes with its process: a one-shot's.
// The zero value is empty and ready.
type Memory struct {
	mu      sync.Mutex
	states  map[string]sandbox.FileState
	records []sandbox.ChangeRecord
	places  map[string]Place
	packs   []Pack
}

var _ Ledger = (*Memory)(nil)

// States returns what is known of paths.
func (m *Memory) States(_ context.Context, paths []string) (map[string]sandbox.FileState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]sandbox.FileState, len(paths))
	for _, p := range paths {
		if s, ok := m.states[p]; ok {
			out[p] = s
		}
	}
	return out, nil
}

// Below returns what is known below a folder.
func (m *Memory) Below(_ context.Context, dir string) (map[string]sandbox.FileState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]sandbox.FileState{}
	for p, s := range m.states {
		if below(p, dir) {
			out[p] = s
		}
	}
	return out, nil
}

func below(p, dir string) bool {
	if dir == "." {
		return p != "."
	}
	return strings.HasPrefix(p, dir) && len(p) > len(dir) && p[len(dir)] == '/'
}

// SameFile returns the known paths of an inode.
func (m *Memory) SameFile(_ context.Context, inode uint64) (map[string]sandbox.FileState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]sandbox.FileState{}
	for p, s := range m.states {
		if s.Inode == inode {
			out[p] = s
		}
	}
	return out, nil
}

// Find returns where contents are kept.
func (m *Memory) Find(_ context.Context, sums []string) (map[string]Place, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]Place{}
	for _, s := range sums {
		if p, ok := m.places[s]; ok {
			out[s] = p
		}
	}
	return out, nil
}

// Commit adds an entry.
func (m *Memory) Commit(_ context.Context, e *Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.states == nil {
		m.states, m.places = map[string]sandbox.FileState{}, map[string]Place{}
	}
	for p, s := range e.Set {
		if s.Kind == sandbox.KindNone {
			delete(m.states, p)
			continue
		}
		m.states[p] = s
	}
	for _, r := range e.Records {
		r.ID = int64(len(m.records) + 1)
		m.records = append(m.records, *r)
	}
	if e.Pack != nil {
		if i := slices.IndexFunc(m.packs, func(p Pack) bool { return p.Name == e.Pack.Name }); i >= 0 {
			m.packs[i].Size = max(m.packs[i].Size, e.Pack.Size)
		} else {
			m.packs = append(m.packs, *e.Pack)
		}
		maps.Copy(m.places, e.Places)
	}
	if len(e.Drop) > 0 {
		m.packs = slices.DeleteFunc(m.packs, func(p Pack) bool { return slices.Contains(e.Drop, p.Name) })
		maps.DeleteFunc(m.places, func(_ string, p Place) bool { return slices.Contains(e.Drop, p.Pack) })
	}
	return nil
}

// Records returns records in their order.
func (m *Memory) Records(_ context.Context, f RecordFilter) ([]sandbox.ChangeRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []sandbox.ChangeRecord
	for _, r := range m.records {
		if r.ID >= f.From && (f.Until == 0 || r.ID < f.Until) && (f.Exec == "" || concerns(r, f.Exec)) {
			out = append(out, r)
		}
	}
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[len(out)-f.Limit:]
	}
	return out, nil
}

// concerns reports whether an exec has, or may have, a share in a record.
func concerns(r sandbox.ChangeRecord, exec sandbox.ID) bool {
	return r.Exec == exec || slices.ContainsFunc(r.Changes, func(c sandbox.FileChange) bool { return slices.Contains(c.Execs, exec) })
}

// Kept returns the packs.
func (m *Memory) Kept(context.Context) ([]Pack, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.packs), nil
}

// Copy is not supported.
func (m *Memory) Copy(context.Context, string) error {
	return sandbox.Errorf(sandbox.Unsupported, "what is known in memory goes with it")
}

// Close does nothing.
func (m *Memory) Close() error { return nil }
