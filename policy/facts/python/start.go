package python

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// arguments of the program, where whoever asks about it told them: sys.argv. nil
// where they are not known.
func (it *interp) argv() *val {
	start := it.b.Start()
	if !start.Known || len(start.Args) == 0 {
		return nil
	}
	argv := list(kList, []*val{str(start.Name).with([]string{"argv0"})})
	for _, a := range start.Args {
		if len(a.Alts) == 0 { // more of them that could not be told
			argv.open, argv.from = true, slices.Clone(a.From)
			break
		}
		argv.x.items = append(argv.x.items, told(a, "argv"))
	}
	return argv
}

func told(v facts.Value, from string) *val {
	out := str(v.Alts[0])
	out.more, out.open = slices.Clone(v.Alts[1:]), v.Open
	return out.with([]string{from})
}

// option is what a command line gives for an option or an operand: one of its
// words, or what stands behind a sign of equality in one. nil where they are not
// known.
func (it *interp) option() *val {
	argv := it.argv()
	if argv == nil || len(argv.x.items) < 2 {
		return nil
	}
	var words []string
	for _, item := range argv.x.items[1:] {
		for _, s := range append([]string{item.text}, item.more...) {
			if _, value, ok := strings.Cut(s, "="); ok && strings.HasPrefix(s, "-") {
				s = value
			}
			words = append(words, s)
		}
	}
	out := str(words[0])
	out.more, out.open = words[1:min(len(words), 16)], true
	return out.with([]string{"argv"})
}

// variable is what an environment variable was set to before the program began;
// nil where that is not known.
func (it *interp) variable(name string) *val {
	v, ok := it.b.Start().Env[name]
	if !ok || len(v.Alts) == 0 {
		return nil
	}
	return told(v, "env:"+name)
}
