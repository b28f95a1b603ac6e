package policy

import (
	"path"
	"slices"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Start is how a text is started, for a [Request].
type Start = facts.Start

// Given is an argument or a variable of a [Start].
type Given = facts.Value

// Passed is one that a text passes on and that could not be told.
func Passed() Given { return facts.Passed() }

// Told is one that is known: one of these texts.
func Told(texts ...string) Given { return facts.Text(texts...) }

// Bounds of what facts tell of a command: what reaches them may go on.
const (
	mostWords = 64
	mostWord  = 200
)

// startOf is how a text starts a shell script: the words behind it, and the
// variables that it sets by name. Where several commands of one place start it,
// what differs is not told.
func startOf(doc *facts.Document, f *facts.File) facts.Start {
	s := facts.Start{Known: true, Args: []facts.Value{facts.Passed()}, Env: map[string]facts.Value{}}
	for i := range doc.Env {
		if e := &doc.Env[i]; e.Op == "write" && e.Name != "" {
			v := variableValue(s.Env, e.Name, e.Value)
			v.Open = true // it may not be set on every way
			s.Env[e.Name] = v
		}
	}
	found := false
	for i := range doc.Commands {
		c := &doc.Commands[i]
		if c.Pos != f.Pos || c.Depth != f.Depth {
			continue
		}
		at := slices.IndexFunc(c.Argv, func(w string) bool { return path.Base(w) == path.Base(f.Path) })
		if at < 0 || at == 0 && f.By != "exec" {
			continue
		}
		args := wordsFrom(c, at+1)
		for name, value := range c.Env {
			s.Env[name] = variableValue(nil, name, value)
		}
		if found && !slices.EqualFunc(args, s.Args, same) {
			args = []facts.Value{facts.Passed()}
		}
		s.Args, found = args, true
	}
	return s
}

// variableValue is what a variable is set to: text that facts shorten, or that is empty, may be
// one that they do not know.
func variableValue(old map[string]facts.Value, name, value string) facts.Value {
	if value == "" || len(value) >= mostWord {
		return facts.Passed()
	}
	v := facts.Text(value)
	if o, ok := old[name]; ok {
		return facts.Union(o, v)
	}
	return v
}

func same(a, b facts.Value) bool { return slices.Equal(a.Alts, b.Alts) && a.Open == b.Open }

// wordsFrom are the words of a command from i on.
func wordsFrom(c *facts.Command, i int) []facts.Value {
	var out []facts.Value
	for ; i < len(c.Argv); i++ {
		if slices.Contains(c.Opaque, i) || len(c.Argv[i]) >= mostWord {
			out = append(out, facts.Passed())
			continue
		}
		out = append(out, facts.Text(c.Argv[i]))
	}
	if len(c.Argv) >= mostWords {
		out = append(out, facts.Passed())
	}
	return out
}
