package facts

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// Bounds of texts and patterns that are looked at for endless backtracking.
const (
	maxPattern    = 256
	maxMatched    = 4096
	longBacktrack = 25 // letters of which each doubles the work
)

// Backtracks reports that an engine which goes back tries each of very many ways
// to match text: a repetition within a repetition takes a long part of it, and in
// the end the whole does not match.
func Backtracks(pattern, text string, anchored, whole bool) bool {
	if len(pattern) > maxPattern || len(text) < longBacktrack || len(text) > maxMatched || !strings.ContainsAny(pattern, "+*{") {
		return false
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return false
	}
	inner := nestedRepeat(parsed, 0)
	if inner == nil {
		return false
	}
	if anchored {
		pattern = `\A(?:` + pattern + `)`
	}
	if whole {
		pattern += `\z`
	}
	re, err := regexp.Compile(pattern)
	if err != nil || re.MatchString(text) {
		return false
	}
	part, err := regexp.Compile(inner.String())
	if err != nil {
		return false
	}
	at := part.FindStringIndex(text)
	return at != nil && at[1]-at[0] >= longBacktrack
}

// nestedRepeat is a repetition without bound of something that can be taken
// apart in more than one way.
func nestedRepeat(re *syntax.Regexp, depth int) *syntax.Regexp {
	if depth > 32 {
		return nil
	}
	if unbounded(re) && ambiguous(re.Sub[0], 0) {
		return re
	}
	for _, sub := range re.Sub {
		if found := nestedRepeat(sub, depth+1); found != nil {
			return found
		}
	}
	return nil
}

func unbounded(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0
}

// ambiguous reports that a part, repeated, matches one text in several ways: it
// is a repetition, with nothing around it that must be there.
func ambiguous(re *syntax.Regexp, depth int) bool {
	if depth > 32 {
		return false
	}
	switch re.Op {
	case syntax.OpCapture:
		return ambiguous(re.Sub[0], depth+1)
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		return unbounded(re)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if ambiguous(sub, depth+1) {
				return true
			}
		}
	case syntax.OpConcat:
		repeats := false
		for i, sub := range re.Sub {
			switch {
			case ambiguous(sub, depth+1):
				repeats = true
			case sub.Op == syntax.OpQuest:
			case i > 0 && sub.Op == syntax.OpAlternate: // a|aa, its common part taken out
				repeats = true
			case i > 0 && sub.Op == syntax.OpEmptyMatch:
			case i == 0 && len(re.Sub) > 1 && (re.Sub[1].Op == syntax.OpQuest || re.Sub[1].Op == syntax.OpAlternate) && sub.Op == syntax.OpLiteral:
				repeats = true
			default:
				return false
			}
		}
		return repeats
	default: // one letter
	}
	return false
}
