package python

import (
	"regexp/syntax"
	"slices"
)

// ofDotted is a group of a match that holds nothing but names with dots between
// them, of a text that only a caller hands over: eval looks these up, and can
// call nothing by them.
const ofDotted = "dotted"

// groupHandlers take groups out of a match.
func groupHandlers() map[string]handler {
	out := map[string]handler{}
	for _, name := range []string{"re.match", "re.search", "re.fullmatch"} {
		out[name+".group"] = func(c *invocation) *val { return c.groups(c.self, 1) }
		out["re.compile"+name[2:]+".group"] = func(c *invocation) *val { return c.groups(c.self, 0) }
	}
	return out
}

// groups are those that are asked for by numbers, nil where one of them may hold
// more than names; the text stands behind so many arguments of the match.
func (c *invocation) groups(match *val, behind int) *val {
	made := match
	if behind == 0 && match.x != nil {
		made = match.x.self // what was compiled
	}
	if len(c.keys) > 0 || c.open || len(c.pos) == 0 || made == nil || made.x == nil || len(made.x.recv) != 1+behind || match.x == nil || len(match.x.recv) != 1+behind {
		return nil
	}
	pattern, ok := made.x.recv[0].One()
	text := match.x.recv[behind]
	if !ok || len(pattern) > 1000 || len(text.Alts) > 0 || text.Prefix != "" || text.Suffix != "" || !ofCallers(text.From) {
		return nil
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	var items []*val
	for _, at := range c.pos {
		n, ok := at.int()
		if g := capture(re, int(n)); !ok || g == nil || !dotted(g) {
			return nil
		}
		items = append(items, &val{from: text.From, x: &extra{how: ofDotted}})
	}
	if len(items) == 1 {
		return items[0]
	}
	return list(kTuple, items)
}

// ofCallers: a caller out of sight hands it over, and the program has no part in
// it.
func ofCallers(from []string) bool {
	return outOfSight(from) && !slices.Contains(from, fromProgram)
}

// capture is the group of that number.
func capture(re *syntax.Regexp, n int) *syntax.Regexp {
	if re.Op == syntax.OpCapture && re.Cap == n {
		return re
	}
	for _, sub := range re.Sub {
		if g := capture(sub, n); g != nil {
			return g
		}
	}
	return nil
}

// dotted reports an expression that matches nothing but letters, digits,
// underlines and dots.
func dotted(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return !slices.ContainsFunc(re.Rune, func(r rune) bool { return !wordRune(r) && r != '.' })
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if !wordRune(r) && r != '.' {
					return false
				}
			}
		}
		return true
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat, syntax.OpConcat, syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !dotted(sub) })
	default: // anything, or a place
		return false
	}
}
