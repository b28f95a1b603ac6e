package python

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// anything stands in the tables for the types that they do not have: what
// "*.to_csv" does, a method to_csv of any object does. Libraries agree on the
// names of the methods that put something into a file, and what is known of an
// object is seldom its type.
const anything = "*."

// saves tells what a call of a function that the tables do not have does to
// files, where its name says so and it names one.
func (it *interp) saves(name string, a *arguments, n *node) {
	if !strings.Contains(name, ".") || it.quiet > 0 {
		return
	}
	star := anything + lastPart(name)
	if _, ok := it.b.API(star); !ok || !slices.ContainsFunc(a.all(), namesFile) {
		return
	}
	c := facts.Call{At: facts.At{Pos: it.pos(n)}, Name: star}
	for _, v := range a.pos[:min(len(a.pos), 8)] {
		c.Args = append(c.Args, v.fact())
	}
	for _, k := range a.keys {
		if c.Kwargs == nil {
			c.Kwargs = make(map[string]facts.Value, len(a.keys))
		}
		c.Kwargs[k] = a.kw[k].fact()
	}
	it.reported++
	it.b.Call(c)
}

// namesFile reports a text, or a path, of which the beginning is known.
func namesFile(v *val) bool {
	f := v.fact()
	if strings.HasPrefix(f.Type, "pathlib.") {
		return true
	}
	return len(f.Alts) > 0 && f.Type == "str" || f.Prefix != ""
}
