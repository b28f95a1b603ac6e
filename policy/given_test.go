package policy

import (
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// TestGiven tells what a caller hands over, which is medium, from what the
// program hides, receives or makes, which stays high.
func TestGiven(t *testing.T) {
	written := []facts.File{{Op: facts.OpWrite, Path: "/workspace/a", Folded: true}}
	for _, tt := range []struct {
		name  string
		d     facts.Dynamic
		files []facts.File
		want  bool
	}{
		{"a parameter", dynamic(facts.DynEval, "param"), nil, true},
		{"a script of which nothing is known", dynamic(facts.DynFile), nil, true},
		{"one that may have been written", dynamic(facts.DynFile), written, false},
		{"a parameter that the program may fill", dynamic(facts.DynEval, "param", "program"), nil, false},
		{"a parameter that words of the program may fill", dynamic(facts.DynEval, "param", "words"), nil, true},
		{"a command that words of the program may fill", dynamic(facts.DynOpaqueCode, "param", "words"), nil, false},
		{"a function that is handed in", inert(dynamic(facts.DynCall, "param", "namespace")), nil, true},
		{"a function of a namespace", inert(dynamic(facts.DynCall, "namespace")), nil, false},
		{"a function that is handed in, and code for it", dynamic(facts.DynCall, "param", "namespace"), nil, false},
		{"a parameter that something outside fills", dynamic(facts.DynOpaqueCode, "param", "handed"), nil, false},
		{"a parameter that holds decoded text", dynamic(facts.DynEval, "param", "decoded"), nil, false},
		{"nothing known", dynamic(facts.DynEval), nil, false},
		{"an argument", dynamic(facts.DynEval, "argv"), nil, false},
		{"a file that an argument names", dynamic(facts.DynEval, "argv", "file"), nil, true},
		{"a file of the workspace", dynamic(facts.DynEval, "file:/workspace/a"), nil, true},
		{"one that the program wrote", dynamic(facts.DynEval, "file:/workspace/a"), written, false},
		{"one that others may have written", dynamic(facts.DynEval, "file:/tmp/a"), nil, false},
		{"one in the home folder", dynamic(facts.DynEval, "file:/home/sandbox/a"), nil, false},
		{"one of the image", dynamic(facts.DynEval, "file:/usr/lib/a.py"), nil, true},
		{"its own source", dynamic(facts.DynEval, "file", facts.FromOwnText), nil, false},
		{"what its own source is called", dynamic(facts.DynEval, "param", facts.FromOwnFile), nil, true},
		{"input", dynamic(facts.DynEval, "input"), nil, false},
		{"the network", dynamic(facts.DynEval, "net:x.test", "param"), nil, false},
		{"a module by an argument", dynamic(facts.DynImport, "argv"), nil, true},
		{"a module by input", dynamic(facts.DynImport, "input"), nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (&provenance{d: &facts.Document{Files: tt.files}}).given(&tt.d); got != tt.want {
				t.Errorf("given: %v, want %v", got, tt.want)
			}
		})
	}
	volume := dynamic(facts.DynEval, "file:/opt/data/a.py")
	for _, places := range [][]string{nil, {"/workspace", "/tmp"}, {"/tmp", "/opt/data"}} {
		p := provenance{d: &facts.Document{}, writable: places}
		if got, want := p.given(&volume), !slices.Contains(places, "/opt/data"); got != want {
			t.Errorf("a file where programs can write %v: given %v, want %v", places, got, want)
		}
	}
	for _, tt := range []struct {
		name  string
		from  []string
		files []facts.File
		want  bool
	}{
		{"a file", []string{"file:/workspace/a"}, nil, false},
		{"a line of a file", []string{"file:/workspace/a", facts.FromChosen}, nil, true},
		{"one that was changed", []string{"file:/workspace/a", facts.FromChosen, facts.FromFiltered}, nil, false},
		{"one of a file that the program wrote", []string{"file:/workspace/a", facts.FromChosen}, written, false},
		{"one of a file that others may have written", []string{"file:/tmp/a", facts.FromChosen}, nil, false},
		{"what a program makes of a file", []string{"file:/workspace/a", "command", facts.FromChosen}, nil, false},
		{"what was made of nothing", []string{facts.FromFiltered}, nil, false},
		{"an argument that was changed", []string{"argv", facts.FromFiltered}, nil, true},
	} {
		d := dynamic(facts.DynOpaqueCode, tt.from...)
		d.Lang = facts.Shell
		if got := (&provenance{d: &facts.Document{Files: tt.files}}).given(&d); got != tt.want {
			t.Errorf("%s, for a shell: %v, want %v", tt.name, got, tt.want)
		}
	}
	idle := dynamic(facts.DynEval, "param", "handed", "program")
	idle.Idle = true
	if p := (&provenance{d: &facts.Document{}}); !p.given(&idle) {
		t.Error("code of an idle function is not its caller's")
	}
	nested := dynamic(facts.DynImport, "env:M")
	nested.Depth = 1
	if p := (&provenance{d: &facts.Document{}}); p.given(&nested) {
		t.Error("what text within the text gets from its surroundings is not a caller's")
	}
}

func dynamic(kind string, from ...string) facts.Dynamic {
	return facts.Dynamic{At: facts.At{Lang: facts.Python}, Kind: kind, From: from}
}

func inert(d facts.Dynamic) facts.Dynamic {
	d.Inert = true
	return d
}
