package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-dev/caisson/sandbox"
)

// Set is the tools that there are. It does not change, but for what its sources have,
// and is safe for concurrent use. A nil one is empty.
type Set struct {
	tools   map[string]*tool
	sources []Source
	seen    *seen // of sources
}

// tool is one of them, with what its calls share.
type tool struct {
	sandbox.Callable
	parameters, result *jsonschema.Resolved // nil lets everything pass
	turns              chan struct{}
	offered            sandbox.Tool // by a source: as it was before its defaults
}

// New checks tools and makes a set of them. Errors: Invalid, Conflict where two have
// one name.
func New(callables ...sandbox.Callable) (*Set, error) {
	return (*Set)(nil).With(callables...)
}

// With is the set with further tools. Its errors are those of [New].
func (s *Set) With(callables ...sandbox.Callable) (*Set, error) {
	if len(callables) == 0 {
		return s, nil
	}
	all := &Set{tools: map[string]*tool{}}
	if s != nil {
		maps.Copy(all.tools, s.tools)
	}
	inside := all.inside()
	for _, c := range callables {
		t, err := newTool(c)
		if err != nil {
			return nil, err
		}
		if other, taken := inside[Inside(c.Name)]; taken {
			return nil, sandbox.Errorf(sandbox.Conflict, "two tools are called %s", c.Name).WithHint("give one another name than %s", other)
		}
		inside[Inside(c.Name)], all.tools[c.Name] = c.Name, t
	}
	return all, nil
}

// inside are the names of tools, by those that they have in Python and Node.
func (s *Set) inside() map[string]string {
	names := map[string]string{}
	for name := range s.tools {
		names[Inside(name)] = name
	}
	return names
}

// Inside is a tool's name in Python and Node.
func Inside(name string) string { return strings.ReplaceAll(name, "-", "_") }

func newTool(c sandbox.Callable) (t *tool, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Call == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "nothing answers for tool %s", c.Name)
	}
	offered := c.Tool
	c.Tool = c.WithDefaults()
	t = &tool{Callable: c, turns: make(chan struct{}, c.Concurrency), offered: offered}
	if t.parameters, err = compile(c.Name, "parameters", c.Parameters); err != nil {
		return nil, err
	}
	if s := t.parameters; s != nil && s.Schema().Type != "object" && (s.Schema().Type != "" || len(s.Schema().Types) > 0) {
		return nil, sandbox.Errorf(sandbox.Invalid, "tool %s: its parameters are no object", c.Name).WithHint("write {type: object, properties: {…}}")
	}
	t.result, err = compile(c.Name, "result", c.Result)
	return t, err
}

func compile(name, what string, schema json.RawMessage) (*jsonschema.Resolved, error) {
	if len(schema) == 0 {
		return nil, nil //nolint:nilnil // no schema lets everything pass
	}
	wrong := func(err error) error {
		return sandbox.Errorf(sandbox.Invalid, "tool %s: its %s are no JSON Schema: %w", name, what, err).WithHint("write one of draft 2020-12, or leave it out")
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, wrong(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, wrong(err)
	}
	return r, nil
}

// Only is the set of those tools of s that have one of the names; nil names all.
// Errors: NotFound.
func (s *Set) Only(names []string) (*Set, error) {
	if names == nil {
		return s, nil
	}
	some := &Set{tools: map[string]*tool{}}
	for _, name := range names {
		t := s.find(name)
		if t == nil {
			return nil, unknown(s, name)
		}
		some.tools[name] = t
	}
	return some, nil
}

func (s *Set) find(name string) *tool {
	if s == nil {
		return nil
	}
	return s.tools[name]
}

// unknown says that a program asked for a tool that there is not.
func unknown(s *Set, name string) error {
	err := sandbox.Errorf(sandbox.NotFound, "there is no tool %q", cut(name))
	if there := s.Tools(); len(there) > 0 {
		names := make([]string, len(there))
		for i, t := range there {
			names[i] = t.Name
		}
		return err.WithHint("call one of %s", strings.Join(names, ", "))
	}
	return err
}

// cut shortens a name of a stranger's.
func cut(name string) string {
	if len(name) > 2*sandbox.MaxToolName {
		name = strings.ToValidUTF8(name[:2*sandbox.MaxToolName], "") + "…"
	}
	return name
}

// Tools are the declarations, by name.
func (s *Set) Tools() []sandbox.Tool {
	if s == nil {
		return nil
	}
	list := make([]sandbox.Tool, 0, len(s.tools))
	for _, name := range slices.Sorted(maps.Keys(s.tools)) {
		list = append(list, s.tools[name].Tool)
	}
	return list
}

// decoded is JSON as it is judged and handed on: what reads it next reads the same,
// whatever it makes of a key that stands there twice.
func decoded(text []byte) (canonical json.RawMessage, value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, nil, err
	}
	if _, err := d.Token(); err == nil {
		return nil, nil, fmt.Errorf("there is more behind its end")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), value, nil
}

// fits holds JSON against a schema, whose library knows numbers as float64 alone.
func fits(schema *jsonschema.Resolved, text json.RawMessage) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	return schema.Validate(value)
}
