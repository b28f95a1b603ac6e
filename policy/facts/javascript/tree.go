package javascript

import (
	"sort"
	"time"

	"github.com/caisson-dev/caisson/internal/syntaxtree"
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
	strings map[id]*val // those that were evaluated
	// origin is where code that a program makes stands in the text that is scanned, and label tells it apart from that.
	origin *facts.Pos
	label  string
	module string // of the workspace, that it is; "" of the text itself
}

// Bounds of parsing.
const (
	parseTime  = 200 * time.Millisecond
	parseMost  = 600 * time.Millisecond // see parseLimit
	parseBytes = 256 << 20
	parseNodes = 2_000_000
	maxDepth   = 2500
	maxNodes   = 600_000
)

// patience is how much longer than its limit a parse may take where the machine is busy with other things.
const patience = 5

// parseLimit is what a text may take by its length: a bundle of a page, on a
// line of its own, has a node for every two or three bytes.
func parseLimit(limit time.Duration, length int) time.Duration {
	return min(limit+time.Duration(length)*limit/(200<<10), max(limit, parseMost))
}

// parse gives nil where src cannot be parsed in time. The limit is processor time, so that a busy machine does not
// change what is found; wall is what may pass at most.
func parse(g *grammar, src []byte, limit, wall time.Duration) (t *tree) {
	text := string(src)
	lim := syntaxtree.Limits{CPU: limit, Wall: wall, Bytes: parseBytes, Nodes: parseNodes}
	g.parser.Parse(text, lim, func(nodes []syntaxtree.Node, total int) {
		t = flatten(g, nodes, text)
		t.tooDeep = t.tooDeep || total > len(nodes)
	})
	return t
}

func flatten(g *grammar, parsed []syntaxtree.Node, src string) *tree {
	t := &tree{src: src, nodes: make([]node, 0, len(parsed)/2+8)}
	f := flattener{tree: t, grammar: g, parsed: parsed}
	t.nodes = append(t.nodes, node{kind: kProgram, end: uint32(len(src))})
	f.children(0, 0, 0)
	return t
}

type flattener struct {
	*tree
	*grammar
	parsed []syntaxtree.Node
}

// children appends what is below a parsed node as children of parent.
func (f *flattener) children(parent id, parsed, depth int) {
	end := parsed + f.parsed[parsed].Size()
	if end == parsed+1 {
		return
	}
	if depth >= maxDepth || len(f.nodes) >= maxNodes {
		f.tooDeep = true
		return
	}
	last, plain := id(0), noFields[f.nodes[parent].kind]
	for i := parsed + 1; i < end; i += f.parsed[i].Size() {
		n, ok := f.node(&f.parsed[i], !plain)
		if !ok {
			continue
		}
		at := id(len(f.nodes))
		f.nodes = append(f.nodes, n)
		if last == 0 {
			f.nodes[parent].first = at
		} else {
			f.nodes[last].next = at
		}
		last = at
		if !leafKinds[n.kind] {
			f.children(at, i, depth+1)
		}
	}
}

// node is what is kept of a parsed one; fields says that its field matters.
func (f *flattener) node(c *syntaxtree.Node, fields bool) (node, bool) {
	if c.Missing() {
		f.errors++
		return node{}, false
	}
	k := kOther
	if sym := c.Kind(); sym == syntaxtree.Error {
		f.errors++
		k = kError
	} else if int(sym) < len(f.kinds) {
		k = f.kinds[sym]
	}
	if k == kSkip {
		return node{}, false
	}
	n := node{kind: k}
	n.start, n.end = c.Range()
	if fid := c.Field(); fields && int(fid) < len(f.fields) {
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
