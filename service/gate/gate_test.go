package gate_test

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/scanner"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
)

// newPolicy is the shipped policy over the real scanner.
func newPolicy(t testing.TB) *policy.Policy {
	t.Helper()
	return newPolicyOf(t, nil)
}

// newPolicyOf has a user's rules beside the shipped ones.
func newPolicyOf(t testing.TB, user map[string]fs.FS) *policy.Policy {
	t.Helper()
	tb, err := tables.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := scanner.New(scanner.Config{Path: enginetest.Scanner(t), Tables: tb})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	p, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, User: user, Scanner: pool})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// desk takes down what it is asked, and answers as it is told.
type desk struct {
	asked []sandbox.Approval
	yes   bool
}

func (d *desk) Settle(_ context.Context, a sandbox.Approval, _ sandbox.ApproveMode, _ sandbox.Asker) (*sandbox.ApprovedBy, string, error) {
	d.asked = append(d.asked, a)
	if d.yes {
		return &sandbox.ApprovedBy{ID: sandbox.NewID(), By: "me", Digest: a.Digest}, "", nil
	}
	return nil, "no", nil
}

func newGate(t testing.TB, p gate.Policy, d gate.Desk) *gate.Gate {
	t.Helper()
	g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return p, nil }, Desk: d, Actor: "me"})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// files is a workspace in memory.
type files map[string]string

func (f files) ReadFile(_ context.Context, name string, most int64) ([]byte, error) {
	text, ok := f[path.Clean(name)]
	switch {
	case !ok:
		return nil, sandbox.Errorf(sandbox.NotFound, "no file %s", name)
	case int64(len(text)) > most:
		return nil, sandbox.Errorf(sandbox.Exhausted, "too long")
	}
	return []byte(text), nil
}

func (f files) List(_ context.Context, dir string, depth int) ([]sandbox.FileInfo, error) {
	found := map[string]string{}
	for name := range f {
		for kind := "file"; name != "."; name, kind = path.Dir(name), "dir" {
			rest, ok := strings.CutPrefix(name, dir+"/")
			if dir == "." {
				rest, ok = name, true
			}
			if ok && (depth == 0 || strings.Count(rest, "/") < depth) {
				found[name] = kind
			}
		}
	}
	var list []sandbox.FileInfo
	for name, kind := range found {
		list = append(list, sandbox.FileInfo{Path: name, Type: kind})
	}
	slices.SortFunc(list, func(a, b sandbox.FileInfo) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

var languages = map[string]sandbox.Language{
	"python": {Name: "python", Suffixes: []string{".py"}, RunCode: []string{"python3", "{file}"}, RunFile: []string{"python3", "{file}"}, Env: []string{"PYTHONPATH=/workspace"}},
	"node":   {Name: "node", Suffixes: []string{".js"}, RunCode: []string{"node", "-e", "{code}"}, RunFile: []string{"node", "{file}"}},
	"shell":  {Name: "shell", Suffixes: []string{".sh"}, RunCode: []string{"bash", "{file}"}, RunFile: []string{"bash", "{file}"}},
	"ruby":   {Name: "ruby", Suffixes: []string{".rb"}, RunCode: []string{"ruby", "{file}"}, RunFile: []string{"ruby", "{file}"}},
}

// question resolves a run as the manager does.
func question(run sandbox.Run, ws files, stdin string) *manager.ExecQuestion {
	lang := languages[run.Language]
	id, limits := sandbox.NewID(), run.ExecLimits
	q := &manager.ExecQuestion{
		ID: id, Run: run, Language: lang, Env: slices.Concat(lang.Env, run.Env), Dir: run.Dir, Role: run.Role, Limits: run.Limits.WithDefaults(), ExecLimits: limits.WithDefaults(),
		User: "one-shot", Network: sandbox.Network{Mode: "none"}, Workspace: ws, Plan: func(context.Context) (runtimes.Plan, error) {
			return runtimes.Plan{Spec: sandbox.Spec{Image: sandbox.Image{ID: "sha256:1"}}}, nil
		},
	}
	if stdin != "" {
		q.Stdin = strings.NewReader(stdin)
	}
	switch {
	case len(run.Command) > 0:
		q.Argv = slices.Concat(run.Command, run.Args)
	case run.File != "":
		q.Argv = lang.Argv(lang.RunFile, "", "/workspace/"+run.File, run.Args)
	default:
		q.Stage = []byte(run.Code)
		q.Argv = lang.Argv(lang.RunCode, run.Code, manager.StagePath(id, "main"+lang.Suffixes[0]), run.Args)
	}
	return q
}

const (
	evilPython = "import shutil\nshutil.rmtree('/')\n"
	evilShell  = "rm -rf /\n"
	evilNode   = "require('fs').rmSync('/', {recursive: true, force: true})\n"
)

func command(words ...string) sandbox.Run { return sandbox.Run{Language: "shell", Command: words} }

// What a run would execute is judged, wherever it stands and however it is
// reached.
func TestJudges(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	python := func(code string) sandbox.Run { return sandbox.Run{Language: "python", Code: code} }
	file := func(lang, name string) sandbox.Run { return sandbox.Run{Language: lang, File: name} }
	env := func(kv ...string) sandbox.Run {
		return sandbox.Run{Language: "shell", Command: []string{"true"}, Env: kv}
	}
	for name, tt := range map[string]struct {
		run   sandbox.Run
		ws    files
		stdin string
		want  sandbox.Verdict
		rule  string // part of a finding's id; "" is none in particular
	}{
		"code":                      {python(evilPython), nil, "", sandbox.Deny, "SBX-BL"},
		"good code":                 {python("print(1)"), nil, "", sandbox.Allow, ""},
		"a command":                 {command("rm", "-rf", "/"), nil, "", sandbox.Deny, "SBX-BL"},
		"a command's own code":      {command("sh", "-c", "rm -rf /"), nil, "", sandbox.Deny, "SBX-BL"},
		"python -c":                 {command("python3", "-c", evilPython), nil, "", sandbox.Deny, "SBX-BL"},
		"a wrapped command":         {command("env", "timeout", "3", "rm", "-rf", "/"), nil, "", sandbox.Deny, "SBX-BL"},
		"a good command":            {command("ls", "-l", "rm -rf /"), nil, "", sandbox.Allow, ""},
		"a file":                    {file("python", "x.py"), files{"x.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a file by a command":       {command("python3", "x.py"), files{"x.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a file by its path":        {command("python3", "/workspace/a/x.py"), files{"a/x.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a file behind flags":       {command("python3", "-u", "-B", "x.py"), files{"x.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a file behind odd flags":   {command("python3", "-X", "dev", "x.py"), files{"x.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a file in another folder":  {sandbox.Run{Language: "shell", Command: []string{"bash", "x.sh"}, Dir: "a"}, files{"a/x.sh": evilShell}, "", sandbox.Deny, "SBX-BL"},
		"a program":                 {command("./run"), files{"run": "#!/usr/bin/env python3\n" + evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a program without a head":  {command("./run"), files{"run": "x"}, "", sandbox.Ask, "SBX-GATE-0001"},
		"machine code":              {command("./run"), files{"run": "\x7fELF"}, "", sandbox.Ask, "SBX-GATE-0001"},
		"a file within a command":   {command("sh", "-c", "cd a && bash ../x.sh"), files{"x.sh": evilShell}, "", sandbox.Deny, "SBX-BL"},
		"a file that is sourced":    {file("shell", "x.sh"), files{"x.sh": ". ./lib.sh", "lib.sh": evilShell}, "", sandbox.Deny, "SBX-BL"},
		"files by a pattern":        {command("sh", "-c", "for f in t/*.sh; do sh $f; done"), files{"t/a.sh": evilShell}, "", sandbox.Deny, "SBX-BL"},
		"a file that is started":    {python("import subprocess, sys\nsubprocess.run([sys.executable, 'x.py'])"), files{"x.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a file that it writes":     {command("bash", "-c", "cat > x.sh <<'E'\nrm -rf /\nE\nbash x.sh"), nil, "", sandbox.Deny, "SBX-BL"},
		"a file that is not there":  {command("sh", "-c", "sh later.sh"), nil, "", sandbox.Ask, "SBX-GATE-0001"},
		"a file elsewhere":          {command("sh", "/tmp/x.sh"), nil, "", sandbox.Ask, "SBX-GATE-0001"},
		"a helper module":           {python("import helper"), files{"helper.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a module's module":         {python("import a"), files{"a.py": "from b import c", "b/__init__.py": "", "b/c.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a package's own":           {file("python", "m.py"), files{"m.py": "import p.q", "p/__init__.py": "from . import z", "p/q.py": "", "p/z.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a module in place of ours": {python("import json"), files{"json.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a module by -m":            {command("python3", "-m", "tool"), files{"tool.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a module by another path":  {python("import sys\nsys.path.insert(0, 'src')\nimport deep"), files{"src/deep.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"any module":                {python("import importlib, sys\nimportlib.import_module(sys.argv[1])"), files{"x.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a started file's module":   {command("sh", "-c", "python3 x.py"), files{"x.py": "import helper", "helper.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a module of its folder":    {command("sh", "-c", "python3 a/x.py"), files{"a/x.py": "import helper", "a/helper.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a module where it goes":    {command("sh", "-c", "cd a && python3 -c 'import helper'"), files{"helper.py": "", "a/helper.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a module where it begins":  {sandbox.Run{Language: "python", Command: []string{"python3", "-c", "import helper"}, Dir: "a"}, files{"a/helper.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a module it is led to":     {command("sh", "-c", "PYTHONPATH=src python3 x.py"), files{"x.py": "import helper", "src/helper.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a compiled module":         {python("import fast"), files{"fast.cpython-311-x86_64-linux-gnu.so": "\x7fELF"}, "", sandbox.Ask, "SBX-GATE-0001"},
		"bytecode alone":            {python("import fast"), files{"fast.pyc": "x"}, "", sandbox.Ask, "SBX-GATE-0001"},
		"bytecode beside a source":  {command("sh", "-c", "python3 x.py"), files{"x.py": "print(1)", "__pycache__/x.cpython-311.pyc": "x"}, "", sandbox.Ask, "SBX-GATE-0001"},
		"sitecustomize":             {sandbox.Run{Language: "python", Command: []string{"sh", "-c", "python3 -c 'print(1)'"}}, files{"sitecustomize.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"conftest":                  {command("python3", "-m", "pytest"), files{"test_a.py": "def test_a(): pass", "conftest.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a test":                    {command("pytest", "-q"), files{"t/test_a.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a required file":           {file("node", "a.js"), files{"a.js": "require('./b')", "b.js": evilNode}, "", sandbox.Deny, "SBX-BL"},
		"a required index":          {sandbox.Run{Language: "node", Code: "require('./b')"}, files{"b/index.js": evilNode}, "", sandbox.Deny, "SBX-BL"},
		"a required file of -e":     {command("node", "-e", "require('./b')"), files{"b.js": evilNode}, "", sandbox.Deny, "SBX-BL"},
		"a required file elsewhere": {command("sh", "-c", "cd a; node -e \"require('./b')\""), files{"b.js": "", "a/b.js": evilNode}, "", sandbox.Deny, "SBX-BL"},
		"a module that is imported": {file("node", "a.cjs"), files{"a.cjs": "import('./b.mjs')", "b.mjs": "import fs from 'fs'\nfs.rmSync('/', {recursive: true, force: true})"}, "", sandbox.Deny, "SBX-BL"},
		"node_modules":              {file("node", "a.js"), files{"a.js": "require('lib')", "node_modules/lib/package.json": `{"main":"m.js"}`, "node_modules/lib/m.js": evilNode}, "", sandbox.Deny, "SBX-BL"},
		"a native addon":            {file("node", "a.js"), files{"a.js": "require('./x.node')", "x.node": "\x7fELF"}, "", sandbox.Ask, "SBX-GATE-0001"},
		"a Makefile":                {command("make"), files{"Makefile": "all:\n\t@rm -rf /\n"}, "", sandbox.Ask, "SBX-GATE-0001"},
		"a script of npm's":         {command("npm", "run", "x"), files{"package.json": `{"scripts":{"x":"rm -rf /"}}`}, "", sandbox.Ask, "SBX-GATE-0001"},
		"a git hook":                {command("git", "commit", "-m", "x"), files{".git/hooks/pre-commit": "#!/bin/sh\nrm -rf /\n", ".git/config": ""}, "", sandbox.Ask, "SBX-GATE-0001"},
		"git's settings":            {command("git", "status"), files{".git/config": "[core]\n\tfsmonitor = ./x\n"}, "", sandbox.Ask, "SBX-GATE-0001"},
		"git":                       {command("git", "status"), files{".git/config": "[core]\n\tbare = false\n", ".git/hooks/pre-commit.sample": evilShell}, "", sandbox.Allow, ""},
		"a program as input":        {command("python3", "-"), nil, evilPython, sandbox.Deny, "SBX-BL"},
		"a shell's input":           {command("bash"), nil, evilShell, sandbox.Deny, "SBX-BL"},
		"a good program as input":   {command("bash", "-s"), nil, "echo 1\n", sandbox.Allow, ""},
		"data as input":             {python("import sys; print(sys.stdin.read())"), nil, evilShell, sandbox.Allow, ""},
		"a long program as input":   {command("bash"), nil, strings.Repeat("echo 1\n", 160_000), sandbox.Ask, "SBX-GATE-0001"},
		"another language":          {sandbox.Run{Language: "ruby", Code: "puts 1"}, nil, "", sandbox.Ask, "SBX-GATE-0001"},
		"LD_PRELOAD":                {env("LD_PRELOAD=./x.so"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"libraries of the image":    {env("LD_LIBRARY_PATH=/usr/lib/R/lib:/lib"), nil, "", sandbox.Allow, ""},
		"libraries of nobody's":     {env("LD_LIBRARY_PATH=/usr/lib/R/lib:"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"libraries beside it":       {env("LD_LIBRARY_PATH=/usr/lib:$ORIGIN"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"a library of the image":    {env("LD_PRELOAD=/usr/libexec/coreutils/libstdbuf.so"), nil, "", sandbox.Allow, ""},
		"a library behind it":       {env("LD_PRELOAD=/usr/libexec/coreutils/libstdbuf.so /workspace/x.so"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"settings of the image":     {env("PHPRC=/etc/php"), nil, "", sandbox.Allow, ""},
		"settings in the workspace": {env("PHP_INI_SCAN_DIR=/etc/php:/workspace"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"an empty variable":         {env("R_PROFILE_USER="), nil, "", sandbox.Allow, ""},
		"a plain PS4":               {env("PS4=+${LINENO} "), nil, "", sandbox.Allow, ""},
		"a PS4 that runs something": {env("PS4=+$(id) "), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"a compiler's settings":     {env("GCC_EXEC_PREFIX=/workspace/"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"BASH_ENV":                  {env("BASH_ENV=x"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"ENV":                       {env("ENV=x"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"PYTHONSTARTUP":             {env("PYTHONSTARTUP=x"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"NODE_OPTIONS":              {env("NODE_OPTIONS=--require ./x"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"GIT_SSH_COMMAND":           {env("GIT_SSH_COMMAND=x"), nil, "", sandbox.Ask, "SBX-GATE-0002"},
		"PATH in the workspace":     {env("PATH=/workspace/bin:/usr/bin"), nil, "", sandbox.Ask, "SBX-GATE-0003"},
		"an empty PATH entry":       {env("PATH=/usr/bin:"), nil, "", sandbox.Ask, "SBX-GATE-0003"},
		"HOME in the workspace":     {env("HOME=/workspace"), nil, "", sandbox.Ask, "SBX-GATE-0003"},
		"PYTHONPATH elsewhere":      {env("PYTHONPATH=/tmp"), nil, "", sandbox.Ask, "SBX-GATE-0003"},
		"PYTHONPATH":                {sandbox.Run{Language: "python", Code: "import deep", Env: []string{"PYTHONPATH=/workspace/src"}}, files{"src/deep.py": evilPython}, "", sandbox.Deny, "SBX-BL"},
		"a plain variable":          {env("MODE=full"), nil, "", sandbox.Allow, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := question(tt.run, tt.ws, tt.stdin)
			a, err := newGate(t, p, &desk{}).Judge(t.Context(), manager.Question{Exec: q})
			if err != nil {
				t.Fatal(err)
			}
			found := tt.rule == "" || slices.ContainsFunc(a.Decision.Findings, func(f sandbox.Finding) bool { return strings.HasPrefix(f.ID, tt.rule) })
			if a.Decision.Verdict != tt.want || !found {
				t.Errorf("%s, want %s by %s: %+v", a.Decision.Verdict, tt.want, tt.rule, a.Decision.Findings)
			}
			if a.Decision.Permits() != (a.Program != nil) {
				t.Errorf("permits %v, and program %+v", a.Decision.Permits(), a.Program)
			}
		})
	}
}

// What runs in the background is asked about where it reads code later.
func TestBackgroundThatLoadsLater(t *testing.T) {
	t.Parallel()
	q := question(command("sh", "-c", "while sleep 1; do python3 job.py; done"), files{"job.py": "print(1)"}, "")
	g := newGate(t, newPolicy(t), &desk{})
	if a, err := g.Judge(t.Context(), manager.Question{Exec: q}); err != nil || a.Decision.Verdict != sandbox.Allow || len(a.Program.Watched) != 1 {
		t.Errorf("in the foreground: %+v, %v", a.Decision, err)
	}
	q.Background = true
	a, err := g.Judge(t.Context(), manager.Question{Exec: q})
	if err != nil || a.Decision.Verdict != sandbox.Ask || a.Decision.Findings[0].ID != "SBX-GATE-0004" {
		t.Errorf("in the background: %+v, %v", a.Decision, err)
	}
	q.Run.Guard = true
	if a, err := g.Judge(t.Context(), manager.Question{Exec: q}); err != nil || a.Decision.Verdict != sandbox.Allow || len(a.Program.Watched) != 1 {
		t.Errorf("in the background, watched: %+v, %v", a.Decision, err)
	}
}

// An approval is bound to everything that decides about what happens.
func TestDigest(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	base := func() *manager.ExecQuestion {
		return question(sandbox.Run{Language: "python", Code: "import helper\nopen('/etc/shadow')", Args: []string{"a"}}, files{"helper.py": "x = 1"}, "data")
	}
	digest := func(change func(*manager.ExecQuestion)) string {
		t.Helper()
		q := base()
		change(q)
		d := &desk{}
		a, err := newGate(t, p, d).Judge(t.Context(), manager.Question{Exec: q})
		if err != nil || a.Decision.Verdict != sandbox.Ask || len(d.asked) != 1 || d.asked[0].Digest == "" {
			t.Fatalf("%+v, %v, asked %+v", a.Decision, err, d.asked)
		}
		return d.asked[0].Digest
	}
	first := digest(func(*manager.ExecQuestion) {})
	if again := digest(func(*manager.ExecQuestion) {}); again != first {
		t.Error("the same run has another digest")
	}
	seen := map[string]string{first: "the run itself"}
	for name, change := range map[string]func(*manager.ExecQuestion){
		"a byte of the code": func(q *manager.ExecQuestion) { q.Run.Code += " "; q.Stage = []byte(q.Run.Code) },
		"no text":            func(q *manager.ExecQuestion) { q.Run.Args = []string{"a\xfe"} },
		"other no text":      func(q *manager.ExecQuestion) { q.Run.Args = []string{"a\xff"} },
		"an argument":        func(q *manager.ExecQuestion) { q.Run.Args = []string{"b"} },
		"a byte of a module": func(q *manager.ExecQuestion) { q.Workspace = files{"helper.py": "x = 2"} },
		"the folder":         func(q *manager.ExecQuestion) { q.Dir = "sub" },
		"a variable":         func(q *manager.ExecQuestion) { q.Env = append(q.Env, "A=1") },
		"the input":          func(q *manager.ExecQuestion) { q.Stdin = strings.NewReader("other") },
		"no input":           func(q *manager.ExecQuestion) { q.Stdin = nil },
		"the user":           func(q *manager.ExecQuestion) { q.User = "1000 of session y" },
		"the session":        func(q *manager.ExecQuestion) { q.Run.Session = "other" },
		"the role":           func(q *manager.ExecQuestion) { q.Role = sandbox.RoleRunner },
		"the image": func(q *manager.ExecQuestion) {
			q.Plan = func(context.Context) (runtimes.Plan, error) {
				return runtimes.Plan{Spec: sandbox.Spec{Image: sandbox.Image{ID: "sha256:2"}}}, nil
			}
		},
		"a limit":              func(q *manager.ExecQuestion) { q.Limits.Memory *= 2 },
		"the time":             func(q *manager.ExecQuestion) { q.Timeout *= 2 },
		"the network":          func(q *manager.ExecQuestion) { q.Network.Mode = "bridge" },
		"in the background":    func(q *manager.ExecQuestion) { q.Background = true },
		"the language's image": func(q *manager.ExecQuestion) { q.Language.Image = "other" },
	} {
		d := digest(change)
		if other, taken := seen[d]; taken {
			t.Errorf("%s: the digest is that of %s", name, other)
		}
		seen[d] = name
	}
}

// Standard input that was looked at reaches the program whole.
func TestInputIsGivenBack(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	for name, run := range map[string]sandbox.Run{"a program": command("bash"), "data": {Language: "python", Code: "open('/etc/shadow')"}} {
		text := strings.Repeat("echo 1\n", 60_000)
		a, err := newGate(t, p, &desk{yes: true}).Judge(t.Context(), manager.Question{Exec: question(run, nil, text)})
		if err != nil || a.Program == nil || a.Program.Stdin == nil {
			t.Fatalf("%s: %+v, %v", name, a, err)
		}
		var b strings.Builder
		if _, err := copyAll(&b, a.Program.Stdin); err != nil || b.String() != text {
			t.Errorf("%s: %d of %d bytes, %v", name, b.Len(), len(text), err)
		}
	}
}

// A policy that cannot be had refuses, and says why.
func TestNoPolicyRefuses(t *testing.T) {
	t.Parallel()
	broken := errors.New("caisson-scan is not there")
	g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return nil, broken }})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := g.Judge(t.Context(), manager.Question{Exec: question(command("true"), nil, "")}); !errors.Is(err, broken) || a.Decision.Permits() {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := gate.New(gate.Config{}); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a gate without a policy: %v", err)
	}
}

// What is asked about a sandbox that is made meanwhile is not held up by the
// rules about texts.
func TestPlansAreLoadedFirst(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	for _, making := range []bool{true, false} {
		var order []string
		from := func(name string) func(context.Context) (gate.Policy, error) {
			return func(context.Context) (gate.Policy, error) {
				order = append(order, name)
				return p, nil
			}
		}
		g, err := gate.New(gate.Config{Policy: from("texts"), Plans: from("plans")})
		if err != nil {
			t.Fatal(err)
		}
		q := question(command("true"), nil, "")
		q.Making = making
		want := []string{"texts"}
		if making {
			want = []string{"plans", "texts"}
		}
		if _, err := g.Judge(t.Context(), manager.Question{Exec: q}); err != nil || !slices.Equal(order, want) {
			t.Errorf("making %v: loaded %v, %v", making, order, err)
		}
	}
}

// A text of a language that cannot be judged gets the verdict that the operator
// gave.
func TestUnknownLanguage(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	ws := files{"x.rb": "puts 1\n"}
	for _, tt := range []struct {
		name    string
		run     sandbox.Run
		unknown sandbox.Verdict
		want    sandbox.Verdict
		rule    string
	}{
		{"nothing said", sandbox.Run{Language: "ruby", Code: "puts 1"}, "", sandbox.Ask, "SBX-GATE-0001"},
		{"asked", sandbox.Run{Language: "ruby", File: "x.rb"}, sandbox.Ask, sandbox.Ask, "SBX-GATE-0001"},
		{"allowed", sandbox.Run{Language: "ruby", Code: "puts 1"}, sandbox.Allow, sandbox.Allow, "SBX-GATE-0005"},
		{"a file allowed", sandbox.Run{Language: "ruby", File: "x.rb"}, sandbox.Allow, sandbox.Allow, "SBX-GATE-0005"},
		{"denied", sandbox.Run{Language: "ruby", File: "x.rb"}, sandbox.Deny, sandbox.Deny, "SBX-GATE-0006"},
		{"tests of Go's asked", command("go", "test", "./..."), sandbox.Ask, sandbox.Ask, "SBX-GATE-0001"},
		{"tests of Go's allowed", command("go", "test", "x_test.go"), sandbox.Allow, sandbox.Allow, "SBX-GATE-0005"},
		{"which another program runs", command("go", "test", "-exec=./x", "x_test.go"), sandbox.Allow, sandbox.Ask, "SBX-GATE-0001"},
		{"what Go generates", command("go", "generate"), sandbox.Allow, sandbox.Ask, "SBX-GATE-0001"},
		{"what is judged all the same", sandbox.Run{Language: "python", Code: evilPython}, sandbox.Allow, sandbox.Deny, "SBX-BL-0001"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return p, nil }, Desk: &desk{}, UnknownLanguage: tt.unknown})
			if err != nil {
				t.Fatal(err)
			}
			a, err := g.Judge(t.Context(), manager.Question{Exec: question(tt.run, ws, "")})
			if err != nil || a.Decision.Verdict != tt.want || !slices.ContainsFunc(a.Decision.Findings, func(f sandbox.Finding) bool { return f.ID == tt.rule }) {
				t.Errorf("%+v (%v), want %s by %s", a.Decision, err, tt.want, tt.rule)
			}
		})
	}
	if _, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return p, nil }, UnknownLanguage: "maybe"}); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a verdict that is none: %v", err)
	}
}
