package python

// #include "flatten.h"
import "C"

import (
	"strings"
	"sync"
	"time"
	"unsafe"

	sitter "github.com/tree-sitter/go-tree-sitter"
	grammar "github.com/tree-sitter/tree-sitter-python/bindings/go"
)

const (
	parseTime  = 200 * time.Millisecond
	parseAgain = 400 * time.Millisecond
	maxNodes   = 400_000
)

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
	cut    bool // more nodes than maxNodes
}

// language is the grammar with its names, fetched once.
type language struct {
	*sitter.Language
	kinds, fields []string
}

var ownAllocator = sync.OnceFunc(func() { C.own_allocator() })

func newLanguage() *language {
	ownAllocator()
	l := sitter.NewLanguage(grammar.Language())
	g := &language{Language: l}
	for i := range l.NodeKindCount() {
		g.kinds = append(g.kinds, strings.Clone(l.NodeKindForId(uint16(i))))
	}
	g.fields = append(g.fields, "")
	for i := range l.FieldCount() {
		g.fields = append(g.fields, strings.Clone(l.FieldNameForId(uint16(i+1))))
	}
	return g
}

// parse gives nil when the parser gave up at its deadline: some texts keep its
// error recovery busy for minutes. The clock is a wall's, so a machine that is
// busy with other things gets a second, longer try.
func (g *language) parse(src string) *tree {
	if t := g.parseWithin(src, parseTime); t != nil {
		return t
	}
	return g.parseWithin(src, parseAgain)
}

func (g *language) parseWithin(src string, limit time.Duration) *tree {
	p := sitter.NewParser()
	defer p.Close()
	if err := p.SetLanguage(g.Language); err != nil {
		return nil
	}
	text := []byte(src)
	// Not a progress callback: that crosses into Go every hundred operations,
	// and the binding keeps its options for ever.
	p.SetTimeoutMicros(uint64(limit.Microseconds())) //nolint:staticcheck // see above; the version is pinned
	t := p.ParseWithOptions(func(i int, _ sitter.Point) []byte {
		if i >= len(text) {
			return nil
		}
		return text[i:]
	}, nil, nil)
	if t == nil {
		return nil
	}
	defer t.Close()
	return g.copy(src, t)
}

// copy moves the tree into one slab of Go nodes.
func (g *language) copy(src string, t *sitter.Tree) *tree {
	root := t.RootNode()
	count := int(root.DescendantCount())
	out := &tree{src: src, cut: count > maxNodes}
	count = min(count, maxNodes)
	flat := make([]C.flat_node, count)
	n := int(C.flatten(unsafe.Pointer(root), &flat[0], C.uint32_t(count)))
	flat = flat[:n]
	slab := make([]node, n)
	for i := range flat {
		f, x := &flat[i], &slab[i]
		x.kind, x.field = g.kind(uint16(f.kind)), g.fields[f.field]
		x.start, x.end, x.row, x.col = uint32(f.start), uint32(f.end), uint32(f.row), uint32(f.col)
		x.erow, x.ecol = uint32(f.end_row), uint32(f.end_col)
		x.named, x.missing, x.size = f.named&1 != 0, f.named&2 != 0, int32(f.size)
		if x.kind == "ERROR" || x.missing {
			out.errors++
		}
		if f.size > 1 {
			x.first = &slab[i+1]
		}
	}
	for i := range flat {
		end := i + int(flat[i].size)
		for k := i + 1; k < end; k += int(flat[k].size) {
			if next := k + int(flat[k].size); next < end {
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

func (n *node) firstChild() *node {
	if n == nil {
		return nil
	}
	return n.first
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
