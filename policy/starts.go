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

// PackageInit ends the name of a package among the modules of a [Start].
const PackageInit = facts.PackageInit

// ModuleName is what a module that is known as from means by the name of
// another, "" where there is none.
func ModuleName(from, name string) string { return facts.ModuleName(from, name) }

// LinkName is what the module from, "" for the text itself, imports as spec.
func LinkName(from, spec string) string { return facts.LinkName(from, spec) }

// Bounds of what facts tell of a command: what reaches them may go on.
const (
	mostWords = 64
	mostWord  = 200
)

// mostAtPlace bounds the commands of one place that are looked at: what reaches it is
// not told.
const mostAtPlace = 256

// place is where a command stands.
type place struct {
	pos   facts.Pos
	depth int
}

// starts answers how a text starts files. A text can start as many as it has
// facts, so that none of them may be looked up by going through the others.
type starts struct {
	at       map[place][]*facts.Command
	writes   map[string]int              // how often a path is written
	heredocs map[string][]*facts.Command // by the last name of what they write
}

func startsOf(doc *facts.Document) *starts {
	s := &starts{at: map[place][]*facts.Command{}, writes: map[string]int{}, heredocs: map[string][]*facts.Command{}}
	for i := range doc.Commands {
		c := &doc.Commands[i]
		at := place{c.Pos, c.Depth}
		s.at[at] = append(s.at[at], c)
		if to, _ := catInto(c); to != "" {
			s.heredocs[path.Base(to)] = append(s.heredocs[path.Base(to)], c)
		}
	}
	for i := range doc.Files {
		switch w := &doc.Files[i]; w.Op {
		case facts.OpWrite, facts.OpAppend, facts.OpCopyDst, facts.OpMoveDst:
			s.writes[w.Path]++
		}
	}
	return s
}

// of is how the text starts a shell script: the words behind it. Where several commands
// of one place start it, what differs is not told. ok is false where too much would have
// to be.
func (s *starts) of(f *facts.File) (_ facts.Start, ok bool) {
	out := facts.Start{Known: true, Args: []facts.Value{facts.Passed()}}
	here := s.at[place{f.Pos, f.Depth}]
	if len(here) > mostAtPlace {
		return facts.Start{}, false
	}
	name, found := path.Base(f.Path), false
	for _, c := range here {
		at := slices.IndexFunc(c.Argv, func(w string) bool { return path.Base(w) == name })
		if at < 0 || at == 0 && f.By != "exec" {
			continue
		}
		args := wordsFrom(c, at+1)
		if found && !slices.EqualFunc(args, out.Args, same) {
			args = []facts.Value{facts.Passed()}
		}
		out.Args, found = args, true
	}
	return out, true
}

// catInto is what a command such as cat > x.py <<E writes where, and "" for
// another command.
func catInto(c *facts.Command) (to, text string) {
	if c.Name != "cat" || len(c.Operands) > 0 || len(c.In) > 0 {
		return "", ""
	}
	var target, body *facts.Value
	for j := range c.Redirs {
		switch r := &c.Redirs[j]; r.Op {
		case ">", ">|":
			target = &r.Target
		case "<<", "<<<", "<<-":
			body = &r.Target
		}
	}
	if target == nil || body == nil || target.Open || body.Open || len(target.Alts) != 1 || len(body.Alts) != 1 {
		return "", ""
	}
	return target.Alts[0], body.Alts[0]
}

// written finds a text that the program writes into a file as it stands. Of
// files that share their last name it says nothing: which of them one of these
// commands writes depends on the folder that it is in.
func (s *starts) written(f *facts.File) ([]byte, bool) {
	by := s.heredocs[path.Base(f.Path)]
	if s.writes[f.Path] != 1 || len(by) != 1 || by[0].Line > f.Line {
		return nil, false
	}
	_, text := catInto(by[0])
	return []byte(text), true
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
