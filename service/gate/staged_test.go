package gate_test

import (
	"context"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
)

// What is staged is judged, and what it imports of the rest with it; a text of
// our own is not, and gets no folder that programs can write.
func TestStaged(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	const own = "exec(open('/anything').read())"
	d := &desk{}
	g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return p, nil }, Desk: d, Own: []string{own}})
	if err != nil {
		t.Fatal(err)
	}
	stage := func(pairs ...string) []manager.StageFile {
		var list []manager.StageFile
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, manager.StageFile{Name: pairs[i], Data: []byte(pairs[i+1])})
		}
		return list
	}
	for name, tt := range map[string]struct {
		code   string
		staged []manager.StageFile
		want   sandbox.Verdict
	}{
		"ordinary":          {own, stage("tests/test_x.py", "import pytest\nfrom solution import add\ndef test_a(tmp_path):\n    assert add(1, 2) == 3\n", "solution/solution.py", "def add(a, b): return a + b\n", "tests/data.json", "{}"), sandbox.Allow},
		"nothing":           {own, nil, sandbox.Allow},
		"a module":          {own, stage("solution/a/b.py", evilPython), sandbox.Deny},
		"a helper's caller": {own, stage("tests/test_x.py", "from helper import gone\ngone('/')\n", "solution/helper.py", "import shutil\ndef gone(x): shutil.rmtree(x)\n"), sandbox.Deny},
		"bytecode":          {own, stage("solution/a.pyc", "\xa7\x0d\x0d\x0a\x00\x00"), sandbox.Ask},
		"machine code":      {own, stage("solution/a.so", "\x7fELF"), sandbox.Ask},
		"beside other code": {"print(1)", stage("x.py", evilPython), sandbox.Deny},
		"not quite ours":    {own + " ", stage("x.py", ""), sandbox.Ask},
	} {
		t.Run(name, func(t *testing.T) {
			q := question(sandbox.Run{Language: "python", Code: tt.code}, nil, "")
			q.Stage, q.Staged = []byte(tt.code), tt.staged
			a, err := g.Judge(t.Context(), manager.Question{Exec: q})
			if err != nil || a.Decision.Verdict != tt.want {
				t.Fatalf("%v, %s: %s", err, a.Decision.Verdict, told(a.Decision.Findings))
			}
			if tt.want != sandbox.Allow {
				return
			}
			for _, kv := range a.Program.Env {
				if kv == "PYTHONPATH=/workspace" {
					t.Error(a.Program.Env)
				}
			}
			if len(a.Program.Stage) != 1+len(tt.staged) {
				t.Errorf("%d staged", len(a.Program.Stage))
			}
		})
	}
}

// Texts that caisson ships are not judged as a run's code or beside it, where they are
// these very bytes; what lies beside them is, and nothing else can be loaded.
func TestShipped(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	const runner, helper = "exec(open('/anything').read())\nimport helper", "exec(input())"
	g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return p, nil }, Desk: &desk{}, Shipped: []string{runner, helper}})
	if err != nil {
		t.Fatal(err)
	}
	type files = map[string]string
	for name, tt := range map[string]struct {
		run    sandbox.Run
		staged files
		want   sandbox.Verdict
	}{
		"alone":                {sandbox.Run{Code: runner}, nil, sandbox.Allow},
		"with ours":            {sandbox.Run{Code: runner}, files{"helper.py": helper}, sandbox.Allow},
		"beside other code":    {sandbox.Run{Code: "import helper"}, files{"helper.py": helper}, sandbox.Allow},
		"not quite the runner": {sandbox.Run{Code: runner + " "}, files{"helper.py": helper}, sandbox.Ask},
		"not quite the helper": {sandbox.Run{Code: runner}, files{"helper.py": helper + " "}, sandbox.Ask},
		"another by its name":  {sandbox.Run{Code: runner}, files{"helper.py": evilPython}, sandbox.Deny},
		"another beside it":    {sandbox.Run{Code: runner}, files{"helper.py": helper, "call.py": evilPython}, sandbox.Deny},
		"of the workspace":     {sandbox.Run{File: "x.py", Files: []sandbox.File{{Path: "x.py", Data: []byte(runner)}}}, nil, sandbox.Ask},
	} {
		t.Run(name, func(t *testing.T) {
			tt.run.Language = "python"
			q := question(tt.run, nil, "")
			for name, text := range tt.staged {
				q.Staged = append(q.Staged, manager.StageFile{Name: name, Data: []byte(text)})
			}
			if tt.run.Code != "" {
				q.Stage = []byte(tt.run.Code)
			}
			a, err := g.Judge(t.Context(), manager.Question{Exec: q})
			if err != nil || a.Decision.Verdict != tt.want {
				t.Fatalf("%v, %s: %s", err, a.Decision.Verdict, told(a.Decision.Findings))
			}
			if tt.want != sandbox.Allow {
				return
			}
			if len(a.Decision.Findings) > 0 {
				t.Error(told(a.Decision.Findings))
			}
			if last := a.Program.Stage[len(a.Program.Stage)-1]; last.Name != "boot.py" {
				t.Errorf("it is run without what holds it to judged modules: %s", last.Name)
			}
		})
	}
}
