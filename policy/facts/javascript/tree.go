package javascript

import (
	"runtime"
	"sort"
	"time"

	ts "github.com/tree-sitter/go-tree-sitter"

	"github.com/caisson-dev/caisson/policy/facts"
)

// id is a node's place in its tree. The root is 0, which is never a child, so 0 also says "none".
type id int32

// node is one node of the flattened tree. Flattening pays for the way into C once; the walk then visits a node as often
// as it likes.
type node struct {
	start, end  uint32
	first, next id
	kind        kind
	field       field
}

// tree is one parsed source text.
type tree struct {
	src     string
	nodes   []node
	lines   []uint32 // byte offset of each line
	errors  int
	tooDeep bool
	// origin is where code that a program makes stands in the text that is scanned, and label tells it apart from that.
	origin *facts.Pos
	label  string
}

// Bounds of parsing.
const (
	parseTime  = 200 * time.Millisecond
	parseChunk = 32 << 10
	maxDepth   = 2500
	maxNodes   = 600_000
)

// patience is how much longer than its limit a parse may take where the machine is busy with other things.
const patience = 5

// parse gives nil where src cannot be parsed in time. The limit is processor time, so that a busy machine does not
// change what is found; wall is what may pass at most.
func parse(g *grammar, src []byte, limit, wall time.Duration) *tree {
	runtime.LockOSThread() // the parser calls back on this thread
	defer runtime.UnlockOSThread()
	p := ts.NewParser()
	defer p.Close()
	if p.SetLanguage(g.language) != nil {
		return nil
	}
	start, used := time.Now(), threadTime()
	// The binding copies what each read returns, so reads are bounded. It also keeps the options for the life of the
	// process: they hold nothing but a time.
	read := func(at int, _ ts.Point) []byte {
		if at >= len(src) {
			return nil
		}
		return src[at:min(at+parseChunk, len(src))]
	}
	parsed := p.ParseWithOptions(read, nil, &ts.ParseOptions{
		ProgressCallback: func(ts.ParseState) bool {
			took := time.Since(start)
			return took > limit && (took > wall || threadTime()-used > limit)
		},
	})
	if parsed == nil {
		return nil
	}
	defer parsed.Close()
	return flatten(g, parsed, src)
}

func flatten(g *grammar, parsed *ts.Tree, src []byte) *tree {
	t := &tree{src: string(src), nodes: make([]node, 0, len(src)/4+8)}
	root := parsed.RootNode()
	f := flattener{tree: t, grammar: g, cursor: root.Walk(), broken: root.HasError()}
	defer f.cursor.Close()
	t.nodes = append(t.nodes, node{kind: kProgram, end: uint32(len(src))})
	f.children(0, 0)
	return t
}

type flattener struct {
	*tree
	*grammar
	cursor *ts.TreeCursor
	broken bool
}

// children appends what is below the cursor as children of parent.
func (f *flattener) children(parent id, depth int) {
	if !f.cursor.GotoFirstChild() {
		return
	}
	if depth >= maxDepth || len(f.nodes) >= maxNodes {
		f.tooDeep = true
		f.cursor.GotoParent()
		return
	}
	last, plain := id(0), noFields[f.nodes[parent].kind]
	for {
		if n, ok := f.node(!plain); ok {
			at := id(len(f.nodes))
			f.nodes = append(f.nodes, n)
			if last == 0 {
				f.nodes[parent].first = at
			} else {
				f.nodes[last].next = at
			}
			last = at
			if !leafKinds[n.kind] {
				f.children(at, depth+1)
			}
		}
		if !f.cursor.GotoNextSibling() {
			break
		}
	}
	f.cursor.GotoParent()
}

// node is the node under the cursor; fields says that its field matters.
func (f *flattener) node(fields bool) (node, bool) {
	c := f.cursor.Node()
	sym := c.KindId()
	k := kOther
	if int(sym) < len(f.kinds) {
		k = f.kinds[sym]
	}
	if f.broken {
		if c.IsMissing() {
			f.errors++
			return node{}, false
		}
		if c.IsError() {
			f.errors++
			k = kError
		}
	}
	if k == kSkip {
		return node{}, false
	}
	start, end := c.ByteRange()
	n := node{start: uint32(start), end: uint32(end), kind: k}
	if !fields {
		return n, true
	}
	if fid := f.cursor.FieldId(); int(fid) < len(f.fields) {
		n.field = f.fields[fid]
	}
	return n, true
}

// broken reports that there is nothing at the top but errors.
func (t *tree) broken() bool {
	errors := 0
	for c := t.nodes[0].first; c != 0; c = t.nodes[c].next {
		if t.nodes[c].kind != kError {
			return false
		}
		errors++
	}
	return errors > 0
}

// text is the source of a node.
func (t *tree) text(n id) string {
	nd := &t.nodes[n]
	return t.src[nd.start:nd.end]
}

func (t *tree) kind(n id) kind { return t.nodes[n].kind }

// child is the first child of n in that field, or 0.
func (t *tree) child(n id, f field) id {
	for c := t.nodes[n].first; c != 0; c = t.nodes[c].next {
		if t.nodes[c].field == f {
			return c
		}
	}
	return 0
}

// kid is the first child of n of that kind, or 0.
func (t *tree) kid(n id, k kind) id {
	for c := t.nodes[n].first; c != 0; c = t.nodes[c].next {
		if t.nodes[c].kind == k {
			return c
		}
	}
	return 0
}

// each calls f for every child of n.
func (t *tree) each(n id, f func(c id)) {
	for c := t.nodes[n].first; c != 0; c = t.nodes[c].next {
		f(c)
	}
}

// place turns a byte offset into a line and column, both from 1.
func (t *tree) place(off uint32) (line, col int) {
	if t.lines == nil {
		t.lines = []uint32{0}
		for i := range len(t.src) {
			if t.src[i] == '\n' {
				t.lines = append(t.lines, uint32(i+1))
			}
		}
	}
	i := sort.Search(len(t.lines), func(i int) bool { return t.lines[i] > off }) - 1
	return i + 1, int(off-t.lines[i]) + 1
}
