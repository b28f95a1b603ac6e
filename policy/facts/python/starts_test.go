package python

import (
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// TestStarts tells a program that only offers from one that may have something
// out of sight call what it defines.
func TestStarts(t *testing.T) {
	t.Parallel()
	const sink = "import lib, os, re, sys\nclass A(lib.B):\n    def do_go(self, x):\n        eval(x)\nT = [A]\n"
	for _, tt := range []struct {
		name, code string
		idle       bool
	}{
		{"nothing", "", true},
		{"constants", "P = re.compile('a')\nQ = {'go': ['do_go']}\nif sys.version_info > (3,):\n    R = lib.value(1)\n", true},
		{"functions that name it", "def f(a):\n    return getattr(a, 'do_' + a.name)\ndef g():\n    return A().do_go\n", true},
		{"main", "def main():\n    lib.serve(A)\nif __name__ == '__main__':\n    main()\n", false},
		{"call for its own sake", "lib.serve()\n", false},
		{"call whose result is kept", "_ = lib.serve(A)\n", false},
		{"method of what was made", "s = lib.server()\n_ = s.go()\n", false},
		{"object", "a = A()\n", false},
		{"put somewhere", "lib.handler = A\nsys.excepthook = A\ndef f(x):\n    pass\nlib.f = f\n", false},
		{"decorator of something made", "app = lib.app()\n@app.get('/')\ndef f():\n    return A\n", false},
		{"class decorator", "@lib.register\nclass C(A):\n    pass\n", false},
		{"metaclass", "class M(type):\n    pass\nclass C(metaclass=M):\n    a = A\n", false},
		{"hook", "class C:\n    def __init_subclass__(cls):\n        A\n", false},
		{"operator", "class C:\n    def __lt__(self, x):\n        A(x)\nc = C() < 1\n", false},
		{"property", "class C:\n    @property\n    def p(self):\n        A\nc = C().p\n", false},
		{"code", "exec(open('a.py').read())\n", false},
		{"name looked up", "globals()['do' + sys.argv[1]]\n", false},
		{"object whose methods only compute", "class S:\n    def __repr__(self):\n        return '<' + name(self) + '>'\ndef name(s):\n    return type(s).__name__.lower()\ns = S()\n", true},
		{"object whose methods call a method of the program", "class L:\n    def append(self, x):\n        A(x)\nclass S:\n    l = L()\n    def __lt__(self, x):\n        self.l.append(x)\ns = S()\n", false},
		{"object whose methods call what gets another meaning", "class S:\n    def __str__(self):\n        return repr(self)\ns = S()\nrepr = A\n", false},
		{"object whose methods call a function that is replaced", "def h(x):\n    pass\nclass S:\n    def __lt__(self, x):\n        h(x)\ns = S()\ndef h(x):\n    A(x)\n", false},
		{"class that can be followed by brackets", "class C:\n    def __class_getitem__(cls, x):\n        return A(x)\n", true},
		{"class that is followed by brackets", "class C:\n    def __class_getitem__(cls, x):\n        return A(x)\nc = C[1]\n", false},
		{"class of a kind", "class C(lib.B, total=False):\n    pass\n", true},
		{"register of an abstract class", "import collections.abc\ncollections.abc.Sequence.register(A)\n", true},
		{"method that only looks", "P = [n for n in lib.names if not n.startswith('_')]\n", true},
		{"method that the program has as well", "class C:\n    def startswith(self, x):\n        A\nP = [n for n in lib.names if n.startswith('_')]\n", false},
		{"decorator of others", "@lib.on\ndef f(x):\n    lib.go(A)\n", true},
		{"decorator of another module of the package", "from .b import on\n@on(1)\ndef f(x):\n    lib.go(A)\n", true},
		{"method as a decorator", "app = lib.app()\n@app.on\ndef f(x):\n    lib.go(A)\n", false},
		{"decorator, and a start", "@lib.on\ndef f(x):\n    return A\nlib.run()\n", false},
		{"setattr", "setattr(lib, 'a', A)\n", false},
		{"sorting", "P = sorted([1], key=lambda x: A(x))\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := scan(t, sink+tt.code+"def g(n):\n    return getattr(lib, 'A' + n), 'do_go', 'A'\n")
			idle, found := true, false
			for _, x := range d.Dynamic {
				if x.Kind == facts.DynEval && x.Line == 4 {
					idle, found = idle && x.Idle, true
				}
			}
			if !found || idle != tt.idle {
				t.Errorf("found %v, idle %v, want %v: %+v", found, idle, tt.idle, d.Dynamic)
			}
		})
	}
}
