package python

// #include "flatten.h"
import "C"

import (
	"runtime"
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
	parseBytes = 256 << 20
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
	arenas        chan *C.arena // those that nobody uses
}

var ownAllocator = sync.OnceFunc(func() { C.arena_install() })

func newLanguage() *language {
	ownAllocator()
	l := sitter.NewLanguage(grammar.Language())
	g := &language{Language: l, arenas: make(chan *C.arena, runtime.NumCPU())}
	for i := range l.NodeKindCount() {
		g.kinds = append(g.kinds, strings.Clone(l.NodeKindForId(uint16(i))))
	}
	g.fields = append(g.fields, "")
	for i := range l.FieldCount() {
		g.fields = append(g.fields, strings.Clone(l.FieldNameForId(uint16(i+1))))
	}
	return g
}

// parse gives nil when the parser gave up, at its deadline or its memory's end:
// some texts keep its error recovery busy for minutes. The clock is a wall's, so
// a machine that is busy with other things gets a second, longer try.
func (g *language) parse(src string) *tree {
	a := g.arena()
	if a == nil {
		return nil
	}
	defer g.free(a)
	for _, limit := range []time.Duration{parseTime, parseAgain} {
		if t := g.parseWithin(a, src, limit, parseBytes); t != nil {
			return t
		}
	}
	return nil
}

// arena gives memory for one parse, and free takes it back.
func (g *language) arena() *C.arena {
	select {
	case a := <-g.arenas:
		return a
	default:
		return C.arena_new()
	}
}

func (g *language) free(a *C.arena) {
	select {
	case g.arenas <- a:
	default:
		C.arena_delete(a)
	}
}

// parseWithin parses in a, of which it leaves nothing in use.
func (g *language) parseWithin(a *C.arena, src string, limit time.Duration, bytes int) *tree {
	var flat C.flat_tree
	text := (*C.char)(unsafe.Pointer(unsafe.StringData(src)))
	if src == "" {
		text = nil // what it points to then is not said
	}
	ok := C.parse_flat(a, unsafe.Pointer(g.Inner), text, C.uint32_t(len(src)), C.uint64_t(limit.Microseconds()), C.size_t(bytes), maxNodes, &flat)
	defer C.arena_reset(a)
	if ok == 0 {
		return nil
	}
	return g.copy(src, &flat)
}

// copy moves the tree into one slab of Go nodes.
func (g *language) copy(src string, t *C.flat_tree) *tree {
	out := &tree{src: src, cut: t.total > maxNodes}
	n := int(t.count)
	flat := unsafe.Slice(t.nodes, n)
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
