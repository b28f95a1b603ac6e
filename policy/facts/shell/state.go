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
	constant bool // made of constants of the text alone
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

// ownFolder is the origin of the folder that the script lies in: the workspace,
// or one of its folders.
const ownFolder = "own_folder"

// function is a declared function and the text that it was found in.
type function struct {
	name   string
	body   *syntax.Stmt
	b      *facts.Builder
	called bool
}

// state is what a shell would know at one place of the script.
type state struct {
	vars    *layer[*variable]
	funcs   *layer[[]*function] // alternatives over branches
	aliases *layer[*text]
	args    []text
	more    bool // arguments may follow args, each of which is rest
	rest    text
	arg0    text
	cwd     string          // "" where not known
	or      string          // what cwd may be where it is a guess, "" where it is none
	own     bool            // cwd was told by where the script lies
	dead    bool            // behind exit or return
	env     map[string]text // variables that it was started with, as far as known; never changed
	sealed  bool            // env has all of them
	sourced bool            // files of the project were sourced that are not known here
}

// inherited is what a variable is that the script did not set.
func (s *state) inherited(name string) text {
	if t, ok := s.env[name]; ok {
		return t
	}
	if s.sealed {
		return text{}
	}
	if s.sourced {
		return unassigned.tainted("env:"+name, facts.FromSourced)
	}
	return unassigned.tainted("env:" + name)
}

func newState() *state {
	return &state{
		vars:    &layer[*variable]{},
		funcs:   &layer[[]*function]{},
		aliases: &layer[*text]{},
		more:    true,
		rest:    unassigned.tainted("argv"),
		arg0:    opaque(fromSelf),
	}
}

// clone is a state on top of s, for a branch or a subshell. s must not change
// until the clone is joined or dropped.
func (s *state) clone() *state {
	c := *s
	c.vars = &layer[*variable]{up: s.vars}
	c.funcs = &layer[[]*function]{up: s.funcs}
	c.aliases = &layer[*text]{up: s.aliases}
	return &c
}

// join makes s what it may be after one of its clones was the way taken; s
// itself among them stands for none. A way that ended in exit does not count.
func (s *state) join(ways ...*state) {
	live := slices.DeleteFunc(slices.Clone(ways), func(o *state) bool { return o.dead && o != s })
	if len(live) == 0 {
		s.dead = true
		return
	}
	first := *live[0]
	for _, o := range live[1:] {
		if first.cwd != o.cwd {
			first.cwd, first.or, first.own = "", "", false
		}
		first.mergeArgs(o)
		if !slices.Equal(first.arg0.alts, o.arg0.alts) {
			first.arg0 = union(first.arg0, o.arg0)
		}
		first.sourced = first.sourced || o.sourced
	}
	s.sourced = first.sourced
	s.own, s.or = first.own, first.or
	s.cwd, s.args, s.more, s.rest, s.arg0 = first.cwd, first.args, first.more, first.rest, first.arg0
	joinLayer(s.vars, live, func(o *state) *layer[*variable] { return o.vars }, s.mergeVar)
	joinLayer(s.funcs, live, func(o *state) *layer[[]*function] { return o.funcs }, mergeFuncs)
	joinLayer(s.aliases, live, func(o *state) *layer[*text] { return o.aliases }, mergeAlias)
}

// joinLayer merges the names that some way has changed.
func joinLayer[V any](l *layer[V], ways []*state, of func(*state) *layer[V], merge func(name string, a, b V) V) {
	names := map[string]bool{}
	for _, o := range ways {
		if of(o) != l {
			for name := range of(o).own {
				names[name] = true
			}
		}
	}
	for name := range names {
		v := of(ways[0]).get(name)
		for _, o := range ways[1:] {
			v = merge(name, v, of(o).get(name))
		}
		l.set(name, v)
	}
}

func mergeFuncs(_ string, a, b []*function) []*function {
	for _, f := range b {
		if !slices.Contains(a, f) && len(a) < facts.MaxAlts {
			a = append(slices.Clip(a), f)
		}
	}
	return a
}

func mergeAlias(_ string, a, b *text) *text {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	t := union(*a, *b)
	return &t
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

// mergeVar is what a variable may be after a branch. Where only one way sets
// it, the environment may have done so before.
func (s *state) mergeVar(name string, a, b *variable) *variable {
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
		m.val, m.constant = union(v.val, s.inherited(name)), false
		return &m
	}
	m := *a
	m.exported = a.exported || b.exported
	m.constant = a.constant && b.constant
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
		m.table = map[string]text{}
		maps.Copy(m.table, a.table)
		for k, t := range b.table {
			m.table[k] = union(m.table[k], t)
		}
	default:
		m.val = union(a.val, b.val)
	}
	return &m
}
