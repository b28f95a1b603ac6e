package shell

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// variable is what a name holds. Values are never changed in place, so states
// share them.
type variable struct {
	val      text
	list     []text          // an indexed array
	table    map[string]text // an associative array
	isArray  bool
	isTable  bool
	exported bool
	ref      bool // declare -n: val is another variable's name
	integer  bool
	fold     byte // 'u' or 'l': declare -u, -l
}

// words returns the values of an array, or of a scalar as an array of one.
func (v *variable) words() []text {
	switch {
	case v == nil:
		return nil
	case v.isArray:
		return v.list
	case v.isTable:
		out := make([]text, 0, len(v.table))
		for _, k := range slices.Sorted(maps.Keys(v.table)) {
			out = append(out, v.table[k])
		}
		return out
	}
	return []text{v.val}
}

func (v *variable) scalar() text {
	switch {
	case v.isArray:
		if len(v.list) == 0 {
			return text{}
		}
		return v.list[0]
	case v.isTable:
		return v.table["0"]
	}
	return v.val
}

// fromSelf is the origin of the script's own name.
const fromSelf = "argv0"

// function is a declared function and the text that it was found in.
type function struct {
	name   string
	body   *syntax.Stmt
	b      *facts.Builder
	called bool
}

// state is what a shell would know at one place of the script.
type state struct {
	vars    map[string]*variable
	funcs   map[string][]*function // alternatives over branches
	aliases map[string]text
	args    []text
	more    bool // arguments may follow args, each of which is rest
	rest    text
	arg0    text
	cwd     string // "" where not known
	dead    bool   // behind exit or return
}

func newState() *state {
	return &state{
		vars:    map[string]*variable{},
		funcs:   map[string][]*function{},
		aliases: map[string]text{},
		more:    true,
		rest:    unassigned.tainted("argv"),
		arg0:    opaque(fromSelf),
	}
}

// clone copies what assignments replace.
func (s *state) clone() *state {
	c := *s
	c.vars = maps.Clone(s.vars)
	c.funcs = maps.Clone(s.funcs)
	c.aliases = maps.Clone(s.aliases)
	return &c
}

// merge makes s what it may be when either s or o was the way taken.
func (s *state) merge(o *state) {
	if o.dead || s.dead {
		if s.dead && !o.dead {
			*s = *o
		}
		return
	}
	for name, v := range o.vars {
		s.vars[name] = mergeVar(s.vars[name], v)
	}
	for name, v := range s.vars {
		if o.vars[name] == nil {
			s.vars[name] = mergeVar(v, nil)
		}
	}
	for name, fs := range o.funcs {
		for _, f := range fs {
			if !slices.Contains(s.funcs[name], f) && len(s.funcs[name]) < facts.MaxAlts {
				s.funcs[name] = append(slices.Clip(s.funcs[name]), f)
			}
		}
	}
	for name, t := range o.aliases {
		if old, ok := s.aliases[name]; ok {
			t = union(old, t)
		}
		s.aliases[name] = t
	}
	if s.cwd != o.cwd {
		s.cwd = ""
	}
	s.mergeArgs(o)
}

func (s *state) mergeArgs(o *state) {
	n := min(len(s.args), len(o.args))
	args := slices.Clone(s.args[:n])
	for i := range args {
		args[i] = union(args[i], o.args[i])
	}
	if len(s.args) != len(o.args) || o.more {
		if !s.more {
			s.rest = opaque("argv")
		}
		s.more = true
	}
	s.args = args
}

func mergeVar(a, b *variable) *variable {
	if a == b {
		return a
	}
	if a == nil || b == nil { // set on one way only
		v := a
		if v == nil {
			v = b
		}
		if v.isArray || v.isTable {
			return v
		}
		m := *v
		m.val = union(v.val, unassigned)
		return &m
	}
	m := *a
	m.exported = a.exported || b.exported
	switch {
	case a.isArray && b.isArray && len(a.list) == len(b.list):
		m.list = slices.Clone(a.list)
		for i := range m.list {
			m.list[i] = union(a.list[i], b.list[i])
		}
	case a.isArray || b.isArray:
		longer, other := a.words(), b.words()
		if len(other) > len(longer) {
			longer, other = other, longer
		}
		m.isArray, m.isTable, m.list = true, false, slices.Clone(longer)
		for i := range other {
			m.list[i] = union(m.list[i], other[i])
		}
	case a.isTable && b.isTable:
		m.table = maps.Clone(a.table)
		for k, t := range b.table {
			m.table[k] = union(m.table[k], t)
		}
	default:
		m.val = union(a.val, b.val)
	}
	return &m
}
