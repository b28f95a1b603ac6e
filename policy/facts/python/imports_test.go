package python

import (
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// TestModulesAreFollowed hands to modules of the workspace what only they run.
func TestModulesAreFollowed(t *testing.T) {
	t.Parallel()
	tb, err := loadTables()
	if err != nil {
		t.Fatal(err)
	}
	lib := "import os\nCOUNT = 0\ndef run(c):\n    global COUNT\n    COUNT += 1\n    os.system(c)\nclass Job:\n    def __init__(self, c):\n        self.c = c\n    def go(self):\n        run(self.c)\n    @staticmethod\n    def at(c):\n        run(c)\ndef idle():\n    os.system('idle')\n"
	for _, tt := range []struct {
		name, code string
		modules    map[string]string
		want       string
	}{
		{"function", "import lib\nlib.run('ls')\n", map[string]string{"lib": lib}, "sh ls"},
		{"from", "from lib import run as r\nr('ls')\n", map[string]string{"lib": lib}, "sh ls"},
		{"star", "from lib import *\nrun('ls')\n", map[string]string{"lib": lib}, "sh ls"},
		{"method", "import lib\nlib.Job('ls').go()\n", map[string]string{"lib": lib}, "sh ls"},
		{"static method", "from lib import Job\nJob.at('ls')\n", map[string]string{"lib": lib}, "sh ls"},
		{"derived", "import lib\nclass Mine(lib.Job):\n    pass\nMine('ls').go()\n", map[string]string{"lib": lib}, "sh ls"},
		{"by name", "import importlib\nimportlib.import_module('li' + 'b').run('ls')\n", map[string]string{"lib": lib}, "sh ls"},
		{"__import__", "__import__('a.b').b.run('ls')\n", map[string]string{"a.b": lib}, "sh ls"},
		{"package", "import a.b.c\na.b.c.run('ls')\n", map[string]string{"a.b.c": lib, "a" + facts.PackageInit: ""}, "sh ls"},
		{"module of a package", "from a import b\nb.run('ls')\n", map[string]string{"a.b": lib}, "sh ls"},
		{"package hands on", "from a import run\nrun('ls')\n", map[string]string{"a" + facts.PackageInit: "from .b import run\n", "a.b": lib}, "sh ls"},
		{"beside", "from .b import run\nrun('ls')\n", map[string]string{".b": "from .c import run\n", ".c": lib}, "sh ls"},
		{"above", "from .b.c import run\nrun('ls')\n", map[string]string{".b.c": "from ..d import run\n", ".d": lib}, "sh ls"},
		{"from here", "from . import b\nb.run('ls')\n", map[string]string{".b": lib}, "sh ls"},
		{"two deep", "import a\na.go('ls')\n", map[string]string{"a": "import lib\ndef go(c):\n    lib.run(c + ' -l')\n", "lib": lib}, "sh ls -l"},
		{"in a function", "import a\na.go('ls')\n", map[string]string{"a": "def go(c):\n    from lib import run\n    run(c)\n", "lib": lib}, "sh ls"},
		{"each other", "import a\na.go('ls')\n", map[string]string{"a": "import b\ndef go(c):\n    b.go(c)\n", "b": "import a, os\ndef go(c):\n    os.system(c)\n"}, "sh ls"},
		{"handed back", "import os, lib\nlib.call(os.system, 'ls')\n", map[string]string{"lib": "def call(f, x):\n    f(x)\n"}, "sh ls"},
		{"replaced", "import os, lib\nlib.log = os.system\nlib.go('ls')\n", map[string]string{"lib": "def log(x):\n    pass\ndef go(x):\n    log(x)\n"}, "sh ls"},
		{"what it does by itself", "import a\n", map[string]string{"a": "import lib\nlib.run('ls')\n", "lib": lib}, "sh ls"},
		{"nothing called", "import lib\n", map[string]string{"lib": lib}, ""},
		{"broken", "import lib\nlib.run('ls')\n", map[string]string{"lib": "def ((:"}, ""},
		{"not known", "import lib\nlib.run('ls')\n", map[string]string{"other": lib}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := facts.Dispatcher{facts.Python: New(), facts.Shell: fakeShell{}}
			doc := facts.ScanStarted(t.Context(), tb, d, facts.Limits{}, facts.Python, []byte(tt.code), facts.Start{Modules: tt.modules})
			got := brief(doc)
			if tt.want != "" && !slices.Contains(got, tt.want) {
				t.Errorf("%q not found in %q", tt.want, got)
			}
			for _, g := range got {
				if strings.HasPrefix(g, "sh ") && g != tt.want || strings.HasPrefix(g, "dyn") {
					t.Errorf("found %q", g)
				}
			}
		})
	}
}

func TestModuleName(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"", "a.b", "a.b"}, {"", ".a", ".a"}, {"", "..a", "..a"},
		{"a", "b", "b"}, {"a.b", ".c", "a.c"}, {"a.b" + facts.PackageInit, ".c", "a.b.c"}, {"a.b.c", "..d", "a.d"}, {"a.b", ".", "a"},
		{".a", ".b", ".b"}, {".a" + facts.PackageInit, ".b", ".a.b"}, {".a", "..b", "..b"}, {".a.b", "..c", ".c"}, {"..a", ".b", "..b"}, {".a", ".", "."},
		{"a", "..b", ""},
	} {
		if got := facts.ModuleName(tt[0], tt[1]); got != tt[2] && tt[2] != "" {
			t.Errorf("%q from %q is %q, want %q", tt[1], tt[0], got, tt[2])
		}
	}
}
