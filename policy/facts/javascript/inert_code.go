package javascript

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// reaching are names of members by which text gets at what is around it.
var reaching = nameSet(`constructor __proto__ eval Function AsyncFunction GeneratorFunction require process global globalThis GLOBAL module mainModule import execScript
	importScripts callee caller setTimeout setInterval setImmediate binding getBuiltinModule createRequire __defineGetter__ __lookupGetter__ getPrototypeOf
	defineProperty setPrototypeOf Reflect Proxy WebAssembly Deno Bun fetch`)

// tameCode looks at code that is evaluated as it is. From m on are the facts
// that came of it; late says that it runs at some later time.
func (w *walk) tameCode(m facts.Mark, s *site, code *val, sc *scope, late bool) {
	src, ok := code.one()
	if !ok || w.depth >= maxCalls {
		return
	}
	fn := w.compile(src, nil, sc, s.n)
	if fn == nil || fn.tree.declares() && (sc == w.root || !w.closing(s.n)) || !w.tameTree(m, code, fn.tree, sc, false) || !late {
		return
	}
	fn.handed = true
	w.functions = append(w.functions, &val{ref: &object{role: closure, fn: fn}})
}

// closing reports that nothing stands behind n in the function that is running, and
// nothing around it: what n declares, the function's closures alone can see.
func (w *walk) closing(n id) bool {
	if w.act == nil || w.act.fn == nil || w.act.fn.tree != w.t {
		return false
	}
	body := w.act.fn.body
	stmt := w.t.part(body, n)
	if w.t.kind(body) != kBlock || stmt == 0 || w.t.nodes[stmt].first != n {
		return false
	}
	last := stmt
	w.t.each(body, func(c id) { last = c })
	return last == stmt
}

// declares reports a text that gives names at its top: where it is evaluated, the
// program has them from then on.
func (t *tree) declares() bool {
	found := false
	t.each(0, func(c id) {
		switch t.kind(c) {
		case kDeclaration, kFunctionDecl, kClassDecl:
			found = true
		default: // an expression, or a statement around some
		}
	})
	return found
}

// tameTree is text that was written down, names nothing of node's, and was read
// without errors: what it does is what it would do in its place, where it was
// followed.
func (w *walk) tameTree(m facts.Mark, code *val, t *tree, sc *scope, function bool) bool {
	if w.looked += len(t.nodes); w.looked > maxTamed || len(code.From) > 0 || w.quiet > 0 || t.errors > 0 || t.tooDeep || !w.tame(t, sc, function) {
		return false
	}
	w.b.Tame(m)
	return true
}

// maxTamed is how many nodes of evaluated code are looked at in all.
const maxTamed = 200_000

// tame reports that a text reaches nothing that the program does not hand to
// it. What it calls of the program must be followed, so that a function, which
// may be called out of sight, names nothing of that.
func (w *walk) tame(t *tree, sc *scope, function bool) bool {
	own := t.declared()
	for i := range t.nodes {
		n := id(i)
		if !w.tameNode(t, n, sc, own) {
			return false
		}
		if name := t.text(n); function && t.kind(n) == kIdentifier && !own[name] && (!pureRoots[name] || sc.find(name) != nil) && name != "arguments" && !w.notThere(name) {
			return false
		}
	}
	return true
}

// importsGiven reports a function that does nothing but import the module that
// it is given: import as it stands there, where a compiler would make a call of
// require of it.
func (f *function) importsGiven() bool {
	t := f.tree
	if f.params == 0 || t.errors > 0 {
		return false
	}
	stmt := t.nodes[f.body].first
	call := t.nodes[stmt].first
	if stmt == 0 || t.kind(stmt) != kReturn || t.nodes[stmt].next != 0 || t.kind(call) != kCall || t.kind(t.child(call, fFunction)) != kImport {
		return false
	}
	arg := t.nodes[t.child(call, fArguments)].first
	return arg != 0 && t.nodes[arg].next == 0 && t.kind(arg) == kIdentifier && t.text(arg) == t.text(t.nodes[f.params].first)
}

// declared are the names that a text declares for itself.
func (t *tree) declared() map[string]bool {
	own := map[string]bool{}
	for i := range t.nodes {
		n := id(i)
		switch t.kind(n) {
		case kDeclarator, kFunction, kFunctionDecl, kClass, kClassDecl:
			own[t.text(t.child(n, fName))] = true
		case kArrow, kCatch:
			own[t.text(t.child(n, fParameter))] = true
		case kParams:
			t.each(n, func(c id) {
				own[t.text(c)] = true
				own[t.text(t.child(c, fLeft))] = true
			})
		case kArrayPattern, kRest:
			t.each(n, func(c id) { own[t.text(c)] = true })
		case kShorthandPattern:
			own[t.text(n)] = true
		default: // declares nothing
		}
	}
	return own
}

func (w *walk) tameNode(t *tree, n id, sc *scope, own map[string]bool) bool {
	switch t.kind(n) {
	case kImport, kMeta, kImportStatement, kExport, kWith, kError, kAmbient, kNamespace:
		return false
	case kIdentifier, kShorthand:
		name := t.text(n)
		if sc.find(name) != nil && (name == "exports" || name == "module" && t.exporting(n)) {
			return true // a bundle's, which hands it to its parts
		}
		return !reaching[name] && (!present[name] || own[name] || pureRoots[name] || name == "arguments") && !strings.Contains(name, "\\")
	case kProperty:
		if t.text(n) == "constructor" && t.kind(t.around(n)) == kMethod {
			return true // a class has one
		}
		return !reaching[t.text(n)] && !strings.Contains(t.text(n), "\\")
	case kString, kFragment:
		return !reaching[strings.Trim(t.text(n), "\"'")] && !strings.Contains(t.text(n), "\\")
	case kReturn, kPair, kArray, kSpread, kAssign, kDeclarator, kBinary, kTernary, kArrow:
		return !t.holdsThis(n) || t.kind(n) == kBinary && compares[t.text(t.child(n, fOperator))]
	case kMember:
		p := t.text(t.child(n, fProperty))
		return !t.wide(t.child(n, fObject)) || !present[p]
	case kSubscript:
		return t.tameIndex(n)
	case kCall, kNew:
		callee := t.child(n, fFunction)
		if t.kind(n) == kNew {
			callee = t.child(n, fConstructor)
		}
		for t.kind(callee) == kParen && t.nodes[callee].first != 0 {
			callee = t.nodes[callee].first
		}
		if args := t.child(n, fArguments); args != 0 && t.holdsThis(args) && !t.startsItself(callee) {
			return false
		}
		return t.kind(callee) != kSubscript || literal(t.kind(t.child(callee, fIndex)))
	default: // of no matter by itself
	}
	return true
}

// exporting reports that n is the module in module.exports.
func (t *tree) exporting(n id) bool {
	m := t.around(n)
	return t.kind(m) == kMember && t.text(t.child(m, fProperty)) == "exports"
}

// around is what n is the first part of, 0 where there is no such thing.
func (t *tree) around(n id) id {
	if n > 0 && t.nodes[n-1].first == n { // nodes stand in the order of the text
		return n - 1
	}
	return 0
}

// holdsThis reports that this, or the global object, is a part of n by itself.
func (t *tree) holdsThis(n id) bool {
	found := false
	t.each(n, func(c id) { found = found || t.wide(c) })
	return found
}

// startsItself reports a call of a function that is written down there: what it
// has as this goes no further than the text.
func (t *tree) startsItself(callee id) bool {
	f := t.child(callee, fObject)
	for t.kind(f) == kParen && t.nodes[f].first != 0 {
		f = t.nodes[f].first
	}
	return t.kind(callee) == kMember && t.text(t.child(callee, fProperty)) == "call" && t.kind(f) == kFunction
}

// compares are the operators that only look at what they are given.
var compares = map[string]bool{"instanceof": true, "==": true, "===": true, "!=": true, "!==": true}

// wide reports the global object, or what may be it.
func (t *tree) wide(n id) bool {
	return t.kind(n) == kThis || t.kind(n) == kIdentifier && globalAliases[t.text(n)]
}

// tameIndex reports a member that is named, or one of what the program handed in.
func (t *tree) tameIndex(n id) bool {
	switch k := t.kind(t.child(n, fIndex)); {
	case literal(k):
		s := strings.Trim(t.text(t.child(n, fIndex)), "\"'")
		return !t.wide(t.child(n, fObject)) || !present[s]
	case k == kIdentifier:
		return !t.wide(t.child(n, fObject))
	}
	return false
}

func literal(k kind) bool { return k == kString || k == kNumber }
