package batch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/batch"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRuns has lines that cannot be meant, or run, cost no other its result.
func TestRuns(t *testing.T) {
	t.Parallel()
	r := batch.Runs{
		Workers: 2, Ordered: true,
		Do: func(_ context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
			res := sandbox.Result{ExecID: "e", Exit: sandbox.Exit{Reason: sandbox.ReasonExited}}
			switch run.Code {
			case "lost":
				return sandbox.Result{}, sandbox.Errorf(sandbox.Unavailable, "no engine").WithHint("start it")
			case "refused":
				res.Reason = sandbox.ReasonDenied
				return res, &sandbox.DeniedError{Decision: sandbox.Decision{Verdict: sandbox.Deny}}
			case "after":
				return res, sandbox.Errorf(sandbox.Internal, "it was not written down")
			}
			if streams.Stdin != nil {
				b, err := io.ReadAll(streams.Stdin)
				res.Stdout = b
				return res, err
			}
			return res, nil
		},
	}
	lines := []string{
		`{"id": "in", "language": "shell", "code": "cat", "stdin": "a"}`, `{"id": 7, "language": "shell", "code": "cat", "stdin_base64": "/w=="}`, ``, `rubbish`,
		`{"language": "shell", "code": "true"}`, `{"id": "lost", "code": "lost"}`, `{"id": "refused", "code": "refused"}`, `{"id": "after", "code": "after"}`,
		`{"id": "in", "code": "twice"}`, `{"id": "odd", "cod": "x"}`, `{"id": "mine", "session": "mine", "code": "x"}`, `{"id": "asks", "approve": "ask"}`,
		`{"id": "far", "files": [{"path": "a", "ref": "0"}]}`, `{"id": "two"} {}`, `{"id": "open", "input": true}`,
	}
	var got []string
	err := r.Run(t.Context(), batch.Lines(strings.NewReader(strings.Join(lines, "\n"))), func(e batch.Ended) error {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		var line struct {
			ID     string
			Line   int
			Reason string `json:"exit_reason"`
			Stdout string
			Base64 string `json:"stdout_base64"`
			Error  *sandbox.Problem
		}
		if err := json.Unmarshal(b, &line); err != nil {
			return err
		}
		text := fmt.Sprint(line.Line, " ", line.ID, " ", line.Reason, line.Stdout, line.Base64)
		if line.Error != nil {
			text += " " + line.Error.Kind
			if line.Error.Kind == "invalid" && line.Error.Hint == "" {
				t.Errorf("%s does not say what to do", b)
			}
		}
		got = append(got, text)
		return nil
	})
	want := []string{
		"1 in exiteda", "2 7 exited/w==", "4 line 4  invalid", "5 line 5 exited", "6 lost  unavailable", "7 refused denied", "8 after exited internal",
		"9 in  invalid", "10 odd  invalid", "11 mine  invalid", "12 asks  invalid", "13 far  invalid", "14 two  invalid", "15 open  invalid",
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v, -want +got\n%s", err, d)
	}
}

// TestLike fills what a line leaves open, and nothing else.
func TestLike(t *testing.T) {
	t.Parallel()
	like := sandbox.Run{
		Language: "python", Image: "i", Env: []string{"A=1"}, Files: []sandbox.File{{Path: "a"}, {Path: "b"}}, Labels: sandbox.Labels{"x": "1", "y": "1"},
		Network: sandbox.Network{Mode: "bridge"}, Limits: sandbox.Limits{CPUs: 2, PIDs: 9}, ExecLimits: sandbox.ExecLimits{Timeout: 5}, Runtime: "r",
		Artifacts: []string{"*"}, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceVolume},
		Warm: true, Program: true, CompileTimeout: 3, Tools: []string{"t"},
	}
	var got []sandbox.Run
	r := batch.Runs{
		Workers: 1, Ordered: true, Like: like, LanguageOf: func(string) (string, error) { return "node", nil },
		Do: func(_ context.Context, run sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
			got = append(got, run)
			return sandbox.Result{}, nil
		},
	}
	lines := `{"code": "1"}
{"file": "b", "files": [{"path": "./b", "data": "own"}], "env": ["A=2"], "labels": {"y": "2"}, "network": "none", "limits": {"cpus": 1}, "timeout_ms": 7, "runtime": "s", "artifacts": [], "approve": "always"}`
	if err := r.Run(t.Context(), batch.Lines(strings.NewReader(lines)), func(batch.Ended) error { return nil }); err != nil {
		t.Fatal(err)
	}
	open := like
	open.Code, open.Approve = "1", sandbox.ApproveNever
	own := like
	own.Language, own.File, own.Files, own.Env = "node", "b", []sandbox.File{{Path: "./b", Data: []byte("own")}, {Path: "a"}}, []string{"A=1", "A=2"}
	own.Labels, own.Network, own.Limits.CPUs, own.Runtime = sandbox.Labels{"x": "1", "y": "2"}, sandbox.Network{Mode: "none"}, 1, "s"
	own.Timeout, own.Artifacts, own.Approve = sandbox.Duration(7*time.Millisecond), []string{}, sandbox.ApproveAlways
	if d := cmp.Diff([]sandbox.Run{open, own}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if like.Labels["y"] != "1" {
		t.Error("a line has changed what all have")
	}
}
