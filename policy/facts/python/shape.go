package python

import (
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// shape is what is gathered about loops, for facts about the program's form.
type shape struct {
	endless []*node // loops around the place that never end by themselves
	forked  bool
	search  int8    // 2 where the text has something to search keys with, 1 where not
	turns   float64 // how often the place is reached, by loops whose rounds are known; 0 is once
	said    map[string]bool
}

// enterLoop notes a loop; the result is called at its end.
func (it *interp) enterLoop(n *node, s *scope) func() {
	it.search(n)
	if !it.endless(n) && !it.stuck(n) && !it.neverDone(n, s) {
		return func() {}
	}
	it.shape.endless = append(it.shape.endless, n)
	var f spends
	f.scope = s
	it.spend(n.child("body"), &f)
	switch {
	case f.waits:
	case f.makes:
		it.structure(facts.StructLoopWrite, "files are made in a loop without end", n)
	case f.grows:
		it.structure(facts.StructInfiniteLoop, "memory is taken", n)
	default:
		it.structure(facts.StructInfiniteLoop, "busy", n)
	}
	return func() { it.shape.endless = it.shape.endless[:len(it.shape.endless)-1] }
}

// endless: while True, while 1, for … in itertools.count() without an end.
func (it *interp) endless(n *node) bool {
	body := n.child("body")
	if body == nil || breaks(body) {
		return false
	}
	if n.kind == "while_statement" {
		c := n.child("condition")
		for c != nil && c.kind == "parenthesized_expression" {
			c = c.nth(0)
		}
		if c == nil {
			return false
		}
		if c.kind == "not_operator" {
			v := c.nth(0)
			return v != nil && (v.kind == "false" || v.kind == "none" || v.kind == "integer" && it.t.text(v) == "0")
		}
		if c.kind == "comparison_operator" {
			return it.constantCondition(c)
		}
		return c.kind == "true" || c.kind == "integer" && it.t.text(c) != "0" || c.kind == "string" && c.size > 3
	}
	right := n.child("right")
	if right == nil {
		return false
	}
	text := it.t.text(right)
	return strings.HasSuffix(text, "count()") || unending(text)
}

// starters make processes and threads.
var starters = map[string]string{
	"os.fork": facts.StructForkBomb, "os.forkpty": facts.StructForkBomb, "pty.fork": facts.StructForkBomb,
	"multiprocessing.Process.start": facts.StructForkBomb, "subprocess.Popen": facts.StructForkBomb,
	"os.posix_spawn": facts.StructForkBomb, "os.spawnl": facts.StructForkBomb, "os.spawnv": facts.StructForkBomb,
	"os.dup": facts.StructResourceBurn, "os.pipe": facts.StructResourceBurn,
	"threading.Thread.start": facts.StructInfiniteLoop, "os.startfile": facts.StructForkBomb,
}

// behind are calls that run a function beside the program.
var behind = set(`threading.Thread multiprocessing.Process multiprocessing.Pool.map multiprocessing.Pool.apply_async
	concurrent.futures.ThreadPoolExecutor.submit concurrent.futures.ProcessPoolExecutor.submit _thread.start_new_thread`)

// senders put data on the network.
var senders = set(`socket.socket.sendto socket.socket.send socket.socket.sendall socket.socket.connect requests.get requests.post
	urllib.request.urlopen socket.socket.sendmsg`)

// notice sees every call that is reported, for the shapes that calls make.
func (it *interp) notice(name string, a *arguments, self *val, n *node) {
	endless := len(it.shape.endless) > 0
	recursive := it.recursive()
	switch kind, ok := starters[name]; {
	case ok && endless && !recursive && (it.serves(n) || it.paced(name, a, n)):
	case ok && (endless || recursive && kind == facts.StructForkBomb && name != "subprocess.Popen"):
		it.starting(kind, name, a, n)
	case ok && strings.Contains(name, "fork") && it.shape.forked && len(it.calls) == 0 && it.loops > 0:
		it.structure(kind, name, n)
	case senders[name] && endless:
		it.structure(facts.StructInfiniteLoop, name, n)
	}
	if strings.Contains(name, "fork") {
		it.shape.forked = true
	}
	it.many(name, a, self, n)
	it.scans(name, a, n)
	if behind[name] {
		for _, v := range a.all() {
			if v.kind == kFunc && v.x.fn.t == it.t && v.x.fn.body != nil && it.burns(v.x.fn.body) {
				it.structure(facts.StructInfiniteLoop, "busy in the background", n)
			}
		}
	}
	it.receivedCode(name, a, n)
}

// recursive reports that the function that is being followed calls itself.
func (it *interp) recursive() bool {
	for _, f := range it.calls {
		if f.active > 1 || f.callsItself() {
			return true
		}
	}
	return false
}

// callsItself is selfCall, looked for once.
func (f *function) callsItself() bool {
	if f.itself == nil {
		found := f.selfCall(f.body)
		f.itself = &found
	}
	return *f.itself
}

// selfCall looks for a call of the function's own name in its body.
func (f *function) selfCall(n *node) bool {
	if n == nil || f.lambda || n.size > 4000 {
		return false
	}
	for c := n.first; c != nil; c = c.next {
		if c.kind == "call" {
			if name := c.child("function"); name != nil && name.kind == "identifier" && f.t.text(name) == f.name {
				return true
			}
		}
		if c.size > 1 && f.selfCall(c) {
			return true
		}
	}
	return false
}

// receivedCode: what comes from the network is run.
func (it *interp) receivedCode(name string, a *arguments, n *node) {
	if !it.runs(name) {
		return
	}
	for _, v := range a.all() {
		if it.takesData(v.fact()) {
			continue
		}
		for _, from := range v.origins(0) {
			if from == "net" || strings.HasPrefix(from, "net:") {
				it.structure(facts.StructRecvExec, name, n)
				return
			}
		}
	}
}

// takesData reports whether a command names a program that starts nothing and
// runs no code: what else it is given is data. Where a program's options can
// start others, that is a finding of its own.
func (it *interp) takesData(argv facts.Value) bool {
	if argv.Type != "list" || len(argv.Items) == 0 {
		return false
	}
	name, ok := argv.Items[0].One()
	if !ok {
		return false
	}
	p, _, known := it.b.Tables().Program(name)
	return known && p.Interpreter == "" && !p.Wrapper && !p.Applet && !p.CodeArg && !p.Join && !p.Stdin && len(p.Runs) == 0
}

func (it *interp) structure(kind, detail string, n *node) {
	key := kind + detail
	if it.quiet > 0 || it.shape.said[key] {
		return
	}
	if it.shape.said == nil {
		it.shape.said = map[string]bool{}
	}
	it.shape.said[key] = true
	it.b.Struct(kind, detail, it.pos(n))
}

const (
	hugeBytes = 4 << 30
	hugeItems = 500_000_000
	loopBytes = 64 << 10 // at once, in a loop without an end
)

// enormous notices a text or a list that is repeated more often than memory
// has room for.
func (it *interp) enormous(seq, times *val, n *node) {
	count, ok := times.int()
	if !ok || count <= 0 {
		return
	}
	switch {
	case (seq.isText() || seq.kind == kUnknown) && sizeOf(seq) > 0:
		size := float64(sizeOf(seq)) * float64(count)
		if size >= hugeBytes || size >= loopBytes && len(it.shape.endless) > 0 {
			it.structure(facts.StructHugeAlloc, "a text of "+strconv.FormatFloat(size, 'g', 4, 64)+" bytes", n)
		}
	case seq.kind == kObj && (seq.text == "array.array" || seq.text == "collections.deque") && float64(count) >= hugeItems:
		it.structure(facts.StructHugeAlloc, "an array of "+strconv.FormatInt(count, 10)+" items", n)
	case seq.isSeq() && len(seq.x.items) > 0:
		if size := float64(len(seq.x.items)) * float64(count); size >= hugeItems {
			it.structure(facts.StructHugeAlloc, "a list of "+strconv.FormatFloat(size, 'g', 4, 64)+" items", n)
		}
	}
}

// idlers are calls that an endless loop may make without ever waiting for
// anything, or ending by itself.
var idlers = map[string]bool{
	"append": true, "extend": true, "appendleft": true, "insert": true, "add": true, "update": true, "print": true, "str": true, "len": true,
	"range": true, "bytearray": true, "bytes": true, "list": true, "dict": true, "random": true, "randint": true, "choice": true, "urandom": true,
	"open": true, "write": true, "close": true, "flush": true, "mkdir": true, "makedirs": true, "touch": true, "write_text": true, "write_bytes": true,
	"copy": true, "copy2": true, "copyfile": true, "hex": true, "token_hex": true, "id": true,
	"debug": true, "info": true, "warning": true, "error": true, "critical": true, "exception": true, "log": true, "getLogger": true,
	"encode": true, "decode": true, "md5": true, "sha1": true, "sha256": true, "sha512": true, "digest": true, "hexdigest": true, "dumps": true,
	"int": true, "float": true, "abs": true, "min": true, "max": true, "sorted": true, "set": true, "tuple": true, "time": true, "now": true,
	"join": true, "format": true, "Path": true, "sqrt": true, "pow": true, "sum": true, "uuid4": true,
	"chdir": true, "getrandbits": true, "truncate": true, "seek": true, "fsync": true, "mkstemp": true, "mkdtemp": true,
}

// spends is what a loop does at each turn, in words.
type spends struct {
	waits, grows, makes bool
	scope               *scope // where names are looked up, or nil
}

func (it *interp) spend(n *node, f *spends) {
	for c := n.first; c != nil; c = c.next {
		switch c.kind {
		case "call":
			it.spendCall(c, f)
		case "augmented_assignment":
			l, r := c.child("left"), c.child("right")
			if l != nil && r != nil && (it.t.text(l) == it.t.text(r) || r.kind == "list" || r.kind == "string") {
				f.grows = true
			}
		case "await", "yield":
			f.waits = true
		case "function_definition", "lambda", "class_definition":
			continue
		}
		if c.size > 1 {
			it.spend(c, f)
		}
	}
}

func (it *interp) spendCall(c *node, f *spends) {
	fn := c.child("function")
	if fn == nil {
		return
	}
	name := it.t.text(fn)
	name = name[strings.LastIndexByte(name, '.')+1:]
	switch name {
	case "next":
		f.waits = f.waits || f.scope == nil || !it.nextOf(c, f.scope)
		return
	case "append", "extend", "appendleft", "insert":
		f.grows = true
	case "mkdir", "makedirs", "touch", "write_text", "write_bytes", "write", "copy2", "copyfile", "mkstemp", "mkdtemp":
		f.makes = true
	case "copy":
		f.makes = f.makes || strings.HasPrefix(it.t.text(fn), "shutil.")
	}
	if v, ok := it.module.vars[name]; ok && v.kind == kClass && fn.kind == "identifier" {
		return // an object of the program is made
	}
	f.waits = f.waits || !idlers[name]
}

// burns reports a function that is nothing but a loop without an end, in which
// nothing is waited for.
func (it *interp) burns(body *node) bool {
	for c := body.first; c != nil; c = c.next {
		if c.kind == "while_statement" && it.endless(c) {
			var f spends
			it.spend(c.child("body"), &f)
			return !f.waits
		}
	}
	return false
}
