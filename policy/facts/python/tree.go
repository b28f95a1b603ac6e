package python

import (
	"strings"
	"time"

	sitter "github.com/tree-sitter/go-tree-sitter"
	grammar "github.com/tree-sitter/tree-sitter-python/bindings/go"

	"github.com/caisson-dev/caisson/internal/syntaxtree"
)

const (
	parseTime  = 400 * time.Millisecond // of a processor
	parseWall  = 2 * time.Second        // where others keep it from one
	parseBytes = 256 << 20
	maxNodes   = 400_000
)

var parseLimits = syntaxtree.Limits{CPU: parseTime, Wall: parseWall, Bytes: parseBytes, Nodes: maxNodes}

// node is one node of a syntax tree, in Go's memory: the tree is copied once
// and then forgotten. kind and field are the grammar's names; a token that the
// grammar does not name is its own kind, such as "+".
type node struct {
	kind, field string
	start, end  uint32
	row, col    uint32
	erow, ecol  uint32
	named, seen bool // seen: as a literal
	missing     bool
	size        int32 // nodes of the subtree
	first, next *node
}

// tree is a parsed text.
type tree struct {
	src    string
	root   *node
	nodes  int
	errors int
	cut    bool   // more nodes than maxNodes
	module string // the module of the workspace that it is, "" of the text that is judged
	at     *node  // where that imports it first
}

// language is the grammar with its names, fetched once.
type language struct {
	*sitter.Language
	kinds, fields []string
	parser        *syntaxtree.Language
}

func newLanguage() *language {
	l := sitter.NewLanguage(grammar.Language())
	g := &language{Language: l, parser: syntaxtree.New(grammar.Language())}
	for i := range l.NodeKindCount() {
		g.kinds = append(g.kinds, strings.Clone(l.NodeKindForId(uint16(i))))
	}
	g.fields = append(g.fields, "")
	for i := range l.FieldCount() {
		g.fields = append(g.fields, strings.Clone(l.FieldNameForId(uint16(i+1))))
	}
	return g
}

// parse gives nil when the parser gave up at a limit: some texts keep its error
// recovery busy for minutes.
func (g *language) parse(src string) *tree {
	return g.parseWithin(src, parseLimits)
}

func (g *language) parseWithin(src string, lim syntaxtree.Limits) *tree {
	once := func(src string) *tree {
		if t := g.halves(src, lim); t != nil {
			return t
		}
		return g.whole(src, lim, start{})
	}
	return g.subjects(once(src), once)
}

// start is where a text begins in one that it is a part of.
type start struct{ at, row uint32 }

// whole parses a text in one piece.
func (g *language) whole(src string, lim syntaxtree.Limits, from start) (t *tree) {
	g.parser.Parse(src, lim, func(nodes []syntaxtree.Node, total int) { t = g.copy(src, nodes, total > lim.Nodes, from) })
	return t
}

// copy moves the tree into one slab of Go nodes.
func (g *language) copy(src string, flat []syntaxtree.Node, cut bool, from start) *tree {
	out := &tree{src: src, cut: cut}
	n := len(flat)
	slab := make([]node, n)
	for i := range flat {
		f, x := &flat[i], &slab[i]
		x.kind, x.field = g.kind(f.Kind()), g.fields[f.Field()]
		x.start, x.end = f.Range()
		x.row, x.col = f.Start()
		x.erow, x.ecol = f.End()
		x.start, x.end, x.row, x.erow = x.start+from.at, x.end+from.at, x.row+from.row, x.erow+from.row
		x.named, x.missing, x.size = f.Named(), f.Missing(), int32(f.Size())
		if x.kind == "ERROR" || x.missing {
			out.errors++
		}
		if x.size > 1 {
			x.first = &slab[i+1]
		}
	}
	for i := range flat {
		end := i + flat[i].Size()
		for k := i + 1; k < end; k += flat[k].Size() {
			if next := k + flat[k].Size(); next < end {
				slab[k].next = &slab[next]
			}
		}
	}
	if n > 0 {
		out.root = &slab[0]
	}
	out.nodes = n
	return out
}

func (g *language) kind(id uint16) string {
	if int(id) < len(g.kinds) {
		return g.kinds[id]
	}
	return "ERROR" // the grammar's last ids, which have no entry
}

// child is the first child in the field, or nil.
func (n *node) child(field string) *node {
	for c := n.first; c != nil; c = c.next {
		if c.field == field {
			return c
		}
	}
	return nil
}

// named calls f for each named child that is not a comment, in order.
func (n *node) each(f func(*node)) {
	for c := n.first; c != nil; c = c.next {
		if c.named && c.kind != "comment" && c.kind != "line_continuation" {
			f(c)
		}
	}
}

// nth is the i-th named child that is not a comment, or nil.
func (n *node) nth(i int) *node {
	for c := n.first; c != nil; c = c.next {
		if !c.named || c.kind == "comment" || c.kind == "line_continuation" {
			continue
		}
		if i == 0 {
			return c
		}
		i--
	}
	return nil
}

// text is the node's source.
func (t *tree) text(n *node) string {
	if n == nil || int(n.end) > len(t.src) || n.start > n.end {
		return ""
	}
	return t.src[n.start:n.end]
}
