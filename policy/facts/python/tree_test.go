package python

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/syntaxtree"
)

// TestParseMemory: a text that needs more memory than it may have is given up,
// and what follows has all of it.
func TestParseMemory(t *testing.T) {
	g := newLanguage()
	within := func(src string, bytes int) *tree {
		return g.parseWithin(src, syntaxtree.Limits{CPU: time.Minute, Wall: time.Minute, Bytes: bytes, Nodes: maxNodes})
	}
	long := strings.Repeat("x = [1, 2, {'a': f(b)}]\n", 8000)
	for range 3 {
		if tree := within(long, 5<<20); tree != nil {
			t.Fatalf("%d nodes in 5 MiB", tree.nodes)
		}
		tree := within("x = 1\n", 5<<20)
		if tree == nil || tree.errors > 0 || tree.root.kind != "module" {
			t.Fatalf("the next text: %+v", tree)
		}
	}
	if tree := within(long, parseBytes); tree == nil || tree.errors > 0 {
		t.Fatal("a long text does not fit")
	}
}

// TestParseEmpty: a text without bytes has a tree.
func TestParseEmpty(t *testing.T) {
	for _, src := range []string{"", "\n", "#"} {
		if tree := newLanguage().parse(src); tree == nil || tree.root == nil || tree.root.kind != "module" {
			t.Errorf("%q: %+v", src, tree)
		}
	}
}

// TestParseAtOnce: parses beside each other share nothing.
func TestParseAtOnce(t *testing.T) {
	g := newLanguage()
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for j := range 40 {
				n := 1 + (i*31+j*17)%300
				tree := g.parse(strings.Repeat("def f(a, *b):\n    return a[1:2] + g(b, 'x')\n", n))
				if tree == nil || tree.errors > 0 || len(tree.root.children()) != n {
					t.Errorf("%d functions: %+v", n, tree)
				}
			}
		})
	}
	running.Wait()
}

// children are all of a node's.
func (n *node) children() (list []*node) {
	for c := n.first; c != nil; c = c.next {
		list = append(list, c)
	}
	return list
}
