package python

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

// pieces are what modules are made of here: statements, and what looks like the
// beginning of one and is none.
var pieces = []string{
	"import os", "from a.b import c as d, e", "x: int = 1", "@wraps(f)\ndef g(a, *, b=1, **c):\n    return a @ b",
	"def f():\n    '''Text.\n\ndef inside():\n\n    more'''\n    return 1", "x = \"\"\"\n\nimport os\n\nclass C:\n\"\"\"", "s = '''a\n\nb'''  # '''",
	"class A(B, metaclass=C):\n    x = 1\n\n    def f(self):\n        pass\n\n    # behind", "if a:\n    b()\n\nelse:\n    c()",
	"if a:\n    b()\n\nelif c:\n    d()\n\nelse: e = 1", "try:\n    a()\n\nexcept E as e:\n    b()\n\nfinally:\n    c()",
	"for i in range(3):\n    print(i)\n\nelse:\n    pass", "match x:\n    case [1, *_]:\n        pass\n\n    case _:\n        y()",
	"f(\n\na,\n\nb)", "x = [\n\nimport_ for import_ in y\n\n]", "x = a + \\\n\nb", "# a comment", "    # a comment further in", "async def h():\n    async with a as b:\n        yield b",
	"print 'old'", "exec 'old' in d", "lambda: (yield)", "x = f\"{a!r:>{w}} {'''\n\nb'''}\"", "with a as b, c:\n    pass  # done\n\n# above", "_ = 1; y = 2", "\f", "é = 'ü'",
	"elsewhere = 1", "x = 1\n\n\n\n\ny = 2", "def f(): return 1\n\n\n# 1\n\n# 2", "if x:\n    pass\n  # between", "del a[0], b.c", "x = '\\\n\ny'", "type T = int", "if x:", "def f():\n\n", "class A:", "for x in y:\n    # nothing", "while x:", "assert x, 'y'\r\n\r\n\r\nz = 1\r",
}

// TestHalves: a text that is parsed as two halves has the tree that it has as one.
func TestHalves(t *testing.T) {
	twoProcessors(t)
	g := newLanguage()
	random := rand.New(rand.NewPCG(1, 2))
	cut := 0
	for range 400 {
		var b strings.Builder
		for b.Len() < minHalves+random.IntN(3000) {
			b.WriteString(pieces[random.IntN(len(pieces))])
			b.WriteString([]string{"\n", "\n\n", "\n\n\n", "\r\n\r\n"}[random.IntN(4)])
		}
		src := b.String()
		halves := g.halves(src, parseLimits)
		if halves == nil {
			continue
		}
		cut++
		whole := g.whole(src, parseLimits, start{})
		if halves.nodes != whole.nodes || halves.errors != whole.errors || halves.src != src {
			t.Errorf("%d nodes, %d errors; as one %d and %d", halves.nodes, halves.errors, whole.nodes, whole.errors)
		}
		if d := differ(halves.root, whole.root); d != "" {
			at := middle(src)
			t.Errorf("cut behind %q, before %q: %s", src[max(0, at-80):at], src[at:min(len(src), at+40)], d)
		}
	}
	if cut < 100 {
		t.Errorf("only %d of 400 texts were parsed as halves", cut)
	}
}

// twoProcessors has halves parsed, whatever the machine has.
func twoProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// differ says where two trees do.
func differ(a, b *node) string {
	for ; a != nil && b != nil; a, b = a.next, b.next {
		x, y := *a, *b
		x.first, x.next, y.first, y.next = nil, nil, nil, nil
		if x != y {
			return fmt.Sprintf("%+v, as one %+v", x, y)
		}
		if d := differ(a.first, b.first); d != "" {
			return d
		}
	}
	if a != nil || b != nil {
		return fmt.Sprintf("%+v, as one %+v", a, b)
	}
	return ""
}

// TestNoHalves: what goes on with what is above is not the second half of a text.
func TestNoHalves(t *testing.T) {
	twoProcessors(t)
	full := func(before, behind string) string {
		return strings.Repeat("x = 1\n", minHalves/6) + before + "\n\n" + behind + "\n" + strings.Repeat("x = 1\n", minHalves/6)
	}
	if src := full("x = 2", "y = 3"); middle(src) != strings.Index(src, "y") {
		t.Fatalf("no cut at %d", strings.Index(src, "y"))
	}
	for _, src := range []string{
		full("if x:\n    pass", "else:\n    pass"), full("if x:\n    pass", "elif y:\n    pass"),
		full("try:\n    pass", "except:\n    pass"), full("try:\n    pass", "finally:\n    pass"),
		full(`x = """`, `y"""`), full("x = '''", "y'''"), full("x = \\", "y"), full("# of what", "y = 1"), full("x = 2", " "),
	} {
		if at := middle(src); at >= 0 {
			t.Errorf("cut before %q", src[at:at+20])
		}
	}
	g := newLanguage()
	for _, src := range []string{full("x = (1,", "y)"), full("@a", "y = 1"), full("x = 'a", "b'")} {
		if middle(src) < 0 || g.halves(src, parseLimits) != nil {
			t.Errorf("halves of %q", src[len(src)/2-20:len(src)/2+20])
		}
	}
}

// TestMiddleIsQuick: finding no place takes time that grows with the text alone.
func TestMiddleIsQuick(t *testing.T) {
	for _, src := range []string{
		`"""` + strings.Repeat("\n\na", maxHalves/3), "#" + strings.Repeat(" ", maxHalves/2) + strings.Repeat("\n\na\\", maxHalves/8), strings.Repeat("\n", maxHalves),
	} {
		start := time.Now()
		if at, took := middle(src), time.Since(start); at >= 0 || took > patience {
			t.Errorf("%.9q: %d after %s", src, at, took)
		}
	}
}
