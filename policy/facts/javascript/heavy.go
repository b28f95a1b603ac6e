package javascript

import (
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// What a loop may do before that is more than any program needs.
const (
	manyFiles  = 50_000 // files that it writes
	manyStarts = 1000   // processes that it starts
)

// bound is the number that a counter of a loop is compared with, 0 where there
// is none.
func (w *walk) bound(cond id) float64 {
	for w.t.kind(cond) == kParen && w.t.nodes[cond].first != 0 {
		cond = w.t.nodes[cond].first
	}
	if w.t.kind(cond) == kUpdate { // while (n--)
		return w.number(w.t.child(cond, fArgument))
	}
	if w.t.kind(cond) != kBinary {
		return 0
	}
	left, right := w.t.child(cond, fLeft), w.t.child(cond, fRight)
	switch w.t.text(w.t.child(cond, fOperator)) {
	case "<", "<=":
		return w.number(right)
	case ">", ">=": // it counts down
		if w.t.kind(left) == kUpdate {
			left = w.t.child(left, fArgument)
		}
		return w.number(left)
	}
	return 0
}

// number is what a number comes to that is written down, or put together of
// such, 0 where it is none.
func (w *walk) number(n id) float64 {
	if w.t.kind(n) == kNumber {
		f, err := strconv.ParseFloat(strings.ReplaceAll(w.t.text(n), "_", ""), 64)
		if err != nil {
			return 0
		}
		return f
	}
	if n == 0 || w.t.nodes[n].end-w.t.nodes[n].start > 40 || w.impure(n) {
		return 0
	}
	w.quiet++
	f, _ := w.expr(n).float()
	w.quiet--
	return f
}

// counted walks a loop's body and says what it does too often.
func (w *walk) counted(n, body id, rounds float64, run func()) {
	before := w.tally
	run()
	switch {
	case rounds >= manyDoublings && w.doubles(body):
		w.structure(facts.StructHugeAlloc, "something is doubled "+spell(rounds)+" times", n)
	case rounds >= manyStarts && w.tally.spawns > before.spawns:
		w.structure(facts.StructResourceBurn, spell(rounds)+" processes are started", n)
	case rounds >= manyFiles && w.tally.writes > before.writes:
		w.structure(facts.StructLoopWrite, spell(rounds)+" files are written", n)
	}
}

// idles reports a body that does nothing but count, log and put things aside.
func (w *walk) idles(n id) bool {
	if w.t.kind(n) == kCall || w.t.kind(n) == kNew {
		f := w.t.text(w.t.child(n, fFunction))
		if !strings.HasPrefix(f, "console.") && !strings.HasPrefix(f, "Math.") {
			return false
		}
	}
	for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
		if !w.idles(c) {
			return false
		}
	}
	return true
}

// searched notices a loop that hashes one text after the other and compares
// what comes of it with something that the loop does not change.
func (w *walk) searched(n id) {
	src := w.t.text(n)
	if len(src) > 4000 || !strings.Contains(src, "createHash(") && !strings.Contains(src, "compareSync(") || strings.Contains(src, "readFile") && !strings.Contains(src, ".split(") {
		return
	}
	hashes := map[string]bool{}
	for range 2 { // the second time with the names that the first has gathered
		if w.compares(n, hashes) {
			w.structure(facts.StructKeySearch, "candidates are hashed or tried one by one", n)
			return
		}
	}
}

// compares looks for a comparison of a hash; hashes gathers the names of those.
func (w *walk) compares(n id, hashes map[string]bool) bool {
	for c := w.t.nodes[n].first; c != 0; c = w.t.nodes[c].next {
		switch w.t.kind(c) {
		case kBinary:
			op := w.t.text(w.t.child(c, fOperator))
			l, r := w.t.child(c, fLeft), w.t.child(c, fRight)
			if (op == "===" || op == "==") && (w.hashed(l, hashes) && !w.hashed(r, hashes) && !w.pads(r) || w.hashed(r, hashes) && !w.hashed(l, hashes) && !w.pads(l)) {
				return true
			}
		case kCall:
			f := w.t.text(w.t.child(c, fFunction))
			if strings.HasSuffix(f, ".startsWith") && w.hashed(w.t.child(c, fFunction), hashes) || strings.HasSuffix(f, ".compareSync") {
				return true
			}
		case kDeclarator, kAssign:
			name, value := w.t.child(c, fName), w.t.child(c, fValue)
			if name == 0 {
				name, value = w.t.child(c, fLeft), w.t.child(c, fRight)
			}
			if strings.Contains(w.t.text(value), ".digest(") {
				hashes[w.t.text(name)] = true
			}
		default: // its parts decide
		}
		if w.compares(c, hashes) {
			return true
		}
	}
	return false
}

// pads: whether a hash in base64 is filled up says nothing about it.
func (w *walk) pads(n id) bool { return strings.Trim(w.t.text(n), `'"`+"`") == "=" }

func (w *walk) hashed(n id, hashes map[string]bool) bool {
	text := w.t.text(n)
	name, _, _ := strings.Cut(text, ".")
	name, _, _ = strings.Cut(name, "[")
	return hashes[name] || strings.Contains(text, ".digest(")
}
