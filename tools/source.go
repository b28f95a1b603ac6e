package tools

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// Source has tools that come and go, as those of an MCP server do. Its methods are
// safe for concurrent use.
type Source interface {
	// Tools are those that there are now. Who asks first may wait for them, until ctx
	// is done.
	Tools(ctx context.Context) []sandbox.Callable
}

// From is the set with sources beside its own tools: [Set.Now] looks what they have.
// What cannot be offered of that is told to log once, and left out.
func (s *Set) From(log *slog.Logger, sources ...Source) *Set {
	with := &Set{sources: sources, seen: &seen{log: log, tools: map[string]*tool{}}}
	if s != nil {
		with.tools = s.tools
	}
	return with
}

// Now is the set of the tools that there are now.
func (s *Set) Now(ctx context.Context) *Set {
	if s == nil || len(s.sources) == 0 {
		return s
	}
	all := &Set{tools: maps.Clone(s.tools)}
	if all.tools == nil {
		all.tools = map[string]*tool{}
	}
	inside := all.inside()
	for _, c := range s.offered(ctx) {
		if t := s.seen.tool(c, inside[Inside(c.Name)]); t != nil {
			inside[Inside(c.Name)], all.tools[c.Name] = c.Name, t
		}
	}
	return all
}

// offered asks all sources at once.
func (s *Set) offered(ctx context.Context) []sandbox.Callable {
	lists := make([][]sandbox.Callable, len(s.sources))
	var asking sync.WaitGroup
	for i, source := range s.sources {
		asking.Go(func() { lists[i] = source.Tools(ctx) })
	}
	asking.Wait()
	return slices.Concat(lists...)
}

// seen keeps what sources have offered: what the calls of a tool share stays while it
// is the same tool.
type seen struct {
	log *slog.Logger

	mu    sync.Mutex
	tools map[string]*tool // by name
}

// tool is what is offered as a tool; nil where it cannot be. other is the tool that
// has its name already.
func (s *seen) tool(c sandbox.Callable, other string) *tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.tools[c.Name]
	if old != nil && other == "" && reflect.DeepEqual(old.offered, c.Tool) {
		if old.Call == nil {
			return nil
		}
		return old
	}
	t, err := newTool(c)
	if other != "" {
		err = errors.Join(err, sandbox.Errorf(sandbox.Conflict, "two tools are called %s", c.Name))
	}
	if err != nil {
		if old == nil || old.Call != nil || !reflect.DeepEqual(old.offered, c.Tool) {
			s.log.Warn("a tool of a server is left out", "tool", cut(c.Name), "error", shortened(err.Error()))
		}
		s.tools[c.Name] = &tool{offered: c.Tool}
		return nil
	}
	if old != nil && old.Call != nil && cap(old.turns) == cap(t.turns) {
		t.turns = old.turns
	}
	s.tools[c.Name] = t
	return t
}
