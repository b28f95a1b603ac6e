package python

import (
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// TestReach has what a module reaches by itself, however it does that, and
// what it only offers: the first is told apart by the fact's Idle.
func TestReach(t *testing.T) {
	t.Parallel()
	const sink = "import os, lib\nlib.go()\n" // what starts nothing has nothing that runs, see TestStarts
	for _, tt := range []struct {
		name, code string
		idle       bool
	}{
		{"function", "def f(x):\n    eval(x)\n", true},
		{"called", "def f(x):\n    eval(x)\nf(open('a').read())\n", false},
		{"named by a value", "def f(x):\n    eval(x)\nprint(f)\n", false},
		{"named by a text", "def f(x):\n    eval(x)\nprint(getattr(m, 'f'))\n", false},
		{"named in a docstring", "'f is a function'\ndef f(x):\n    eval(x)\n", true},
		{"docstring in use", "'f(x)'\ndef f(x):\n    eval(x)\nprint(__doc__)\n", false},
		{"text of several lines", "def f(x):\n    eval(x)\nD = '''\nsays f\n'''\n", false}, // eval is there, and may run D
		{"special method", "class A:\n    def __getitem__(self, x):\n        eval(x)\n", true},
		{"special method of an object", "class A:\n    def __getitem__(self, x):\n        eval(x)\nA()\n", false},
		{"object of a derived class", "class A:\n    def __getitem__(self, x):\n        eval(x)\nclass B(A):\n    pass\nB()\n", false},
		{"derived class alone", "class A:\n    def __getitem__(self, x):\n        eval(x)\nclass B(A):\n    pass\n", true},
		{"metaclass", "class M(type):\n    def __new__(m, n, b, d):\n        eval(d)\nclass A(metaclass=M):\n    pass\n", false},
		{"hook of a base", "class A:\n    def __init_subclass__(c, x):\n        eval(x)\nclass B(A, x=1):\n    pass\n", false},
		{"method by another object's name", "class A:\n    def go(self, x):\n        eval(x)\ndef g(a, n):\n    return getattr(a, n)\ng(A(), 'g' + 'o')\n", false},
		{"method through self", "class A:\n    def go(self, x):\n        eval(x)\n    def all(self, n):\n        getattr(self, n)(n)\nA().all('go')\n", false},
		{"attribute of an import", "import a\ndef f(x):\n    eval(x)\ndef __getattr__(n):\n    return getattr(a, n)\n", true},
		{"own module", "import sys\ndef f(x):\n    eval(x)\nfor n in 'abcdef':\n    getattr(sys.modules[__name__], n)(n)\n", false},
		{"globals", "def f(x):\n    eval(x)\nglobals()['f']\n", false},
		{"lookup under another name", "from builtins import globals as g\ndef f(x):\n    eval(x)\ng()[input()](1)\n", false},
		{"globals by a name not known", "def f(x):\n    eval(x)\ndef h(n):\n    return globals()[n]\nh(input())\n", false},
		{"globals handed out", "import a\ndef f(x):\n    eval(x)\na.b(globals())\n", false},
		{"globals as values", "def f(x):\n    eval(x)\nfor v in globals().values():\n    v(1)\n", false},
		{"globals of a frame", "import sys\ndef f(x):\n    eval(x)\nsys._getframe().f_globals[input()](1)\n", false},
		{"any module", "import sys\ndef f(x):\n    eval(x)\nfor m in sys.modules.values():\n    getattr(m, input())(1)\n", false},
		{"parameter called globals", "def f(x, globals):\n    eval(x, globals)\n", true},
		{"another name", "class A:\n    def __call__(self, x):\n        eval(x)\nB = A\n", true},
		{"another name in use", "class A:\n    def __call__(self, x):\n        eval(x)\nB = A\nB()\n", false},
		{"export", "__all__ = []\ndef f(x):\n    eval(x)\n__all__.append('f')\n__all__ += ['f']\n", true},
		{"annotation", "class A:\n    def __call__(self, x):\n        eval(x)\ndef g(a: A):\n    pass\n", true},
		{"annotation that runs", "class A:\n    def __call__(self, x):\n        eval(x)\ndef g(a: A()(1)):\n    pass\n", false},
		{"decorator of others", "import a\n@a.b\ndef f(x):\n    eval(x)\n", false},
		{"decorator that only marks", "class A:\n    @staticmethod\n    def f(x):\n        eval(x)\n", true},
		{"f-string statement", "def f(x):\n    eval(x)\nf'{f(1)}'\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := scan(t, sink+tt.code)
			idle, found := true, false
			for _, x := range d.Dynamic {
				if x.Kind == facts.DynEval {
					idle, found = idle && x.Idle, true
				}
			}
			if !found || idle != tt.idle {
				t.Errorf("found %v, idle %v, want %v: %+v", found, idle, tt.idle, d.Dynamic)
			}
		})
	}
}
