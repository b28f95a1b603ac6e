package testloop_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

// wants is a judge whose one test passes for a text.
func wants(text string) testloop.Judge {
	return func(_ context.Context, s []sandbox.File) (testloop.Result, error) {
		got := string(s[0].Data)
		if got == "evil" {
			return testloop.Result{}, &sandbox.DeniedError{Decision: sandbox.Decision{Verdict: sandbox.Deny}}
		}
		t := testloop.Test{ID: "t", Outcome: testloop.Passed}
		if got != text {
			t.Outcome, t.Message = testloop.Failed, "got "+got
		}
		return testloop.Result{Tests: []testloop.Test{t}, AllPassed: got == text}, nil
	}
}

// answers revises the first file to each text in turn.
func answers(texts ...string) testloop.Reviser {
	return testloop.ReviserFunc(func(_ context.Context, r testloop.Request) (testloop.Revision, error) {
		if r.Task != "the task" || len(r.Failures)+len(r.Problems) != 1 || r.Solution["a"] == "" {
			return testloop.Revision{}, errors.New("an odd request")
		}
		return testloop.Revision{Files: map[string]*string{"a": &texts[r.Iteration-1]}, Note: "as said"}, nil
	})
}

func TestLoop(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reviser testloop.Reviser
		most    int
		want    testloop.Stop
		rounds  int
		err     error
	}{
		"it passes":       {answers("2", "3"), 5, testloop.StopPassed, 3, nil},
		"no more rounds":  {answers("2", "4", "3"), 3, testloop.StopIterations, 3, nil},
		"nobody revises":  {nil, 5, testloop.StopIterations, 1, nil},
		"the same again":  {answers("2", "1"), 5, testloop.StopNoProgress, 2, nil},
		"refused, mended": {answers("evil", "3"), 5, testloop.StopPassed, 3, nil},
		"refused at last": {answers("2", "evil"), 3, testloop.StopIterations, 3, sandbox.Denied},
		"it fails": {testloop.ReviserFunc(func(context.Context, testloop.Request) (testloop.Revision, error) {
			return testloop.Revision{}, sandbox.Errorf(sandbox.Conflict, "no")
		}), 5, "", 1, sandbox.Conflict},
		"it leaves": {testloop.ReviserFunc(func(context.Context, testloop.Request) (testloop.Revision, error) {
			return testloop.Revision{Files: map[string]*string{"../x": new(string)}}, nil
		}), 5, "", 1, sandbox.Invalid},
		"it removes all": {testloop.ReviserFunc(func(context.Context, testloop.Request) (testloop.Revision, error) {
			return testloop.Revision{Files: map[string]*string{"a": nil}}, nil
		}), 5, "", 1, sandbox.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resets := 0
			r, err := testloop.Loop{
				Task: "the task", Solution: files("a", "1"), Judge: wants("3"), Reviser: tt.reviser, MaxIterations: tt.most,
				Reset: func(context.Context) error { resets++; return nil },
			}.Run(t.Context())
			if !errors.Is(err, tt.err) || r.Stopped != tt.want || len(r.Iterations) != tt.rounds || resets != tt.rounds-1 {
				t.Errorf("%v, %q after %d, %d resets", err, r.Stopped, len(r.Iterations), resets)
			}
			if tt.want == testloop.StopPassed && (r.Solution["a"] != "3" || !r.AllPassed || r.Iterations[2].Note != "as said" || !strings.Contains(r.Iterations[2].Diff, "\n+3")) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// The same failures twice are no progress, though the solution is another.
func TestLoopWithoutProgress(t *testing.T) {
	t.Parallel()
	r, err := testloop.Loop{
		Task: "the task", Solution: files("a", "1"), Reviser: answers("2", "3", "4"), MaxIterations: 9,
		Judge: func(context.Context, []sandbox.File) (testloop.Result, error) {
			return testloop.Result{Tests: []testloop.Test{{ID: "t", Outcome: testloop.Failed, Message: "always"}}}, nil
		},
	}.Run(t.Context())
	if err != nil || r.Stopped != testloop.StopNoProgress || len(r.Iterations) != 2 {
		t.Errorf("%v, %q after %d", err, r.Stopped, len(r.Iterations))
	}
	b, err := json.Marshal(r)
	var back struct {
		AllPassed  *bool `json:"all_passed"`
		Totals     *testloop.Totals
		Tests      []testloop.Test
		Iterations []struct{ Result testloop.Result }
	}
	if err != nil || json.Unmarshal(b, &back) != nil || back.AllPassed == nil || back.Totals == nil || len(back.Tests) != 1 || len(back.Iterations) != 2 || back.Iterations[1].Result.Tests[0].Message != "always" {
		t.Errorf("%v: %s", err, b)
	}
}

// A budget ends what waits.
func TestLoopBudget(t *testing.T) {
	t.Parallel()
	r, err := testloop.Loop{
		Solution: files("a", "1"), Judge: wants("3"), Timeout: 20 * time.Millisecond,
		Reviser: testloop.ReviserFunc(func(ctx context.Context, _ testloop.Request) (testloop.Revision, error) {
			<-ctx.Done()
			return testloop.Revision{}, ctx.Err()
		}),
	}.Run(t.Context())
	if err != nil || r.Stopped != testloop.StopBudget {
		t.Errorf("%v, %q", err, r.Stopped)
	}
}

func TestCommandReviser(t *testing.T) {
	t.Parallel()
	script := func(text string) string {
		name := filepath.Join(t.TempDir(), "reviser")
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return name
	}
	ask := func(line string, limit time.Duration) (testloop.Revision, error) {
		return testloop.CommandReviser{Line: line, Timeout: limit}.Revise(t.Context(), testloop.Request{Task: "x"})
	}
	r, err := ask(script(`grep -q '"task":"x"' && echo '{"files": {"a": "'$1'", "b": null}}'`)+" word", 0)
	if err != nil || *r.Files["a"] != "word" || r.Files["b"] != nil {
		t.Errorf("%v, %v", err, r)
	}
	for text, want := range map[string]sandbox.Kind{
		"exit 3": sandbox.Unavailable, "echo no": sandbox.Invalid, "echo '{}'": sandbox.Invalid, `echo '{"files": {}} {}'`: sandbox.Invalid, "exec sleep 600": sandbox.TimedOut,
		`printf '{"files": {"a": "'; head -c 9000000 /dev/zero | tr '\0' x; printf '"}}'`: sandbox.Invalid,
	} {
		limit := time.Duration(0)
		if want == sandbox.TimedOut {
			limit = 50 * time.Millisecond
		}
		if _, err := ask(script(text), limit); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ask("", 0); !errors.Is(err, sandbox.Invalid) {
		t.Error(err)
	}
}

func TestChatReviser(t *testing.T) {
	t.Parallel()
	const good = "{\"choices\": [{\"message\": {\"content\": \"Here:\\n```json\\n{\\\"files\\\": {\\\"a\\\": \\\"2\\\"}}\\n```\\n\"}}]}"
	for name, tt := range map[string]struct {
		status []int // one answer each, then 200; 0 is none
		body   string
		want   sandbox.Kind // 0 is none
		asked  int
	}{
		"good":        {nil, good, 0, 1},
		"busy first":  {[]int{429, 503}, good, 0, 3},
		"always busy": {[]int{500, 500, 500}, good, sandbox.Unavailable, 3},
		"no key":      {[]int{401}, good, sandbox.Denied, 1},
		"no model":    {[]int{404}, good, sandbox.Invalid, 1},
		"redirected":  {[]int{302}, good, sandbox.Invalid, 1},
		"rubbish":     {nil, "<html>", sandbox.Invalid, 1},
		"no choices":  {nil, "{}", sandbox.Invalid, 1},
		"prose":       {nil, `{"choices": [{"message": {"content": "I cannot."}}]}`, sandbox.Invalid, 1},
		"too much":    {nil, strings.Replace(good, "Here", strings.Repeat("x", 9<<20), 1), sandbox.Invalid, 1},
		"it hangs up": {[]int{0, 0, 0}, good, sandbox.Unavailable, 3},
		"cut off":     {[]int{0}, good, 0, 2},
		"it stalls":   {nil, "", sandbox.TimedOut, 1},
		"half-way":    {nil, good[:20], sandbox.TimedOut, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked := int(requests.Add(1))
				_, _ = io.Copy(io.Discard, r.Body) // only then is a client noticed that goes
				if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer k" {
					t.Errorf("%s %v", r.URL, r.Header)
				}
				if tt.want == sandbox.TimedOut {
					_, _ = w.Write([]byte(tt.body))
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
					return
				}
				if asked <= len(tt.status) {
					if tt.status[asked-1] == 0 {
						panic(http.ErrAbortHandler)
					}
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(tt.status[asked-1])
					return
				}
				_, _ = w.Write([]byte(tt.body))
			}))
			defer s.Close()
			c := testloop.ChatReviser{URL: s.URL + "/v1/", Model: "m", Key: "k"}
			if tt.want == sandbox.TimedOut {
				c.Timeout = 50 * time.Millisecond
			}
			r, err := c.Revise(t.Context(), testloop.Request{})
			if tt.want == 0 && (err != nil || *r.Files["a"] != "2") || tt.want != 0 && !errors.Is(err, tt.want) || tt.want != sandbox.TimedOut && int(requests.Load()) != tt.asked {
				t.Errorf("%v, %v, asked %d times", err, r, requests.Load())
			}
		})
	}
}
