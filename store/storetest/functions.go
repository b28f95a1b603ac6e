package storetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

func aFunction(owner, name string, version int) *sandbox.FunctionCode {
	return &sandbox.FunctionCode{
		Function: sandbox.Function{
			ID: sandbox.NewID(), Owner: owner, Name: name, Version: version, Handler: "main.handler", Language: "python", Limits: sandbox.DefaultLimits,
			Env: []string{"KEY=value"}, Labels: sandbox.Labels{"of": name}, Files: []sandbox.FunctionFile{{Path: "main.py", Size: 3}},
		},
		Files: []sandbox.File{{Path: "main.py", Data: []byte{0, 0xff, byte(version)}}},
	}
}

// functions are each owner's own, and follow one another by their versions.
func functions(t *testing.T, open Open) {
	dir := t.TempDir()
	s := open(t, dir)
	first, theirs, other := aFunction("", "one", 1), aFunction("them", "one", 1), aFunction("", "two", 1)
	for _, f := range []*sandbox.FunctionCode{other, first, theirs} {
		apply(t, s, sandbox.Transaction{PutFunction: f, Events: []sandbox.Event{anEvent(sandbox.EventFunctionPut, "")}})
	}
	refuse(t, s, sandbox.Transaction{PutFunction: aFunction("", "one", 1)}, sandbox.Conflict)
	refuse(t, s, sandbox.Transaction{PutFunction: aFunction("", "one", 3)}, sandbox.Conflict)
	refuse(t, s, sandbox.Transaction{PutFunction: aFunction("", "three", 2)}, sandbox.Conflict)
	second := aFunction("", "one", 2)
	apply(t, s, sandbox.Transaction{PutFunction: second})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()

	for _, want := range []*sandbox.FunctionCode{second, theirs, other} {
		got, err := s.Function(t.Context(), want.Function.Owner, want.Function.Name)
		if d := cmp.Diff(want.Function, got); err != nil || d != "" {
			t.Errorf("%v %s", err, d)
		}
		files, err := s.FunctionFiles(t.Context(), got)
		if d := cmp.Diff(want.Files, files); err != nil || d != "" {
			t.Errorf("%v %s", err, d)
		}
	}
	if _, err := s.FunctionFiles(t.Context(), first.Function); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("files of an old version: %v", err)
	}
	mine := ""
	for name, tt := range map[string]struct {
		filter sandbox.FunctionFilter
		want   []sandbox.Function
	}{
		"all":      {sandbox.FunctionFilter{}, []sandbox.Function{second.Function, theirs.Function, other.Function}},
		"mine":     {sandbox.FunctionFilter{Owner: &mine}, []sandbox.Function{second.Function, other.Function}},
		"labelled": {sandbox.FunctionFilter{Labels: sandbox.Labels{"of": "two"}}, []sandbox.Function{other.Function}},
		"a page":   {sandbox.FunctionFilter{Owner: &mine, Limit: 1}, []sandbox.Function{second.Function}},
		"the next": {sandbox.FunctionFilter{Owner: &mine, After: "one"}, []sandbox.Function{other.Function}},
	} {
		got, err := s.Functions(t.Context(), tt.filter)
		if d := cmp.Diff(tt.want, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}

	apply(t, s, sandbox.Transaction{DeleteFunction: &sandbox.FunctionName{Name: "one"}})
	refuse(t, s, sandbox.Transaction{DeleteFunction: &sandbox.FunctionName{Name: "one"}}, sandbox.NotFound)
	if _, err := s.Function(t.Context(), "", "one"); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("a function that was removed: %v", err)
	}
	if _, err := s.Function(t.Context(), "them", "one"); err != nil {
		t.Errorf("another's of the same name: %v", err)
	}
	Sound(t, s)
}
