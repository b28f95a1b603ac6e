package python

import (
	"strings"
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
