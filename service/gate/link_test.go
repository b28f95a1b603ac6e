package gate_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// What an image names by a link to the workspace is judged as what it is: the same
// findings as for the file's own place, where it is harmful and where it is not. Where
// the image has no such link, or something is mounted there, nobody can say.
func TestLinkToTheWorkspace(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	judge := func(run sandbox.Run, ws files, img sandbox.Image) sandbox.Decision {
		t.Helper()
		img.ID = "sha256:1"
		q := question(run, ws, "")
		q.Run.Session = "box"
		q.Plan = func(context.Context) (runtimes.Plan, error) {
			return runtimes.Plan{Spec: sandbox.Spec{Image: img}}, nil
		}
		a, err := newGate(t, p, &desk{}).Judge(t.Context(), manager.Question{Exec: q})
		if err != nil {
			t.Fatal(err)
		}
		return a.Decision
	}
	in := func(run sandbox.Run, dir string) sandbox.Run {
		run.Dir = dir
		return run
	}
	evil := files{"x.sh": evilShell, "x.py": evilPython, "m.py": evilPython, "x.js": evilNode, "sub/x.sh": evilShell, "imports.py": "import m\n", "data.csv": "1\n"}
	mild := maps.Clone(evil)
	for name := range mild {
		mild[name] = map[bool]string{true: "import m\n"}[name == "imports.py"]
	}
	for name, run := range map[string]sandbox.Run{
		"a shell's script":      command("sh", "@/x.sh"),
		"a script by its path":  command("@/x.sh"),
		"of a command line":     command("sh", "-c", "sh @/x.sh"),
		"sourced":               command("sh", "-c", ". @/sub/x.sh"),
		"after cd":              command("sh", "-c", "cd @ && sh x.sh"),
		"of a variable":         command("sh", "-c", "h=@; sh $h/x.sh"),
		"from a folder of it":   in(command("sh", "x.sh"), "@"),
		"from one below":        in(command("sh", "x.sh"), "@/sub"),
		"of more steps":         command("sh", "@//sub/../x.sh"),
		"Python's":              command("python3", "@/x.py"),
		"Python's in a shell":   command("sh", "-c", "python3 @/x.py"),
		"a module beside":       command("python3", "@/imports.py"),
		"a module found by":     {Language: "python", Code: "import sys\nsys.path.insert(0, '@')\nimport m\n"},
		"Python's exec":         {Language: "python", Code: "exec(open('@/x.py').read())"},
		"Python's runpy":        {Language: "python", Code: "import runpy; runpy.run_path('@/x.py')"},
		"Python starts a shell": {Language: "python", Code: "import subprocess\nsubprocess.run(['sh', '@/x.sh'])"},
		"Node's":                command("node", "@/x.js"),
		"Node requires":         {Language: "node", Code: "require('@/x.js')"},
		"with pytest":           command("pytest", "@"),
		"a file is read":        {Language: "python", Code: "open('@/data.csv').read()"},
		"a file is removed":     command("rm", "@/data.csv"),
		"all is removed":        command("rm", "-rf", "@"),
		"a hook is written":     command("sh", "-c", "echo x > @/.git/hooks/pre-commit"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := func(dir string) sandbox.Run {
				r := run
				r.Code, r.Dir, r.Command = strings.ReplaceAll(r.Code, "@", dir), strings.ReplaceAll(r.Dir, "@", dir), slices.Clone(r.Command)
				for i, word := range r.Command {
					r.Command[i] = strings.ReplaceAll(word, "@", dir)
				}
				return r
			}
			img := sandbox.Image{Link: "/home/user"}
			for _, ws := range []files{evil, mild} {
				want, got := judge(at("/workspace"), ws, img), judge(at("/home/user"), ws, img)
				if got.Verdict != want.Verdict && (want.Verdict == sandbox.Allow || got.Verdict == sandbox.Allow) {
					t.Errorf("%s as %s by the link, %v", want.Verdict, got.Verdict, got.Findings)
				}
			}
			if judge(at("/workspace"), evil, img).Verdict == sandbox.Allow {
				return // it is harmless, whatever is there
			}
			for _, img := range []sandbox.Image{{}, {Link: "/home/else"}, {Link: "/home/user", Volumes: []string{"/home/user"}}, {Link: "/home/user", Volumes: []string{"/home/user/sub"}}} {
				if got := judge(at("/home/user"), mild, img); got.Verdict == sandbox.Allow {
					t.Errorf("%+v: allowed", img)
				}
			}
		})
	}
	// The home of programs is none of it, nor what a variable makes one.
	for name, run := range map[string]sandbox.Run{
		"~":       command("sh", "-c", "sh ~/x.sh"),
		"HOME":    {Language: "shell", Command: []string{"true"}, Env: []string{"HOME=/home/user"}},
		"outside": command("sh", "/home/user/../x.sh"),
		"pytest":  command("pytest", "/tmp/tests"),
		"pytest.": command("pytest", "../tmp/x.py::test_a"),
		"beside":  command("sh", "/home/username/x.sh"),
	} {
		if d := judge(run, mild, sandbox.Image{Link: "/home/user"}); d.Verdict == sandbox.Allow {
			t.Errorf("%s: allowed", name)
		}
	}
}
