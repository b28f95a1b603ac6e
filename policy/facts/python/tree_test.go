package python

import (
	"strings"
	"testing"
	"time"
)

// TestParseMemory: a text that needs more memory than it may have is given up,
// and what follows has all of it.
func TestParseMemory(t *testing.T) {
	g := newLanguage()
	a := g.arena()
	defer g.free(a)
	long := strings.Repeat("x = [1, 2, {'a': f(b)}]\n", 8000)
	for range 3 {
		if tree := g.parseWithin(a, long, time.Minute, 5<<20); tree != nil {
			t.Fatalf("%d nodes in 5 MiB", tree.nodes)
		}
		tree := g.parseWithin(a, "x = 1\n", time.Minute, 5<<20)
		if tree == nil || tree.errors > 0 || tree.root.kind != "module" {
			t.Fatalf("the next text: %+v", tree)
		}
	}
	if tree := g.parseWithin(a, long, time.Minute, parseBytes); tree == nil || tree.errors > 0 {
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
