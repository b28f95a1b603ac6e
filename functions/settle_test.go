package functions_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestMeaningless: what cannot be meant is refused with its kind, and keeps nothing.
func TestMeaningless(t *testing.T) {
	t.Parallel()
	fs, _, _ := onFake(t, echo, nil)
	for name, tt := range map[string]struct {
		change func(o *sandbox.FunctionOptions)
		kind   sandbox.Kind
	}{
		"no name":           {func(o *sandbox.FunctionOptions) { o.Name = "" }, sandbox.Invalid},
		"a path as name":    {func(o *sandbox.FunctionOptions) { o.Name = "../x" }, sandbox.Invalid},
		"no handler":        {func(o *sandbox.FunctionOptions) { o.Handler = "main" }, sandbox.Invalid},
		"a handler outside": {func(o *sandbox.FunctionOptions) { o.Handler = "../main.handler" }, sandbox.Invalid},
		"no files":          {func(o *sandbox.FunctionOptions) { o.Files = nil }, sandbox.Invalid},
		"a file outside":    {func(o *sandbox.FunctionOptions) { o.Files = files("../main.py", "") }, sandbox.Invalid},
		"a file twice":      {func(o *sandbox.FunctionOptions) { o.Files = files("main.py", "", "main.py", "") }, sandbox.Invalid},
		"a link outside":    {func(o *sandbox.FunctionOptions) { o.Files = []sandbox.File{{Path: "main.py", Link: "/etc/passwd"}} }, sandbox.Invalid},
		"too large": {func(o *sandbox.FunctionOptions) {
			o.Files = files("main.py", strings.Repeat("x", int(functions.MaxCode)+1))
		}, sandbox.Exhausted},
		"no such language": {func(o *sandbox.FunctionOptions) { o.Language = "shell" }, sandbox.Unsupported},
		"unknown language": {func(o *sandbox.FunctionOptions) { o.Handler = "other.handler" }, sandbox.Invalid},
		"a bad variable":   {func(o *sandbox.FunctionOptions) { o.Env = []string{"x"} }, sandbox.Invalid},
		"a long time":      {func(o *sandbox.FunctionOptions) { o.Timeout = sandbox.MaxFunctionTimeout + 1 }, sandbox.Invalid},
		"many at once":     {func(o *sandbox.FunctionOptions) { o.Concurrency = sandbox.MaxConcurrency + 1 }, sandbox.Invalid},
		"little memory":    {func(o *sandbox.FunctionOptions) { o.Limits.Memory = 1 }, sandbox.Invalid},
		"bad labels":       {func(o *sandbox.FunctionOptions) { o.Labels = sandbox.Labels{"": ""} }, sandbox.Invalid},
		"no content":       {func(o *sandbox.FunctionOptions) { o.Files = []sandbox.File{{Path: "main.py", Ref: "0"}} }, sandbox.NotFound},
	} {
		o := simple
		tt.change(&o)
		if _, err := fs.PutFunction(t.Context(), o, sandbox.Local{}); !errors.Is(err, tt.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := fs.Functions(t.Context(), sandbox.FunctionFilter{}); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
	put(t, fs, simple)
	for name, tt := range map[string]struct {
		call sandbox.Invocation
		kind sandbox.Kind
	}{
		"no JSON":         {sandbox.Invocation{Event: json.RawMessage("{")}, sandbox.Invalid},
		"a large event":   {sandbox.Invocation{Event: json.RawMessage(`"` + strings.Repeat("x", int(sandbox.MaxPayload)) + `"`)}, sandbox.Exhausted},
		"a client's text": {sandbox.Invocation{ClientContext: json.RawMessage(`"x"`)}, sandbox.Invalid},
		"a bad mode":      {sandbox.Invocation{Approve: "perhaps"}, sandbox.Invalid},
	} {
		tt.call.Function = "f"
		if _, err := fs.InvokeFunction(t.Context(), tt.call, sandbox.Local{}); !errors.Is(err, tt.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKept: what is shown has no values, links are the files that they lead to, and
// contents beside the request are read.
func TestKept(t *testing.T) {
	t.Parallel()
	fs, _, cfg := onFake(t, echo, nil)
	o := simple
	o.Env = []string{"KEY=secret"}
	o.Files = append(files("main.py", "x"), sandbox.File{Path: "lib", Dir: true}, sandbox.File{Path: "lib/copy.py", Link: "../main.py"}, sandbox.File{Path: "b.py", Ref: "r", Size: 3})
	f, err := fs.PutFunction(t.Context(), o, sandbox.Local{Contents: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("ref")), nil }})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := fs.Function(t.Context(), "f")
	if d := cmp.Diff(f, shown); err != nil || d != "" || strings.Join(shown.Env, "") != "KEY" || shown.Language != "python" || shown.Concurrency != 2 {
		t.Errorf("%+v, %v %s", shown, err, d)
	}
	if d := cmp.Diff([]sandbox.FunctionFile{{Path: "b.py", Size: 3}, {Path: "lib/copy.py", Size: 1}, {Path: "main.py", Size: 1}}, shown.Files); d != "" {
		t.Error(d)
	}
	kept, err := cfg.Store.FunctionFiles(t.Context(), f)
	if err != nil || string(kept[0].Data)+string(kept[1].Data) != "refx" {
		t.Errorf("%+v, %v", kept, err)
	}
}
