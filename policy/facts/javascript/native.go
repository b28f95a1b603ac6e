package javascript

import (
	"math"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// native is a function of the language or of node whose result can be told. done is false where the call is to be
// reported and its result is what the tables say.
type native func(w *walk, s *site) (v *val, done bool)

var natives map[string]native

func init() {
	natives = map[string]native{
		"require": nativeRequire, "import": nativeImport, "module._load": nativeLoad,
		"module.register": nativeImport, "worker_threads.Worker": nativeWorker, "Worker": nativeWorker,
		"process.binding": nativeBinding, "importScripts": nativeScripts, "process.getBuiltinModule": nativeLoad, "process.mainModule.require": nativeLoad, "module.createRequire": nativeCreateRequire,
		"module.createRequireFromPath": nativeCreateRequire, "require.resolve": nativeKeep,
		"eval": nativeEval, "Function": nativeFunction, "setTimeout": nativeTimer, "setInterval": nativeTimer,
		"setImmediate": nativeTimer, "queueMicrotask": nativeTimer, "process.nextTick": nativeTimer,
		"util.promisify": nativeFirst, "util.callbackify": nativeFirst, "util.deprecate": nativeFirst,
		"vm.runInThisContext": nativeRun, "vm.runInNewContext": nativeRun, "vm.runInContext": nativeRun,
		"Proxy": nativeProxy, "Promise": nativePromise, "Promise.resolve": nativeFirst, "Promise.all": nativeAll,
		"Promise.any": nativeAny, "Promise.race": nativeAny, "Promise.allSettled": nativeKeep,
		"String": nativeString, "Number": nativeNumber, "Boolean": nativeBoolean, "BigInt": nativeNumber,
		"parseInt": nativeParseInt, "parseFloat": nativeNumber, "Number.parseInt": nativeParseInt,
		"Number.parseFloat": nativeNumber, "Array": nativeArray, "Array.from": nativeArrayFrom, "Array.of": nativeArrayOf,
		"Array.isArray": nativeIsArray, "String.fromCharCode": nativeFromCharCode, "String.fromCodePoint": nativeFromCharCode,
		"String.raw": nativeFirst, "JSON.stringify": nativeStringify, "JSON.parse": nativeParse, "structuredClone": nativeFirst,
		"atob": nativeAtob, "btoa": nativeBtoa, "decodeURIComponent": nativePercent, "decodeURI": nativePercent,
		"unescape": nativeUnescape, "encodeURIComponent": nativeEncode, "encodeURI": nativeKeep, "escape": nativeKeep,
		"Buffer.from": nativeBufferFrom, "Buffer": nativeBufferFrom, "Buffer.concat": nativeConcat, "Buffer.alloc": nativeAlloc,
		"Buffer.allocUnsafe": nativeAlloc, "ArrayBuffer": nativeRoom, "SharedArrayBuffer": nativeRoom, "Float64Array": nativeRoom,
		"Uint32Array": nativeRoom, "Int32Array": nativeRoom, "Float32Array": nativeRoom, "BigInt64Array": nativeRoom,
		"fs.symlink": nativeSymlink, "fs.symlinkSync": nativeSymlink, "fs.promises.symlink": nativeSymlink,
		"Uint8Array": nativeBytes, "Uint8Array.from": nativeBytes, "TextDecoder": nativeDecoder,
		"TextEncoder": nativeDecoder, "Object.keys": nativeKeys, "Object.getOwnPropertyNames": nativeKeys,
		"Object.values": nativeValues, "Object.entries": nativeEntries, "Object.assign": nativeAssign,
		"Object.freeze": nativeFirst, "Object.seal": nativeFirst, "Object.preventExtensions": nativeFirst, "Object": nativeFirst,
		"Object.create": nativeCreate, "Object.getPrototypeOf": nativeParent, "Object.setPrototypeOf": nativeFirst,
		"Object.fromEntries": nativeFromEntries, "Object.getOwnPropertyDescriptor": nativeDescriptor,
		"Object.defineProperty": nativeDefine, "Reflect.get": nativeReflectGet, "Reflect.set": nativeReflectSet, "WeakRef": nativeWeakRef, "Reflect.apply": nativeReflectApply,
		"Reflect.construct": nativeReflectConstruct, "Reflect.ownKeys": nativeKeys, "Reflect.getPrototypeOf": nativeParent,
		"Reflect.getOwnPropertyDescriptor": nativeDescriptor, "path.join": nativePathJoin, "path.resolve": nativePathResolve,
		"path.normalize": nativePathJoin, "path.dirname": nativePathDir, "path.basename": nativePathBase, "path.extname": nativePathExt,
		"os.homedir": nativeHome, "os.tmpdir": nativeTmp, "process.cwd": nativeCwd, "url.fileURLToPath": nativeFilePath,
		"url.pathToFileURL": nativeFirst, "URL": nativeURL, "RegExp": nativeRegExp, "Map": nativeMap, "Set": nativeMap, "WeakMap": nativeMap, "WeakSet": nativeMap,
		"Error": nativeError, "TypeError": nativeError, "RangeError": nativeError,
		"Math.floor": nativeMath(math.Floor), "Math.ceil": nativeMath(math.Ceil), "Math.round": nativeMath(func(f float64) float64 { return math.Floor(f + 0.5) }),
		"Math.abs": nativeMath(math.Abs), "Math.trunc": nativeMath(math.Trunc), "Math.sqrt": nativeMath(math.Sqrt),
		"console.log": nativePrint, "console.info": nativePrint, "console.error": nativePrint, "console.dir": nativePrint,
		"console.table": nativePrint, "util.inspect": nativePrint, "util.format": nativeFormat, "process.stdout.write": nativePrint,
	}
}

// pureName reports that a call of that name does nothing worth a fact.
func pureName(name string) bool {
	head, _, _ := strings.Cut(name, ".")
	return pureRoots[head]
}

var pureRoots = map[string]bool{
	"console": true, "Math": true, "JSON": true, "Object": true, "Array": true, "String": true, "Number": true, "Boolean": true,
	"Symbol": true, "Map": true, "Set": true, "WeakMap": true, "WeakSet": true, "WeakRef": true, "Promise": true, "Date": true,
	"RegExp": true, "Error": true, "TypeError": true, "RangeError": true, "SyntaxError": true, "ReferenceError": true,
	"EvalError": true, "URIError": true, "AggregateError": true, "parseInt": true, "parseFloat": true, "isNaN": true,
	"isFinite": true, "Intl": true, "BigInt": true, "Reflect": true, "Proxy": true, "path": true, "Uint8Array": true,
	"Uint16Array": true, "Uint32Array": true, "Int8Array": true, "Int16Array": true, "Int32Array": true, "Float32Array": true,
	"Float64Array": true, "ArrayBuffer": true, "DataView": true, "Function": false, "util": true, "assert": true,
	"encodeURIComponent": true, "encodeURI": true, "escape": true, "clearTimeout": true, "clearInterval": true,
	"clearImmediate": true, "setTimeout": true, "setInterval": true, "setImmediate": true, "queueMicrotask": true,
	"describe": true, "it": true, "test": true, "expect": true, "TextDecoder": true, "TextEncoder": true, "import": true,
	"URLSearchParams": true, "structuredClone": true, "atob": true, "btoa": true, "decodeURIComponent": true, "decodeURI": true,
	"unescape": true, "Buffer": true, "AbortController": true, "Event": true, "CustomEvent": true,
}

func nativeRequire(w *walk, s *site) (*val, bool) {
	if len(s.args) == 0 {
		return unknown, true
	}
	return w.importModule(s.arg(0), "require", "", nil, s.n), true
}

func nativeImport(w *walk, s *site) (*val, bool) {
	return w.importModule(s.arg(0), "dynamic", "", nil, s.n), true
}

// nativeLoad is a way around require; that it is taken is a fact of its own, which the tables state.
func nativeLoad(w *walk, s *site) (*val, bool) {
	w.emit(s)
	return w.importModule(s.arg(0), "require", "", nil, s.n), true
}

// nativeBinding takes a part of node's inside; some hold no more than constants,
// sources, tests and functions on bytes, or work on what is open already.
func nativeBinding(_ *walk, s *site) (*val, bool) {
	name, known := s.arg(0).one()
	return unknown, known && quietBindings[name]
}

// quietBindings open, start and load nothing.
var quietBindings = nameSet(`buffer config constants errors http_parser icu js_stream natives stream_wrap string_decoder symbols tty_wrap types url util uv v8 zlib`)

// nativeScripts loads scripts into a worker of a page, which node has none of.
func nativeScripts(w *walk, s *site) (*val, bool) {
	return unknown, w.read[s.name] && w.notThere(s.name)
}

// nativeWorker starts a program that may stand in its address.
func nativeWorker(w *walk, s *site) (*val, bool) {
	if url, ok := s.arg(0).one(); ok && strings.HasPrefix(url, "data:") {
		w.dataModule(url, s.n)
	}
	return nil, false
}

func nativeCreateRequire(*walk, *site) (*val, bool) { return named("require", "alias"), true }

func nativeFirst(_ *walk, s *site) (*val, bool) { return settled(s.arg(0)), true }

func nativeKeep(_ *walk, s *site) (*val, bool) { return opaque(s.origins()), true }

func nativeEval(w *walk, s *site) (*val, bool) {
	m := w.b.Mark()
	w.emit(s)
	sc := w.root
	if w.t.kind(s.n) == kCall && w.t.kind(w.t.child(s.n, fFunction)) == kIdentifier {
		sc = w.sc
	}
	v := w.evaluated(s, sc)
	w.tameCode(m, s, s.arg(0), sc, false)
	return v, true
}

func nativeRun(w *walk, s *site) (*val, bool) {
	w.emit(s)
	return w.evaluated(s, w.root), true
}

func nativeFunction(w *walk, s *site) (*val, bool) {
	if s.how == "constructor" {
		w.dynamic(facts.DynReflection, "Function reached through a constructor", s.n)
	}
	if len(s.args) == 0 {
		return unknown, true
	}
	m, v := w.b.Mark(), w.functionOf(s)
	if v.ref != nil && v.ref.fn != nil && v.ref.fn.importsGiven() {
		v.ref.fn.silent = false // what it imports is told where it is called
		return v, true
	}
	w.emit(s)
	if v.ref != nil && v.ref.fn != nil {
		w.tameTree(m, s.args[len(s.args)-1], v.ref.fn.tree, w.root, true)
	}
	return v, true
}

// nativeTimer runs a function later. Text in its place is code.
func nativeTimer(w *walk, s *site) (*val, bool) {
	a := s.arg(0)
	switch {
	case a.simple() && a.Type == "str" && (s.name == "setTimeout" || s.name == "setInterval"):
		m := w.b.Mark()
		w.emit(s)
		w.evaluated(s, w.root)
		w.tameCode(m, s, a, w.root, true)
	case a.name != "":
		rest := s.args[1:]
		if strings.HasPrefix(s.name, "set") && len(rest) > 0 && s.name != "setImmediate" {
			rest = rest[1:]
		}
		w.apply(a, &site{n: s.n, args: rest, how: "value"})
	case a.ref != nil && a.ref.role == bound:
		w.apply(a, &site{n: s.n})
	default:
		w.handOver(s, nil)
		if fn := a.ref; fn != nil && fn.fn != nil && len(s.args) > 2 {
			fn.fn.given = s.args[2:]
		}
	}
	return &val{Value: facts.Value{Type: s.name}}, true
}

// nativeProxy keeps what a proxy stands for, with the functions that answer for it.
func nativeProxy(w *walk, s *site) (*val, bool) {
	h := s.arg(1)
	if h.ref == nil || h.ref.props["get"] == nil && h.ref.props["apply"] == nil && h.ref.props["construct"] == nil && h.ref.props["set"] == nil {
		w.handOver(s, nil)
		return s.arg(0), true
	}
	return &val{ref: &object{role: proxy, items: []*val{s.arg(0), h}}}, true
}

// proxied asks the function of a proxy that is called how, if it has one.
func (w *walk) proxied(v *val, how string, args []*val, n id) (*val, bool) {
	f := v.ref.items[1].ref.props[how]
	if f == nil {
		return nil, false
	}
	return w.back(f, append([]*val{v.ref.items[0]}, args...), n), true
}

// nativePromise runs the function that a promise is made of.
func nativePromise(w *walk, s *site) (*val, bool) {
	p := &val{ref: &object{role: promise}}
	settle := &val{ref: &object{role: resolver, base: p}}
	if s.arg(0).ref != nil {
		w.apply(s.arg(0), &site{n: s.n, args: []*val{settle, unknown}})
	}
	return p, true
}

func nativeAll(_ *walk, s *site) (*val, bool) {
	items, open := elements(s.arg(0))
	out := &object{role: array, open: open}
	for _, it := range items {
		out.items = append(out.items, settled(it))
	}
	return &val{ref: out}, true
}

func nativeAny(_ *walk, s *site) (*val, bool) {
	if s.arg(0).ref == nil {
		return opaque(s.origins()), true
	}
	return anyMember(s.arg(0)), true
}

// settled is what awaiting v gives.
func settled(v *val) *val {
	if v.ref != nil && v.ref.role == promise {
		if v.ref.made == nil {
			return unknown
		}
		return v.ref.made
	}
	return v
}

// nativePrint shows values; shown whole, the environment is dumped.
func nativePrint(w *walk, s *site) (*val, bool) {
	for _, a := range s.args {
		w.dump(a, s.n)
	}
	return opaque(s.origins()), true
}

func (w *walk) dump(v *val, n id) {
	if v.name == envName || v.ref != nil && v.ref.base != nil && v.ref.base.name == envName {
		w.env("dump", unknown, nil, n)
	}
}

func nativeFormat(_ *walk, s *site) (*val, bool) {
	f, ok := s.arg(0).one()
	if !ok {
		return opaque(s.origins()), true
	}
	v, i := text(""), 1
	for {
		at := strings.IndexByte(f, '%')
		if at < 0 || at+1 >= len(f) {
			break
		}
		v = plus(v, text(f[:at]))
		switch f[at+1] {
		case '%':
			v = plus(v, text("%"))
		case 's', 'd', 'i', 'f', 'j', 'o', 'O':
			v = plus(v, s.arg(i))
			i++
		default:
			v = plus(v, text(f[at:at+2]))
		}
		f = f[at+2:]
	}
	return plus(v, text(f)), true
}

// thenable calls the functions that are given to a promise. Promises are not told from what they hold.
func (w *walk) thenable(obj *val, key string, s *site) (*val, bool) {
	switch key {
	case "then", "catch", "finally":
	default:
		return nil, false
	}
	if obj.ref != nil && (obj.ref.props[key] != nil || obj.ref.role == instance) || len(s.args) == 0 {
		return nil, false
	}
	if p := obj.ref; p != nil && p.role == promise && p.made == nil && len(p.waits) < maxAlts && key == "then" {
		next := &val{ref: &object{role: promise}}
		p.waits = append(p.waits, wait{s.arg(0), next, s.n})
		return next, true
	}
	v := settled(obj)
	switch key {
	case "then":
		out := w.back(s.arg(0), []*val{v}, s.n)
		if len(s.args) > 1 {
			w.back(s.arg(1), []*val{unknown}, s.n)
		}
		return settled(out), true
	case "catch":
		w.cond++
		out := w.back(s.arg(0), []*val{unknown}, s.n)
		w.cond--
		return union(v, out), true
	}
	w.back(s.arg(0), nil, s.n)
	return obj, true
}

// resolve gives a promise its value, and calls what waits for it.
func (w *walk) resolve(p *object, v *val) {
	p.made = union(p.made, v)
	waits := p.waits
	p.waits = nil
	for _, next := range waits {
		w.resolve(next.promise.ref, settled(w.back(next.f, []*val{v}, next.n)))
	}
}

// back calls a function that the program handed over.
func (w *walk) back(f *val, args []*val, n id) *val {
	if f.name == "" && f.ref == nil && f.alts == nil {
		return opaque(f.From)
	}
	return w.apply(f, &site{n: n, args: args, how: "value"})
}
