package javascript

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// A script for a web page reads names that Node does not have: document, or
// what another script of the page defines. Run here, reading one ends what
// reads it, so that a call of one does not take place, and what it is handed is
// called by nobody.

// present are names that whoever runs a program may give it beside those that
// the language and the tables know: node's, its modules (node -e has them as
// variables), and what runners of tests hand to their files.
var present = nameSet(`AbortController AbortSignal Atomics AggregateError BigInt64Array BigUint64Array Blob BroadcastChannel Buffer ByteLengthQueuingStrategy
	CompressionStream CountQueuingStrategy Crypto CryptoKey CustomEvent DOMException DecompressionStream EvalError Event EventTarget EventSource File FinalizationRegistry
	FormData Headers Infinity Intl Iterator MessageChannel MessageEvent MessagePort Navigator Performance PerformanceEntry PerformanceMark PerformanceMeasure
	PerformanceObserver PerformanceObserverEntryList PerformanceResourceTiming ReadableByteStreamController ReadableStream ReadableStreamBYOBReader
	ReadableStreamBYOBRequest ReadableStreamDefaultController ReadableStreamDefaultReader Request Response SharedArrayBuffer Storage SubtleCrypto
	SuppressedError TextDecoderStream TextEncoderStream TransformStream TransformStreamDefaultController URIError URL URLSearchParams Uint8ClampedArray WebAssembly WebSocket
	WritableStream WritableStreamDefaultController WritableStreamDefaultWriter AsyncDisposableStack DisposableStack
	__dirname __filename arguments assert async_hooks atob btoa buffer child_process clearImmediate clearInterval clearTimeout cluster console constants crypto decodeURI
	decodeURIComponent dgram diagnostics_channel dns domain encodeURI encodeURIComponent escape eval events exports fetch fs gc global globalThis http http2 https inspector
	localStorage module navigator net os path perf_hooks performance process punycode querystring queueMicrotask quit readline repl require root scheduler self
	sessionStorage setImmediate setInterval setTimeout sqlite stream string_decoder structuredClone sys timers tls trace_events tty unescape url util v8 vm wasi
	worker_threads zlib print load Bun Deno GLOBAL
	describe it test suite context specify before after beforeEach afterEach beforeAll afterAll setup teardown suiteSetup suiteTeardown bench expect should chai
	jest vi vitest cy Cypress QUnit jasmine spyOn fail pending fit xit xtest xdescribe fdescribe tap t sinon browser page element by $$ k6 feature scenario given when then`)

func nameSet(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

// maxKept is how much is kept for the case that a name is there after all.
const maxKept = 10_000

// maxNames is how many names of a text are looked at.
const maxNames = 400_000

// notThere reports that a name which the program does not declare has no
// meaning where node runs it, and that nothing in the text gives it one.
func (w *walk) notThere(name string) bool {
	if w.onTop[name] || w.mayBe(name) {
		return false
	}
	return !w.given(name) && w.root.vars[name] == nil
}

// mayBe reports a name that something else than the text may have given a meaning.
func (w *walk) mayBe(name string) bool {
	return w.others || w.loaded[name] || w.b.Depth() > 0 || w.b.Lang() != facts.JavaScript || w.defines || name == "" || pureRoots[name] || present[name] || w.module(name) != ""
}

// ownGlobal reports a name that has a meaning because the program assigned to
// it, as in lib = lib || {}: what it was before is nothing.
func (w *walk) ownGlobal(name string) bool { return w.root.vars[name] != nil && !w.mayBe(name) }

// givenNames are the names that a text may give a meaning to by assigning to
// them, or to members of anything, which may be the global object.
func (t *tree) givenNames() map[string]bool {
	given := map[string]bool{}
	for i := range t.nodes {
		fields, ok := giving[t.kind(id(i))]
		if !ok {
			if t.kind(id(i)) == kCall {
				t.definedBy(id(i), given)
			}
			continue
		}
		t.each(id(i), func(c id) {
			if fields == nil || slices.Contains(fields, t.nodes[c].field) {
				t.givenBy(c, given)
			}
		})
	}
	return given
}

// givenBy notes the name that an assignment gives a meaning to.
func (t *tree) givenBy(c id, given map[string]bool) {
	switch t.kind(c) {
	case kIdentifier, kShorthandPattern:
		given[t.text(c)] = true
	case kMember:
		given[t.text(t.child(c, fProperty))] = true
	default: // looked at by itself
	}
}

// giving are the kinds that give names of the global object a meaning, and in
// which fields; nil stands for all that is in them. Declarations are found
// where names are looked up.
var giving = map[kind][]field{
	kAssign: {fLeft}, kAugmented: {fLeft}, kForIn: {fLeft}, kAssignPattern: {fLeft}, kObjectAssignPattern: {fLeft}, kPairPattern: nil,
	kUpdate: nil, kArrayPattern: nil, kObjectPattern: nil,
}

// sets are functions that give an object members by names that need not stand
// in the text.
var sets = map[string]bool{
	"Object.assign": true, "Object.defineProperty": true, "Object.defineProperties": true, "Object.setPrototypeOf": true, "Reflect.set": true,
	"Reflect.defineProperty": true, "Reflect.setPrototypeOf": true,
}

// setsGlobals notes that the program may give names a meaning out of sight.
func (w *walk) setsGlobals(o *val) {
	o.all(func(v *val) {
		w.defines = w.defines || v.name == globalName && (!v.page || v.plain) || v.name == "Object.prototype"
	})
}

// withheld reports that functions are handed to something that begins with a
// name which is not there, and keeps them for the case that it is.
func (w *walk) withheld(to string, values ...*val) bool {
	head, _, _ := strings.Cut(to, ".")
	if !w.read[head] || len(w.kept) > maxKept || !w.ownGlobal(head) && !w.notThere(head) {
		return false
	}
	w.kept = append(w.kept, values...)
	return true
}

// endsBefore reports a call of one of the program's functions that is handed a
// name which is not there: reading it ends what would call. The function is kept
// for the case that it is there after all.
func (w *walk) endsBefore(callee *val, args id, s *site) bool {
	if callee.ref == nil || callee.ref.role != closure || callee.ref.fn.calls > 0 || len(w.kept) > maxKept {
		return false
	}
	ends := false
	w.t.each(args, func(c id) { ends = ends || w.readsAbsent(c) })
	if ends {
		w.kept = append(append(w.kept, callee), s.args...)
	}
	return ends
}

// pageNames are names that stand for what a page has, whoever wrote the script;
// others may be what a text leaves out.
var pageNames = nameSet(`window document location history screen opener frames jQuery Zepto angular $`)

// readsAbsent reports such a name, or a member of one, that is not there.
func (w *walk) readsAbsent(n id) bool {
	for w.t.kind(n) == kMember {
		n = w.t.child(n, fObject)
	}
	name := w.t.text(n)
	return w.t.kind(n) == kIdentifier && pageNames[name] && w.sc.find(name) == nil && len(w.withs) == 0 && w.notThere(name)
}

// after takes back what was said of names that are not there: the program may
// have set them.
func (w *walk) after() {
	for _, v := range w.kept {
		w.giveFunction(v, nil, 2)
	}
	for _, p := range w.pages {
		w.b.Dynamic(facts.DynCall, "a global whose name is not known", p)
	}
}
