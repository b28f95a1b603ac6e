package javascript

import (
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// walk runs one program in the abstract: it evaluates every expression at least once, in the order of the program where
// that is known, and reports the calls that leave it.
type walk struct {
	frame
	b       *facts.Builder
	g       *grammar
	root    *scope
	quiet   int // facts are not reported
	loops   int // around the current place
	picks   int // above 0, what is gone through is told apart by name
	spawned int // how many processes were started so far

	steps, inline, hard int

	functions []*val
	classes   []*val
	skipped   []skipped
	done      int            // of skipped
	idle      bool           // what runs is not called by the program
	wild      bool           // the program calls members whose names are not known, of what is not known
	chosen    []*object      // members of these are called by names that are not known
	seen      map[place]bool // statements in skipped
	made      map[place]int  // closures of each function
	ran       map[place]bool
	spawns    map[place][]start // where functions start processes
	members   map[string][]*val // see membersOf
	serial    map[*object]int
	varNames  map[place][]string
	assigns   map[place][]string
	stack     []*function
	emitted   map[string]*val
	times     map[place]int
	trees     map[string]*tree
	exports   *val
	modules   map[string]*object // of the workspace, as they know themselves; see load
	offers    *object            // what the module that is being followed exports
	withs     []*val             // objects of with statements around the current place
	thrown    *val               // by what ran so far within a try statement
	// extra are members that the program gave to what is not its own: by name, or by the object.
	extra   map[string]*val
	extraOf map[*val]*object

	before    []id // decorators that stand before the member to come
	listeners []listener
	emits     []emission

	index     *val
	indexAt   id
	indexTree *tree
	indexStep int

	own *val // the program's own folder

	main  *tree
	top   *object         // this of the text itself, which is the global object where it is given as code
	names map[string]bool // that main gives a meaning to, once they were asked for
	// disguised: members of process are set that are not known.
	disguised bool
	defines   bool            // names of the global object are set that are not known
	kept      []*val          // what was handed to what is not there
	pages     []facts.Pos     // calls of what only a page has
	looked    int             // see maxTamed
	read      map[string]bool // names that the program does not declare and reads
	others    bool            // modules are loaded that may give names a meaning
	loaded    map[string]bool // what the names of modules begin with
	onTop     map[string]bool // members that top is given
}

// frame is what changes from one function to the next.
type frame struct {
	t     *tree
	sc    *scope
	act   *activation
	cond  int // conditions around the current place
	base  int // conditions around the function or loop whose course is known
	late  int // running at a time that is not known
	depth int // of calls
}

// skipped is code that did not run where it stands, as far as that is known.
type skipped struct {
	frame
	n    id
	idle bool
}

func newWalk(b *facts.Builder, g *grammar, t *tree) *walk {
	w := &walk{b: b, g: g, root: &scope{}}
	w.t, w.sc, w.main = t, w.root, t
	w.top = &object{role: plain, open: true}
	w.act = &activation{this: &val{ref: w.top}}
	w.root.call = w.act
	w.inline = 3*len(t.nodes) + 40_000
	w.hard = 8*len(t.nodes) + 150_000
	w.seen, w.made, w.ran = map[place]bool{}, map[place]int{}, map[place]bool{}
	w.spawns, w.times, w.members = map[place][]start{}, map[place]int{}, map[string][]*val{}
	w.serial = map[*object]int{}
	w.varNames, w.assigns = map[place][]string{}, map[place][]string{}
	w.emitted, w.trees = map[string]*val{}, map[string]*tree{}
	w.extra, w.extraOf = map[string]*val{}, map[*val]*object{}
	w.read, w.loaded, w.onTop = map[string]bool{}, map[string]bool{}, map[string]bool{}
	w.exports = &val{ref: &object{role: plain, open: true}}
	w.extra["module.exports"] = w.exports
	return w
}

// later remembers code that is not run where it stands.
func (w *walk) later(n id) {
	p := place{w.t, n}
	if n == 0 || w.quiet > 0 || w.seen[p] {
		return
	}
	w.seen[p] = true
	w.skipped = append(w.skipped, skipped{w.frame, n, w.idle})
}

// step counts, and reports whether to go on.
func (w *walk) step() bool {
	w.steps++
	return w.b.Node()
}

func (w *walk) pos(n id) facts.Pos {
	if w.t.origin != nil { // compiled at run time: it stands where that was
		return *w.t.origin
	}
	nd := w.t.nodes[n]
	var p facts.Pos
	p.Line, p.Col = w.t.place(nd.start)
	p.EndLine, p.EndCol = w.t.place(nd.end)
	return p
}

func (w *walk) dynamic(kind, detail string, n id, from ...string) {
	if w.quiet == 0 && w.once(kind+"\x00"+detail, n) {
		w.b.Dynamic(kind, detail, w.pos(n), from...)
	}
}

func (w *walk) structure(kind, detail string, n id) {
	if w.quiet == 0 && w.once(kind, n) {
		w.b.Struct(kind, detail, w.pos(n))
	}
}

func (w *walk) env(op string, name, value *val, n id) {
	v := facts.Value{}
	if value != nil {
		v = value.out()
	}
	key, _ := name.One()
	if w.quiet == 0 && w.once("env "+op+key, n) {
		w.b.Env(op, name.out(), v, w.pos(n))
	}
}

func (w *walk) literal(s string, n id) {
	if len(s) >= 4 && w.quiet == 0 && w.t.origin == nil && w.once("literal", n) {
		w.b.Literal(s, w.pos(n))
	}
}

// once reports whether this was not said of n before.
func (w *walk) once(what string, n id) bool {
	key := what + "\x00" + strconv.Itoa(int(n)) + w.t.label
	if _, ok := w.emitted[key]; ok {
		return false
	}
	w.emitted[key] = unknown
	return true
}

// module is the class of a module whose every use matters, "" for others.
func (w *walk) module(name string) string {
	return w.b.Tables().Modules[facts.JavaScript][strings.TrimSuffix(name, unknownSuffix)]
}

// maxSame is how many ways of calling are told apart at one place.
const maxSame = 16

// emit reports a call, once for the same arguments.
func (w *walk) emit(s *site) *val {
	if w.quiet > 0 {
		return of(facts.Value{Type: s.name, From: s.origins()})
	}
	p := place{w.t, s.n}
	var key strings.Builder
	key.WriteString(s.name)
	sign, ok := w.signature(nil, s.args)
	key.WriteString(sign)
	key.WriteString(strconv.Itoa(int(s.n)))
	key.WriteString(w.t.label)
	if v, have := w.emitted[key.String()]; have && ok {
		return v
	}
	if w.times[p] >= maxSame {
		return of(facts.Value{Type: s.name, From: s.origins()})
	}
	c := w.fact(s)
	if w.times[p]++; w.times[p] == maxSame {
		for i := range c.Args {
			c.Args[i] = facts.Union(c.Args[i], facts.Opaque())
		}
	}
	c.Pos = w.pos(s.n)
	v := of(w.b.Call(c))
	w.emitted[key.String()] = v
	return v
}

// fact is a call as rules may see it.
func (w *walk) fact(s *site) facts.Call {
	c := facts.Call{Name: s.name, Recv: s.recv, How: callHow(s.how), New: s.new}
	for _, a := range s.args {
		c.Args = append(c.Args, w.argument(a))
		if f := c.Args[len(c.Args)-1].Fields; f != nil && len(c.Kwargs) == 0 {
			c.Kwargs = f
		}
	}
	if text, ok := c.Args, s.tag && strings.HasPrefix(s.name, "execa"); ok {
		c.Args = []facts.Value{words(text[0])}
	}
	return c
}

// words are the parts of a command line that no shell reads.
func words(v facts.Value) facts.Value {
	line, ok := v.One()
	if !ok {
		return facts.List(v)
	}
	var out []facts.Value
	for _, f := range strings.Fields(line) {
		out = append(out, facts.Text(f))
	}
	return facts.List(out...)
}

// argument is what a call is given. A name that nothing is known of is a variable that someone else sets.
func (w *walk) argument(a *val) facts.Value {
	v := a.out()
	if v.Func == "" || natives[v.Func] != nil {
		return v
	}
	if _, ok := w.b.API(v.Func); ok {
		return v
	}
	return facts.Opaque(v.From...)
}

// callHow is how a callee was resolved, in the words of [facts.Call].
func callHow(how string) string {
	switch how {
	case "constructor":
		return "attr"
	}
	return how
}
