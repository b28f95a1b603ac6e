package gate_test

import (
	"context"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
)

// tired is a policy that finds texts with their modules too much, beside what
// else it finds.
type tired struct{ gate.Policy }

func (p tired) Examine(ctx context.Context, r policy.Request) (sandbox.Decision, []policy.Ref) {
	d, refs := p.Policy.Examine(ctx, r)
	if len(r.Start.Modules) > 0 {
		d.Verdict, d.Level = sandbox.Stricter(d.Verdict, sandbox.Ask), max(d.Level, sandbox.High)
		d.Findings = append(slices.Clone(d.Findings), sandbox.Finding{ID: "SBX-EV-0001", Verdict: sandbox.Ask, Severity: sandbox.High, Message: "time"})
	}
	return d, refs
}

// verdict judges a run in that workspace.
func verdict(t *testing.T, p gate.Policy, run sandbox.Run, ws files, want sandbox.Verdict) {
	t.Helper()
	a, err := newGate(t, p, &desk{}).Judge(t.Context(), manager.Question{Exec: question(run, ws, "")})
	if err != nil {
		t.Fatal(err)
	}
	if a.Decision.Verdict != want {
		t.Errorf("%s, want %s: %+v", a.Decision.Verdict, want, a.Decision.Findings)
	}
}

// Modules that are too much to be followed together are judged one by one.
func TestModulesThatAreTooMuch(t *testing.T) {
	t.Parallel()
	p := tired{newPolicy(t)}
	for name, tt := range map[string]struct {
		main string
		want sandbox.Verdict
	}{
		"nothing else":   {"import lib\nlib.sh('ls')\n", sandbox.Allow},
		"something else": {"import lib\nlib.sh('rm -rf /')\n", sandbox.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ws := files{"main.py": tt.main, "lib.py": "import os\ndef sh(c):\n    os.system(c)\n"}
			verdict(t, p, sandbox.Run{Language: "python", File: "main.py"}, ws, tt.want)
		})
	}
}

// What modules of the workspace do with what they are given is judged with those
// that give it.
func TestJudgesModulesWithTheirCallers(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	runner := "import subprocess\ndef sh(c):\n    return subprocess.run(c, shell=True)\n"
	for name, tt := range map[string]struct {
		main string
		ws   files
		want sandbox.Verdict
	}{
		"a harmful command":      {"import lib\nlib.sh('rm -rf /')", files{"lib.py": runner}, sandbox.Deny},
		"a good one":             {"import lib\nlib.sh('git status')", files{"lib.py": runner}, sandbox.Allow},
		"code":                   {"from lib import run\nrun(\"import os; os.system('rm -rf /')\")", files{"lib.py": "def run(c):\n    exec(c)\n"}, sandbox.Deny},
		"a path":                 {"import lib\nlib.drop('/etc')", files{"lib.py": "import shutil\ndef drop(p):\n    shutil.rmtree(p)\n"}, sandbox.Deny},
		"a path of its own":      {"import lib\nlib.drop('build')", files{"lib.py": "import shutil\ndef drop(p):\n    shutil.rmtree(p)\n"}, sandbox.Allow},
		"received code":          {"import lib, sys\nlib.run(sys.stdin.read())", files{"lib.py": "def run(c):\n    exec(c)\n"}, sandbox.Ask},
		"through a package":      {"import tools\ntools.go('rm -rf /')", files{"tools/__init__.py": "from .inner import sh as go\n", "tools/inner.py": runner}, sandbox.Deny},
		"through two":            {"import a\na.clean('/')", files{"a.py": "import lib\ndef clean(d):\n    lib.sh('rm -rf ' + d)\n", "lib.py": runner}, sandbox.Deny},
		"a class":                {"from lib import Job\nJob('rm -rf /').go()", files{"lib.py": "import os\nclass Job:\n    def __init__(self, c):\n        self.c = c\n    def go(self):\n        os.system(self.c)\n"}, sandbox.Deny},
		"by a module of modules": {"import pkg.mod\npkg.mod.go()", files{"pkg/__init__.py": "", "pkg/mod.py": "from .other import sh\ndef go():\n    sh('rm -rf /')\n", "pkg/other.py": runner}, sandbox.Deny},
		"what nobody called":     {"import lib\nprint(lib.look())", files{"lib.py": "import os\ndef look():\n    return os.listdir('/etc')\n"}, sandbox.Ask},
		"and nobody calls":       {"import lib", files{"lib.py": "import os\ndef look():\n    return os.listdir('/etc')\n"}, sandbox.Allow},
		"at its import":          {"import a", files{"a.py": "import lib\nlib.sh('rm -rf /')\n", "lib.py": runner}, sandbox.Deny},
		"each other":             {"import a\na.f(3)", files{"a.py": "import b\ndef f(n):\n    return n and b.f(n - 1)\n", "b.py": "import a\ndef f(n):\n    return n and a.f(n - 1)\n"}, sandbox.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.ws["main.py"] = tt.main + "\n"
			verdict(t, p, sandbox.Run{Language: "python", File: "main.py"}, tt.ws, tt.want)
		})
	}
}

// The same of programs for Node.
func TestJudgesNodeModulesWithTheirCallers(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	runner := "const { execSync } = require('child_process')\nexports.sh = c => execSync(c)\n"
	for name, tt := range map[string]struct {
		main string
		ws   files
		want sandbox.Verdict
	}{
		"a harmful command": {"require('./lib').sh('rm -rf /')", files{"lib.js": runner}, sandbox.Deny},
		"a good one":        {"require('./lib').sh('git status')", files{"lib.js": runner}, sandbox.Allow},
		"a folder":          {"require('./lib').sh('rm -rf /')", files{"lib/index.js": "exports.sh = require('./inner').sh", "lib/inner.js": runner}, sandbox.Deny},
		"a package":         {"require('tool').sh('rm -rf /')", files{"node_modules/tool/package.json": `{"main": "main.js"}`, "node_modules/tool/main.js": runner}, sandbox.Deny},
		"code":              {"require('./lib').run(\"require('child_process').execSync('rm -rf /')\")", files{"lib.js": "exports.run = c => eval(c)"}, sandbox.Deny},
		"through two":       {"require('./a').clean('/')", files{"a.js": "const { sh } = require('./lib'); exports.clean = d => sh('rm -rf ' + d)", "lib.js": runner}, sandbox.Deny},
		"at its load":       {"require('./a')", files{"a.js": "require('./lib').sh('rm -rf /')", "lib.js": runner}, sandbox.Deny},
		"each other":        {"require('./a').f(3)", files{"a.js": "const b = require('./b'); exports.f = n => n && b.f(n - 1)", "b.js": "const a = require('./a'); exports.f = n => n && a.f(n - 1)"}, sandbox.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.ws["main.js"] = tt.main + "\n"
			verdict(t, p, sandbox.Run{Language: "node", File: "main.js"}, tt.ws, tt.want)
		})
	}
}
