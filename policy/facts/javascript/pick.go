package javascript

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Going through the environment is reading all of it, but where nothing is done
// with a variable unless its name is picked.

// filtersCall reports a method of a list that picks items by their names.
func (w *walk) filtersCall(method string, args id) bool {
	fn := w.t.nodes[args].first
	if k := w.t.kind(fn); k != kArrow && k != kFunction {
		return (method == "filter" || method == "find" || method == "some") && w.picked(args)
	}
	body := w.t.child(fn, fBody)
	switch method {
	case "filter", "find", "some":
		if w.t.kind(body) != kBlock {
			return w.tells(body, true)
		}
		if only := w.t.nodes[body].first; w.t.kind(only) == kReturn {
			return w.tells(w.t.nodes[only].first, true)
		}
		return w.picked(args)
	case "forEach", "map", "reduce":
		return w.filters(body)
	}
	return false
}

// filters reports that all a loop does with an item stands under a condition
// that picks it by its name: it is that alone, or goes on with the next first.
func (w *walk) filters(body id) bool {
	first := body
	if w.t.kind(body) == kBlock {
		first = w.t.nodes[body].first
	}
	if k := w.t.kind(first); (k == kExpression || k == kDeclaration) && w.spells(first) {
		first = w.t.nodes[first].next
	}
	if w.t.kind(first) != kIf {
		return false
	}
	cond, then := w.t.child(first, fCondition), w.t.child(first, fConsequence)
	if w.t.kind(then) == kBlock {
		then = w.t.nodes[then].first
	}
	if k := w.t.kind(then); (k == kContinue || k == kReturn || k == kBreak) && w.tells(cond, false) {
		return true
	}
	return w.tells(cond, true) && w.t.child(first, fAlternative) == 0 && w.gives(w.t.nodes[first].next)
}

// spells reports a statement that does no more than spell a name another way:
// k = k.toLowerCase().
func (w *walk) spells(n id) bool {
	value := id(0)
	switch one := w.t.nodes[n].first; w.t.kind(one) {
	case kAssign:
		if w.t.kind(w.t.child(one, fLeft)) == kIdentifier {
			value = w.t.child(one, fRight)
		}
	case kToken: // const
		value = w.t.child(w.t.kid(n, kDeclarator), fValue)
	case kDeclarator:
		value = w.t.child(one, fValue)
	default: // does something else
	}
	return w.t.kind(value) == kCall && w.item(value, spelling)
}

// gives reports that nothing follows, or what a reduction goes on with.
func (w *walk) gives(n id) bool {
	return n == 0 || w.t.kind(n) == kReturn && w.t.nodes[n].next == 0 && w.t.kind(w.t.nodes[n].first) == kIdentifier
}

// tells reports that a condition which comes out as want tells some names from
// all others.
func (w *walk) tells(n id, want bool) bool {
	switch w.t.kind(n) {
	case kParen:
		return w.tells(w.t.nodes[n].first, want)
	case kUnary:
		return w.t.text(w.t.child(n, fOperator)) == "!" && w.tells(w.t.child(n, fArgument), !want)
	case kBinary:
		left, right := w.t.child(n, fLeft), w.t.child(n, fRight)
		switch w.t.text(w.t.child(n, fOperator)) {
		case "&&":
			return w.both(left, right, want, !want)
		case "||":
			return w.both(left, right, want, want)
		case "===", "==":
			return want && w.compared(left, right)
		case "!==", "!=":
			return !want && w.compared(left, right)
		}
	case kCall:
		return want && (w.picked(n) || w.listed(n))
	default: // tells nothing
	}
	return false
}

// both asks two conditions, of which all have to pick, or one.
func (w *walk) both(left, right id, want, all bool) bool {
	l, r := w.tells(left, want), w.tells(right, want)
	return l && r || !all && (l || r)
}

// picked reports a condition that compares with a text or a pattern.
func (w *walk) picked(cond id) bool {
	src := w.t.text(cond)
	if strings.Contains(src, "||") || facts.SeeksSecrets(src) {
		return false
	}
	for _, p := range pickers {
		if strings.Contains(src, p) && !w.redefines(strings.Trim(p, ".(")) {
			return w.longText(cond)
		}
	}
	return false
}

// compared reports a name that is compared with a text: k.toUpperCase() === 'PATH',
// k.indexOf('npm_') === 0.
func (w *walk) compared(a, b id) bool {
	if w.t.kind(a) == kString || w.t.kind(a) == kNumber {
		a, b = b, a
	}
	if facts.SeeksSecrets(w.t.text(a)) || facts.SeeksSecrets(w.t.text(b)) {
		return false
	}
	switch {
	case w.t.kind(b) == kString:
		return w.longText(b) && w.item(a, spelling)
	case w.t.text(b) == "0":
		args := w.t.child(a, fArguments)
		return w.longText(args) && w.item(a, []string{"indexOf"})
	}
	return false
}

// spelling are methods that give a name, or a part of it, as it is spelt otherwise.
var spelling = []string{"toUpperCase", "toLowerCase", "trim", "slice", "substring", "substr"}

// item reports what is gone through, which no variable of the program is yet, or
// what one of these methods gives of it.
func (w *walk) item(n id, methods []string) bool {
	if w.t.kind(n) == kCall {
		f := w.t.child(n, fFunction)
		method := w.t.text(w.t.child(f, fProperty))
		if w.t.kind(f) != kMember || !slices.Contains(methods, method) || w.redefines(method) {
			return false
		}
		n = w.t.child(f, fObject)
	}
	name := w.t.text(n)
	return w.t.kind(n) == kIdentifier && w.sc.find(name) == nil && !present[name] && !globalAliases[name]
}

// pickers are methods that tell one name from others.
var pickers = []string{".startsWith(", ".endsWith(", ".test(", ".match("}

// longText reports that a text or pattern stands in n which is more than a letter.
func (w *walk) longText(n id) bool {
	switch w.t.kind(n) {
	case kString, kRegex:
		return len(strings.Trim(w.t.text(n), "\"'`/^.*$")) > 1
	default: // its parts may
	}
	found := false
	w.t.each(n, func(c id) { found = found || w.longText(c) })
	return found
}

// maxListed is how many names a list may have that picks some.
const maxListed = 64

// listed reports a call that looks for a name in a list of names that are known:
// names.includes(k), set.has(k).
func (w *walk) listed(n id) bool {
	f := w.t.child(n, fFunction)
	if w.t.kind(f) != kMember {
		return false
	}
	if m := w.t.text(w.t.child(f, fProperty)); m != "includes" && m != "has" || w.given(m) {
		return false
	}
	w.quiet++
	list := w.expr(w.t.child(f, fObject))
	w.quiet--
	items, open := elements(list)
	if open && (list.ref == nil || !list.ref.collection()) || len(items) == 0 || len(items) > maxListed {
		return false
	}
	for _, it := range items {
		if name, ok := it.one(); !ok || facts.SeeksSecrets(name) {
			return false
		}
	}
	return true
}

// redefines reports that the text may have a method of its own in place of one
// that texts and patterns have.
func (w *walk) redefines(method string) bool {
	return w.given(method) && slices.ContainsFunc(prototypes, func(p string) bool { return strings.Contains(w.main.src, p) })
}

// prototypes are how a text gets hold of what all texts and patterns have.
var prototypes = []string{"String.prototype", "RegExp.prototype", "constructor.prototype", "__proto__", "getPrototypeOf("}
