package functions_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// What a handler starts is judged and told with the call. A start that is refused fails
// alone, or ends the process with its call, and the next call has a new one.
func TestStartsOfCalls(t *testing.T) {
	t.Parallel()
	const code = "import subprocess\ndef handler(event, context):\n  try: return subprocess.run(event, capture_output=True, text=True).stdout\n  except PermissionError: return 'refused'\n"
	for _, goes := range []bool{true, false} {
		fs, _, _ := onEngineWith(t, func(cfg *manager.Config) {
			cfg.Starts, cfg.Gate = sandbox.StartsRule{Mode: sandbox.StartsJudge, Goes: goes}, withoutID(cfg.Gate)
		}, "python")
		put(t, fs, sandbox.FunctionOptions{Name: "starts", Language: "python", Handler: "main.handler", Files: files("main.py", code)})
		for _, tt := range []struct {
			event, value string
			starts       []string
		}{
			{`["/bin/echo", "a"]`, `"a\n"`, []string{"echo allow"}},
			{`["/usr/bin/id"]`, `"refused"`, []string{"id deny"}},
			{`["/bin/echo", "b"]`, `"b\n"`, []string{"echo allow"}},
		} {
			got := invoke(t, fs, "starts", tt.event)
			var told []string
			for _, s := range got.Starts {
				told = append(told, path.Base(s.Path)+" "+string(s.Verdict))
			}
			if !slices.Equal(told, tt.starts) {
				t.Errorf("goes %v: %s: told %+v", goes, tt.event, got.Starts)
			}
			ends := !goes && tt.value == `"refused"`
			if !ends && string(got.Value) != tt.value || ends && (got.Error == nil || got.Error.Type != "Runtime.ExitError" || !strings.HasSuffix(got.Error.Message, "by policy: it started /usr/bin/id: T-1 Named")) {
				t.Errorf("goes %v: %s: %s %+v", goes, tt.event, got.Value, got.Error)
			}
		}
	}
}

// withoutID is a gate that lets nothing start id.
func withoutID(g manager.Gate) manager.Gate {
	return func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		if q.Start != nil && path.Base(q.Start.Start.File) == "id" {
			return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Deny, Findings: []sandbox.Finding{{ID: "T-1", Title: "Named", Verdict: sandbox.Deny}}}}, nil
		}
		return g(ctx, q)
	}
}
