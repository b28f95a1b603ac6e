package facts

import (
	"slices"
	"strings"
)

// Mark is a place in what a scan has found so far.
type Mark struct{ files, net, commands, env, actions, dynamic, structs, imports int }

// Mark notes what was found up to here, for [Builder.Tame].
func (b *Builder) Mark() Mark {
	d := &b.s.doc
	return Mark{len(d.Files), len(d.Net), len(d.Commands), len(d.Env), len(d.Actions), len(d.Dynamic), len(d.Structs), len(d.Imports)}
}

// Told reports that text which is run as code since m is inert by itself.
func (b *Builder) Told(m Mark) bool {
	for i := range b.s.doc.Dynamic[m.dynamic:] {
		if f := &b.s.doc.Dynamic[m.dynamic+i]; f.Kind == DynEval && f.Depth == b.depth {
			return f.Inert
		}
	}
	return false
}

// Tame says that text which is run as code since m names nothing but what the
// program around it has, and that it was followed there. It is inert if nothing
// came of that but what functions would do that nothing calls.
func (b *Builder) Tame(m Mark) {
	for _, f := range b.s.doc.Imports[m.imports:] {
		if !OnlyComputes(f.Module) {
			return
		}
	}
	b.tame(m)
}

// Imports says that text which is run as code since m does nothing but import
// modules. It is inert if nothing came of that but these imports, which are
// judged as any others.
func (b *Builder) Imports(m Mark) { b.tame(m) }

func (b *Builder) tame(m Mark) {
	d := &b.s.doc
	if len(d.Net) > m.net || len(d.Commands) > m.commands || len(d.Structs) > m.structs {
		return
	}
	own := -1
	for i := range d.Dynamic[m.dynamic:] {
		switch f := &d.Dynamic[m.dynamic+i]; {
		case own < 0 && f.Kind == DynEval && f.Depth == b.depth:
			own = m.dynamic + i
		case !f.Idle:
			return
		}
	}
	idle := true
	for _, f := range d.Files[m.files:] {
		idle = idle && f.Idle
	}
	for _, f := range d.Env[m.env:] {
		idle = idle && f.Idle
	}
	for _, f := range d.Actions[m.actions:] {
		idle = idle && f.Idle
	}
	if idle && own >= 0 {
		d.Dynamic[own].Inert = true
	}
}

// OnlyComputes reports that a module of Python computes, and calls what it is
// given at most.
func OnlyComputes(module string) bool {
	return slices.Contains(plainModules, module) || slices.Contains(followedModules, module)
}

// followedModules call what they are given, which is followed.
var followedModules = strings.Fields("collections functools heapq bisect re json typing dataclasses enum abc copy textwrap")

// Offers says, until it is called again, that what a text defines which is run
// as code is the program's own from then on, and followed where that calls it.
func (b *Builder) Offers(is bool) { b.offers = is }

// Offered reports that this text is such a one: what nothing in it calls is not
// run by itself.
func (b *Builder) Offered() bool { return b.offered }

// Changes reports that something so far makes files or gives them names, or
// starts a program, which may.
func (b *Builder) Changes() bool {
	return len(b.s.doc.Commands) > 0 || slices.ContainsFunc(b.s.doc.Files, func(f File) bool {
		return f.Op != OpRead && f.Op != OpList && f.Op != OpStat && f.Op != OpExec && f.Op != OpCopySrc
	})
}
