package python

import (
	"github.com/caisson-dev/caisson/policy/facts"
)

const (
	maxEvalDepth = 400  // nesting of expressions and blocks
	maxCalls     = 8    // functions of the program within each other
	minRuns      = 8    // runs of one function with different arguments
	idleRuns     = 20   // see refresh
	sameRuns     = 20   // see refresh
	lateRuns     = 4    // see refresh
	runNodes     = 6000 // more runs, while they cost no more than this
	maxUnroll    = 256  // rounds of a loop over constants
	unrollNodes  = 6000
	stepsPerNode = 60
	minSteps     = 100_000
)

// interp walks one text as the program would run: it takes every branch, binds
// names to abstract values, and follows the program's own functions with the
// arguments that they are called with.
type interp struct {
	b       *facts.Builder
	x       *extractor
	g       *language
	t       *tree
	module  *scope
	star    []string // modules of star imports
	depth   int
	calls   []*function
	loops   int // loops around the place whose rounds are not known
	unroll  int // rounds of the loops around it that are followed one by one
	steps   int
	copied  int // bytes, see maxCopied
	looks   int // see mayLook
	limit   int
	over    bool
	deep    bool
	quiet   int                       // above 0, nothing is reported
	ports   map[*node]map[string]bool // that each call was seen to try
	picks   int                       // above 0, what is iterated over is told apart by name
	sifting int                       // above 0, what is iterated over is looked at, or gathered
	at      *node                     // stands for every position, while code that is not in t is followed
	journal []write
	marks   []int
	pending []*function
	waiters []waiter
	raised  []*val // exceptions that the program raises
	idle    bool   // what is followed is not reached by the module
	// version counts changes to what functions can see beside their arguments,
	// and novel those that were not made before.
	version  int
	novel    int
	changes  map[uint64]bool
	reported int // calls that the tables know, and what could not be told
	news     int // of reported, those that were not seen before; see noted
	noticed  map[uint64]bool
	missed   map[string]bool // names looked up before they were bound
	classes  []*class

	attributes map[string]bool     // see assigns
	defs       map[string]int      // see definitions
	calmed     map[*node]bool      // see calm
	looked     *bool               // see looksAround
	had        map[string]bool     // see mayHave
	passed     map[string][]string // see passes
	own        bool                // the text gets hold of its own module as an object
	opening    bool                // what the module does by itself is followed
	starts     bool                // see started
	bare       *node               // a call whose result nobody takes

	shape   shape
	patched map[string]*val // attributes of modules that the program replaced
	fed     map[string]bool // modules of others that were given code, see feed
	shaken  bool            // and what every program has may be another
	inlined int
	loaded  map[string]*val // modules of the workspace, see load
	modules map[string]bool // what import statements name
	swapped map[string]*val // what stands in place of modules, see swaps
	// relocates: a module may have been told to lie elsewhere, see mayRelocate.
	relocates bool
	loads     int8 // see loadsOnly
	objects   int  // objects that are called by way of others
}

func newInterp(x *extractor, t *tree, b *facts.Builder) *interp {
	it := &interp{unroll: 1, b: b, x: x, g: x.language, t: t, module: newScope(nil)}
	it.limit = minSteps + stepsPerNode*t.nodes
	it.set(it.module, "__name__", str("__main__"))
	it.set(it.module, "__builtins__", ref("builtins", "attr"))
	return it
}

// run follows the whole text: the module first, then what nothing called.
func (it *interp) run() {
	it.opening = it.b.Depth() == 0
	it.block(it.t.root, it.module)
	// Functions found on the way are appended while this runs.
	it.resume()
	it.opening = false
	if it.starts || it.own || it.over || it.b.Depth() > 0 && !it.b.Offered() {
		it.rest(false)
	}
	if it.b.Depth() == 0 || it.b.Offered() {
		it.b.Idle(true)
		it.idle = true
	}
	it.rest(true)
	if it.over && !it.deep {
		it.b.Limit("steps of the extractor", facts.Pos{})
	}
}

// rest follows what nothing called. What the text reaches by name comes first,
// so that what idle functions do is told from it.
func (it *interp) rest(all bool) {
	var r *reach
	for i := 0; i < len(it.pending) && !it.over; i++ {
		f := it.pending[i]
		if f.runs > 0 {
			continue
		}
		if !all && it.b.Depth() == 0 && f.t == it.t {
			if r == nil || it.own && !r.module {
				// From the start: what was idle may be reached.
				r, i = reached(it.t, it.own), -1
				continue
			}
			if !f.lambda && r.idle(f.body) {
				continue
			}
		}
		it.callUnknown(f, it.handed(f, r)...)
	}
}

// rounds reports whether a body of that size may be followed n times, and
// notes that it is; done ends that.
func (it *interp) rounds(n int, size int32) (done func(), ok bool) {
	if n > maxUnroll || n*it.unroll*int(size) > unrollNodes || it.steps > it.limit/2 {
		return nil, false
	}
	before := it.unroll
	it.unroll *= max(n, 1)
	return func() { it.unroll = before }, true
}

// step counts work and reports whether there is still time.
func (it *interp) step() bool {
	it.steps++
	if it.over {
		return false
	}
	if it.steps > it.limit || !it.b.Node() {
		it.over = true
		return false
	}
	return true
}

// enter guards against depth; each true is followed by leave.
func (it *interp) enter(n *node) bool {
	if it.depth >= maxEvalDepth {
		if !it.deep {
			it.deep = true
			it.b.Dynamic(facts.DynTooDeep, "syntax", it.pos(n))
		}
		return false
	}
	if !it.step() {
		return false
	}
	it.depth++
	return true
}

func (it *interp) leave() { it.depth-- }

// pos is where a node stands.
func (it *interp) pos(n *node) facts.Pos {
	if it.at != nil {
		n = it.at
	}
	if n == nil {
		return facts.Pos{}
	}
	return facts.Pos{Line: int(n.row) + 1, Col: int(n.col) + 1, EndLine: int(n.erow) + 1, EndCol: int(n.ecol) + 1}
}

// dynamic reports what could not be told.
func (it *interp) dynamic(kind, detail string, n *node, from ...string) {
	it.reported++
	it.noted(kind+detail, n, &arguments{rest: from})
	if it.quiet == 0 {
		it.b.Dynamic(kind, detail, it.pos(n), from...)
	}
}

func (it *interp) importFact(n *node, f facts.Import) {
	it.noteModules(f)
	if it.quiet == 0 {
		f.Pos = it.pos(n)
		it.b.Import(f)
	}
}
