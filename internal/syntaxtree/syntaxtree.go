// Package syntaxtree parses texts by tree-sitter's grammars, whose parsers are C:
// each parse is one call into C, in memory of its own, within limits, and gives
// all nodes of the tree at once. What the nodes mean is its callers' business.
package syntaxtree

// #include "flatten.h"
import "C"

import (
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Error is the kind of nodes that the parser could not make sense of.
const Error = 0xffff

// Node is one node of a syntax tree. Its kind and field are numbers of the
// grammar, its places bytes from 0.
type Node C.flat_node

// Kind is the number of the node's name, [Error] or 0.
func (n *Node) Kind() uint16 { return uint16(n.kind) }

// Field is the number of the field of its parent that it stands in, or 0.
func (n *Node) Field() uint16 { return uint16(n.field) }

// Range gives where it begins and ends.
func (n *Node) Range() (start, end uint32) { return uint32(n.start), uint32(n.end) }

// Start gives the row and column where it begins, and End those where it ends.
func (n *Node) Start() (row, col uint32) { return uint32(n.row), uint32(n.col) }

// End is as Start.
func (n *Node) End() (row, col uint32) { return uint32(n.end_row), uint32(n.end_col) }

// Named says that the grammar has a name for it, as it has none for "+".
func (n *Node) Named() bool { return n.named&1 != 0 }

// Missing says that the parser put it there because something had to be.
func (n *Node) Missing() bool { return n.named&2 != 0 }

// Size is the number of nodes of its subtree, itself included.
func (n *Node) Size() int { return int(n.size) }

// Limits bound one parse.
type Limits struct {
	// CPU is how much processor time it may take, and Wall how much time where the
	// machine is busy with other things.
	CPU, Wall time.Duration
	Bytes     int // of memory
	Nodes     int // that are given; more are left out
}

// Language parses one language. It is safe for concurrent use.
type Language struct {
	grammar unsafe.Pointer
	arenas  chan *C.arena // those that nobody uses
}

var install = sync.OnceFunc(func() { C.arena_install() })

// New takes a grammar as its Go package gives it.
func New(grammar unsafe.Pointer) *Language {
	install()
	return &Language{grammar: grammar, arenas: make(chan *C.arena, runtime.NumCPU())}
}

// Parse parses src and has use look at the tree: all nodes, each before those
// below it, and how many there are with those that were left out. They are gone
// when use returns. It reports false, and calls nobody, where a limit was hit.
func (l *Language) Parse(src string, lim Limits, use func(nodes []Node, total int)) bool {
	a := l.arena()
	if a == nil {
		return false
	}
	defer l.free(a)
	defer C.arena_reset(a)
	var flat C.flat_tree
	text := (*C.char)(unsafe.Pointer(unsafe.StringData(src)))
	if src == "" {
		text = nil // what it points to then is not said
	}
	limits := C.flat_limits{cpu: C.int64_t(lim.CPU), wall: C.int64_t(lim.Wall), bytes: C.size_t(lim.Bytes), nodes: C.uint32_t(lim.Nodes)}
	if C.parse_flat(a, l.grammar, text, C.uint32_t(len(src)), limits, &flat) == 0 {
		return false
	}
	use(unsafe.Slice((*Node)(flat.nodes), int(flat.count)), int(flat.total))
	return true
}

// arena gives memory for one parse, and free takes it back.
func (l *Language) arena() *C.arena {
	select {
	case a := <-l.arenas:
		return a
	default:
		return C.arena_new()
	}
}

func (l *Language) free(a *C.arena) {
	select {
	case l.arenas <- a:
	default:
		C.arena_delete(a)
	}
}
