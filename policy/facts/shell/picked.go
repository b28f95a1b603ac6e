package shell

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
)

// onTheWay says of what a filter prints, where it is not known, what the filter
// may have done to it.
func onTheWay(name string, args fields, out text) text {
	switch {
	case out.known():
	case !selects(name, args):
		out = out.tainted(filtered)
	case name == "sed":
		out = out.tainted(facts.FromChosen)
	case strings.HasSuffix(name, "grep") && picks(args):
		out = out.tainted(facts.FromChosen)
	}
	return out
}

// filtered is where a text comes from that a filter may have made of other
// letters than those it read, or put words of its own into.
const filtered = facts.FromFiltered

// selecting are filters that print lines or words of what they read as they are.
var selecting = []string{"cat", "head", "tail", "sort", "uniq", "grep", "egrep", "fgrep", "cut", "tac", "strings", "basename", "dirname", "realpath", "readlink", "expr", "wc"}

// selects reports that a filter adds nothing to what it reads.
func selects(name string, args fields) bool {
	switch name {
	case "sed":
		return len(args) > 0 && args[0].t.has(cuts)
	case "tr":
		return len(args) > 0 && args[0].t.is("-d")
	case "awk", "gawk", "mawk":
		return !slices.ContainsFunc(args, func(f field) bool {
			return f.t.has(func(s string) bool { return strings.ContainsAny(s, "\"=") || strings.Contains(s, "%") || !known(s) })
		})
	}
	return slices.Contains(selecting, name)
}

// cuts reports a script of sed that prints one line, or deletes what it finds: 1q,
// s/x//.
func cuts(script string) bool {
	if strings.HasPrefix(script, "s") && len(script) > 3 {
		return strings.HasSuffix(strings.TrimSuffix(script, "g"), script[1:2]+script[1:2])
	}
	return len(script) > 1 && strings.Trim(script[:len(script)-1], "0123456789") == "" && strings.HasSuffix(script, "q")
}

// picks reports that grep looks for a word that stands in the script.
func picks(args fields) bool {
	for _, f := range args {
		s, ok := f.t.one()
		if ok && len(s) > 1 && s[0] == '-' && !strings.ContainsAny(s, "vf") {
			continue
		}
		return ok && s != "" && s[0] != '-' && !strings.ContainsAny(s, "|\n") && wordOf().MatchString(s)
	}
	return false
}

var wordOf = lazyregexp.New(`[A-Za-z_]{3}`)
