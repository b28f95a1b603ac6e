package python

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/tables"
)

var loadTables = sync.OnceValues(func() (*facts.Tables, error) { return tables.Load(policies.FS) })

// fakeShell records the text that reaches a shell.
type fakeShell struct{}

func (fakeShell) Extract(_ context.Context, src []byte, b *facts.Builder) error {
	b.Node()
	b.Action("shell", string(src), "", facts.Pos{})
	return nil
}

func scan(t testing.TB, src string) *facts.Document {
	t.Helper()
	tb, err := loadTables()
	if err != nil {
		t.Fatal(err)
	}
	d := facts.Dispatcher{facts.Python: New(), facts.Shell: fakeShell{}}
	return facts.Scan(t.Context(), tb, d, facts.Limits{}, facts.Python, []byte(src))
}

// brief gives one word for each fact: "call os.system", "sh TEXT",
// "delete /etc/passwd", "net request HOST", "dyn eval", "env read NAME", ….
func brief(d *facts.Document) []string {
	var out []string
	add := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	for _, f := range d.Imports {
		add("import %s", f.Module)
	}
	for _, f := range d.Calls {
		add("call %s", f.Name)
	}
	for _, f := range d.Files {
		add("%s %s", f.Op, f.Path)
		for _, from := range f.From {
			add("%s %s < %s", f.Op, f.Path, from)
		}
	}
	for _, f := range d.Net {
		add("net %s %s", f.Op, f.Host)
		if f.Port != 0 {
			add("port %d", f.Port)
		}
		for _, c := range f.Carries {
			add("carries %s", c)
		}
		if f.Size > 1000 {
			add("large")
		}
	}
	for _, f := range d.Commands {
		add("cmd %s", strings.Join(f.Argv, " "))
	}
	for _, f := range d.Env {
		add("env %s %s", f.Op, f.Name)
	}
	for _, f := range d.Actions {
		if f.Op == "shell" {
			add("sh %s", f.Detail)
		} else {
			add("act %s", f.Op)
		}
	}
	for _, f := range d.Dynamic {
		add("dyn %s", f.Kind)
	}
	for _, f := range d.Structs {
		add("struct %s", f.Kind)
	}
	return out
}

type example struct {
	name, src string
	want      []string
}

func check(t *testing.T, examples []example) {
	t.Helper()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			got := brief(scan(t, e.src))
			for _, w := range e.want {
				if no, isNot := strings.CutPrefix(w, "!"); isNot {
					if slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, no) }) {
						t.Errorf("has %q, which it should not\n%s", no, strings.Join(got, "\n"))
					}
				} else if !slices.Contains(got, w) {
					t.Errorf("no %q\n%s", w, strings.Join(got, "\n"))
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	const rm = "sh rm -rf /"
	check(t, []example{
		{"plain", "import os\nos.system('rm -rf /')", []string{rm, "call os.system", "import os"}},
		{"alias", "import os as o\no.system('rm -rf /')", []string{rm}},
		{"from", "from os import system as s\ns('rm -rf /')", []string{rm}},
		{"star", "from os import *\nsystem('rm -rf /')", []string{rm}},
		{"assigned", "import os\ns = os.system\ns('rm -rf /')", []string{rm}},
		{"tuple assigned", "import os\n(a, b) = (1, os.system)\nb('rm -rf /')", []string{rm}},
		{"walrus", "import os\n(s := os.system)('rm -rf /')", []string{rm}},
		{"never imported", "os.system('rm -rf /')", []string{rm}},
		{"getattr", "import os\ngetattr(os, 'sys' + 'tem')('rm -rf /')", []string{rm}},
		{"getattr reversed", "import os\ngetattr(os, 'metsys'[::-1])('rm -rf /')", []string{rm}},
		{"getattribute", "import os\nos.__getattribute__('system')('rm -rf /')", []string{rm}},
		{"object getattribute", "import os\nobject.__getattribute__(os, 'system')('rm -rf /')", []string{rm}},
		{"__import__", "__import__('os').system('rm -rf /')", []string{rm, "import os"}},
		{"import_module", "import importlib\nimportlib.import_module('o' + 's').system('rm -rf /')", []string{rm}},
		{"import_module alias", "from importlib import import_module as im\nim('os').system('rm -rf /')", []string{rm}},
		{"sys.modules", "import sys\nsys.modules['os'].system('rm -rf /')", []string{rm}},
		{"sys.modules get", "import sys\nsys.modules.get('os').system('rm -rf /')", []string{rm}},
		{"vars", "import os\nvars(os)['system']('rm -rf /')", []string{rm}},
		{"dict attribute", "import os\nos.__dict__['system']('rm -rf /')", []string{rm}},
		{"dict get", "import os\nos.__dict__.get('system')('rm -rf /')", []string{rm}},
		{"globals", "import os\nglobals()['os'].system('rm -rf /')", []string{rm}},
		{"builtins dict", "__builtins__.__dict__['ev' + 'al']('1+1')", []string{"call eval", "dyn eval"}},
		{"builtins subscript", "__builtins__['eval']('1+1')", []string{"call eval"}},
		{"globals builtins", "globals()['__builtins__']['ex' + 'ec']('1')", []string{"call exec"}},
		{"builtins module", "import builtins\nbuiltins.exec('1')", []string{"call exec"}},
		{"getattr builtins", "getattr(__builtins__, 'exec')('1')", []string{"call exec"}},
		{"re-exported module", "import shutil\nshutil.os.system('rm -rf /')", []string{rm}},
		{"path's os", "import os.path as p\np.os.system('rm -rf /')", []string{rm}},
		{"annotation", "import os\nx: os.system('rm -rf /') = 1", []string{rm}},
		{"annotation of parameter", "import os\ndef f(a: os.system('rm -rf /')): pass", []string{rm}},
		{"annotation of result", "import os\ndef f() -> os.system('rm -rf /'): pass", []string{rm}},
		{"default", "import os\ndef f(a=os.system('rm -rf /')): pass", []string{rm}},
		{"base class", "import os\nclass A(os.system('rm -rf /')): pass", []string{rm}},
		{"except", "import os\ntry: pass\nexcept os.system('rm -rf /'): pass", []string{rm}},
		{"guard", "import os\nmatch 1:\n    case _ if os.system('rm -rf /'): pass", []string{rm}},
		{"assert", "import os\nassert os.system('rm -rf /')", []string{rm}},
		{"raise", "import os\nraise os.system('rm -rf /')", []string{rm}},
		{"del", "import os\ndel x[os.system('rm -rf /')]", []string{rm}},
		{"slice", "import os\nx[os.system('rm -rf /'):]", []string{rm}},
		{"format spec", "import os\nf'{1:{os.system(\"rm -rf /\")}}'", []string{rm}},
		{"dead code", "import os\nif False:\n    os.system('rm -rf /')", []string{rm}},
		{"__del__", "import os\ntype('T', (), {'__del__': lambda s: os.system('rm -rf /')})()", []string{rm}},
		{"globals of a lambda", "(lambda: 0).__globals__['__builtins__'].eval('1')", []string{"call eval"}},
		{"submodule kept", "import asyncio.subprocess\nasyncio.subprocess.PIPE", []string{"!call subprocess"}},
		{"private re-export", "import random\nrandom._os.system('rm -rf /')", []string{rm}},
		{"posix", "import posix\nposix.system('rm -rf /')", []string{rm}},
		{"dictionary", "import os\nd = {'a': os.system, 'b': print}\nd['a']('rm -rf /')", []string{rm}},
		{"dictionary unknown key", "import os, sys\nd = {'a': os.system}\nd[sys.argv[1]]('rm -rf /')", []string{rm}},
		{"list", "import os\n[print, os.system][1]('rm -rf /')", []string{rm}},
		{"for over callables", "import os\nfor f in (print, os.system):\n    f('rm -rf /')", []string{rm}},
		{"lambda", "import os\nf = lambda c: os.system(c)\nf('rm -rf /')", []string{rm}},
		{"lambda called", "import os\n(lambda f, c: f(c))(os.system, 'rm -rf /')", []string{rm}},
		{"default argument", "import os\ndef f(c, run=os.system):\n    run(c)\nf('rm -rf /')", []string{rm}},
		{"closure", "import os\ndef mk(f):\n    def g(x):\n        return f(x)\n    return g\nmk(os.system)('rm -rf /')", []string{rm}},
		{"decorator", "import os\n@os.system\ndef f(): pass", []string{"call os.system"}},
		{"own decorator", "import os\ndef d(f):\n    def w(*a, **k):\n        return f(*a, **k)\n    return w\n@d\ndef run(c):\n    os.system(c)\nrun('rm -rf /')", []string{rm}},
		{"class attribute", "import os\nclass A:\n    f = os.system\nA.f('rm -rf /')", []string{rm}},
		{"instance attribute", "import os\nclass A:\n    def __init__(self, f):\n        self.f = f\n    def go(self, c):\n        self.f(c)\nA(os.system).go('rm -rf /')", []string{rm}},
		{"inherited", "import os\nclass A:\n    def go(self): os.system(self.cmd)\nclass B(A):\n    cmd = 'rm -rf /'\nB().go()", []string{rm}},
		{"dunder call", "import os\nclass A:\n    def __call__(self, c): os.system(c)\nA()('rm -rf /')", []string{rm}},
		{"property", "import os\nclass A:\n    @property\n    def x(self): return os.system\nA().x('rm -rf /')", []string{rm}},
		{"type()", "import os\nT = type('T', (), {'go': os.system})\nT.go('rm -rf /')", []string{rm}},
		{"partial", "import os, functools\nfunctools.partial(os.system, 'rm -rf /')()", []string{rm}},
		{"attrgetter", "import os, operator\noperator.attrgetter('system')(os)('rm -rf /')", []string{rm}},
		{"methodcaller", "import os, operator\noperator.methodcaller('system', 'rm -rf /')(os)", []string{rm}},
		{"map", "import os\nlist(map(os.system, ['rm -rf /']))", []string{rm}},
		{"filter", "import os\nlist(filter(os.system, ['rm -rf /']))", []string{rm}},
		{"sorted key", "import os\nsorted(['rm -rf /'], key=os.system)", []string{rm}},
		{"reduce", "import os, functools\nfunctools.reduce(lambda a, b: os.system(b), ['x', 'rm -rf /'])", []string{rm}},
		{"thread", "import os, threading\nthreading.Thread(target=os.system, args=('rm -rf /',)).start()", []string{rm}},
		{"executor", "import os\nfrom concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as e:\n    e.submit(os.system, 'rm -rf /')", []string{rm}},
		{"atexit", "import os, atexit\natexit.register(os.system, 'rm -rf /')", []string{rm}},
		{"reduce of pickle", "import os\nclass P:\n    def __reduce__(self):\n        return (os.system, ('rm -rf /',))", []string{rm}},
		{"comprehension", "import os\n[f(c) for f, c in [(os.system, 'rm -rf /')]]", []string{rm}},
		{"handed to unknown", "import os\nunknown_thing.run(os.system)", []string{"call os.system", "dyn opaque_code"}},
		{"monkey patch", "import json, os\njson.loads = os.system\njson.loads('rm -rf /')", []string{"sh rm -rf /"}},
		{"fullwidth", "import os\nos.ｓｙｓｔｅｍ('rm -rf /')", []string{rm}},
		{"script letters", "import os\nos.𝓼𝔂𝓼𝓽𝓮𝓶('rm -rf /')", []string{rm}},
		{"subclasses", "().__class__.__base__.__subclasses__()[3].__init__.__globals__['os'].system('rm -rf /')", []string{rm, "dyn reflection"}},
		{"mro", "''.__class__.__mro__[1].__subclasses__()", []string{"dyn reflection"}},
		{"frame", "import sys\nsys._getframe(1).f_globals['__builtins__']", []string{"dyn reflection"}},
		{"print self", "print.__self__.eval('1')", []string{"call eval", "dyn reflection"}},
		{"eval gives a module", "eval('__import__(\"os\")').system('rm -rf /')", []string{rm}},
		{"exec binds", "exec('import os as q')\nq.system('rm -rf /')", []string{rm}},
		{"exec uses own names", "import os\ns = os.system\nexec(\"s('rm -rf /')\")", []string{rm}},
		{"resolve_name", "import pkgutil\npkgutil.resolve_name('os:system')('rm -rf /')", []string{rm}},
		{"global in function", "import os\ndef setup():\n    global run\n    run = os.system\nsetup()\nrun('rm -rf /')", []string{rm}},
		{"setattr", "import os\nclass A: pass\na = A()\nsetattr(a, 'r', os.system)\na.r('rm -rf /')", []string{rm}},
		{"star arguments", "import os\nargs = ['rm -rf /']\nos.system(*args)", []string{rm}},
		{"double star", "import os\nos.system(**{'command': 'rm -rf /'})", []string{rm}},
		{"try import", "try:\n    import os\nexcept ImportError:\n    os = None\nos.system('rm -rf /')", []string{rm}},
		{"with as", "import os\nwith open('x') as f, open('y') as g:\n    os.system('rm -rf /')", []string{rm}},
		{"async", "import asyncio\nasync def main():\n    await asyncio.create_subprocess_shell('rm -rf /')\nasyncio.run(main())", []string{rm}},
		{"generator", "import os\ndef g():\n    yield 'rm -rf /'\nfor c in g():\n    os.system(c)", []string{rm}},
		{"match", "import os\nmatch 1:\n    case 1:\n        os.system('rm -rf /')", []string{rm}},
		{"python 2 exec", "exec 'import os'", []string{"dyn eval"}},
		{"python 2 print", "import os\nprint os.system('rm -rf /')", []string{rm}},
		{"shadowed open", "def open(p): return p\nopen('/etc/passwd')", []string{"!read", "!call open"}},
		{"shadowed exec", "def exec(x): return x\nexec('import os')", []string{"!dyn", "!call exec"}},
		{"re.compile", "import re\nre.compile('x')", []string{"!dyn", "!act", "!call compile"}},
		{"words in text", "x = 'os.system(\"rm -rf /\")'\nprint(x)", []string{"!sh", "!call os"}},
		{"docstring", "def f():\n    \"\"\"os.system('rm -rf /')\"\"\"", []string{"!sh", "!call"}},
		{"dynamic attribute", "import os, sys\ngetattr(os, sys.argv[1])('x')", []string{"dyn dyn_attr"}},
		{"dynamic import", "import sys\n__import__(sys.argv[1])", []string{"dyn dyn_import"}},
		{"attribute of self", "class A:\n    def do(self, name):\n        getattr(self, 'cmd_' + name)()", []string{"!dyn"}},
		{"attribute of unknown", "def f(o, n):\n    return getattr(o, n)", []string{"!dyn"}},
		{"global changed later", "import os\nc = 'ls'\ndef f():\n    os.system(c)\nf()\nc = 'rm -rf /'\nf()", []string{rm}},
		{"global changed much later", "import os\nc = 'ls'\ndef f(x):\n    os.system(c)\n" + strings.Repeat("f(object())\n", 300) + "c = 'rm -rf /'\nf(1)", []string{rm}},
		{"global bound late", "import os\ndef f():\n    os.system(c)\ntry:\n    f()\nexcept NameError:\n    c = 'rm -rf /'\nf()", []string{rm}},
		{"attribute changed later", "import os\nclass A:\n    c = 'ls'\n    def go(self):\n        os.system(self.c)\na = A()\na.go()\na.c = 'rm -rf /'\na.go()", []string{rm}},
		{"item changed later", "import os\nd = {'c': 'ls'}\ndef f():\n    os.system(d['c'])\nf()\nd['c'] = 'rm -rf /'\nf()", []string{rm}},
		{"many commands", "import os\ndef sh(c):\n    os.system(c)\n" + strings.Repeat("sh('ls')\n", 3) + manyCommands(40), []string{"sh make target 39", "!dyn"}},
		{"module of a class", "import sys\ndef f(cls):\n    return sys.modules[cls.__module__].__dict__", []string{"!dyn"}},
		{"unknown loaded module", "import sys\nsys.modules[input()].system('id')", []string{"dyn dyn_call"}},
		{"unknown global", "globals()[input()]('id')", []string{"dyn dyn_call"}},
		{"traceback", "import sys\ntb = sys.exc_info()[2]\nprint(tb.tb_frame.f_lineno)", []string{"!dyn"}},
		{"eval unknown", "eval(input())", []string{"dyn opaque_code"}},
	})
}

func manyCommands(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "sh('make target %d')\n", i)
	}
	return b.String()
}
