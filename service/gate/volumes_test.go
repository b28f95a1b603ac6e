package gate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// What lies at a place that the image declares as a volume is not the image's:
// programs can write there. All that takes files of an image for what they are
// goes by the same list.
func TestVolumesAreNotTheImages(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	for name, tt := range map[string]struct {
		run sandbox.Run
		ws  files
	}{
		"a script":              {command("sh", "/opt/data/x.sh"), nil},
		"a program":             {command("/opt/data/x"), nil},
		"an interpreter":        {command("/opt/data/python3", "x.py"), files{"x.py": "print(1)\n"}},
		"where programs lie":    {sandbox.Run{Language: "shell", Command: []string{"true"}, Env: []string{"PATH=/opt/data:/bin"}}, nil},
		"where a text looks":    {command("sh", "-c", "PATH=/opt/data:$PATH make"), nil},
		"where modules lie":     {sandbox.Run{Language: "shell", Command: []string{"true"}, Env: []string{"PYTHONPATH=/opt/data"}}, nil},
		"a home":                {sandbox.Run{Language: "shell", Command: []string{"true"}, Env: []string{"HOME=/opt/data/me"}}, nil},
		"a module of Node":      {sandbox.Run{Language: "node", Code: "require('/opt/data/m')"}, nil},
		"text that is run":      {sandbox.Run{Language: "python", Code: "exec(open('/opt/data/a.py').read())"}, nil},
		"below, by other words": {command("sh", "/opt/../opt/data//sub/./x.sh"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, volumes := range [][]string{nil, {"/elsewhere"}, {"/opt/data"}, {"/elsewhere", "opt/data/"}} {
				q := question(tt.run, tt.ws, "")
				q.Plan = func(context.Context) (runtimes.Plan, error) {
					return runtimes.Plan{Spec: sandbox.Spec{Image: sandbox.Image{ID: "sha256:1", Volumes: volumes}}}, nil
				}
				a, err := newGate(t, p, &desk{}).Judge(t.Context(), manager.Question{Exec: q})
				if err != nil {
					t.Fatal(err)
				}
				theirs := len(volumes) > 0 && volumes[len(volumes)-1] != "/elsewhere"
				if allowed := a.Decision.Verdict == sandbox.Allow; allowed == theirs {
					t.Errorf("volumes %v: %s, %v", volumes, a.Decision.Verdict, a.Decision.Findings)
				}
			}
		})
	}
}

// An interpreter loads nothing from there that was not judged with its program.
func TestNothingIsLoadedFromVolumes(t *testing.T) {
	t.Parallel()
	g := newGate(t, newPolicy(t), &desk{})
	for lang, run := range map[string]sandbox.Run{
		"python": {Language: "python", File: "main.py"},
		"node":   {Language: "node", File: "main.js"},
	} {
		q := question(run, files{"main.py": "import m\n", "m.py": "x = 1\n", "main.js": "require('./m')\n", "m.js": ""}, "")
		q.Plan = func(context.Context) (runtimes.Plan, error) {
			return runtimes.Plan{Spec: sandbox.Spec{Image: sandbox.Image{Volumes: []string{"/opt/data"}}}}, nil
		}
		a, err := g.Judge(t.Context(), manager.Question{Exec: q})
		if err != nil || a.Program == nil {
			t.Fatalf("%s: %v, %v", lang, a.Decision, err)
		}
		for _, place := range []string{"/workspace", "/tmp", "/var/tmp", "/home/sandbox", "/dev/shm", "/opt/data", "/proc", "/dev"} {
			if !slices.ContainsFunc(a.Program.Stage, func(f manager.StageFile) bool {
				return strings.HasPrefix(f.Name, "boot.") && strings.Contains(string(f.Data), `"`+place+`"`)
			}) {
				t.Errorf("%s: %s is not among the places that can be written", lang, place)
			}
		}
	}
}
