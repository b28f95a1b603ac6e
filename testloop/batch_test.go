package testloop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

func linesOf(list ...string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, l := range list {
			if !yield([]byte(l), nil) {
				return
			}
		}
	}
}

// TestBatch has lines that cannot be meant cost no other its result.
func TestBatch(t *testing.T) {
	t.Parallel()
	b := testloop.Batch{
		Workers: 2, Skip: func(id testloop.Name) bool { return id == "old" },
		Judge: func(_ context.Context, e testloop.Exercise) (testloop.Result, error) {
			switch e.ID {
			case "refused":
				return testloop.Result{}, &sandbox.DeniedError{Decision: sandbox.Decision{Verdict: sandbox.Deny}}
			case "lost":
				return testloop.Result{}, sandbox.Errorf(sandbox.Unavailable, "no engine").WithHint("start it")
			}
			return testloop.Result{AllPassed: e.Solution[""] == "good"}, nil
		},
	}
	got := map[string]string{}
	err := b.Run(t.Context(), linesOf(
		`{"id": "a", "solution": "good", "tests": "t"}`, ``, `{"id": 7, "solution": "bad", "tests": "t"}`, `rubbish`, `{"solution": "good"}`,
		`{"id": "old", "solution": "good"}`, `{"id": "refused", "solution": "good"}`, `{"id": "lost"}`, `{"id": "a"}`, `{"id": "odd", "solutoin": ""}`, `{"id": "two"} {}`,
	), func(j testloop.Judged) error {
		text, err := json.Marshal(j)
		if err != nil {
			return err
		}
		var line struct {
			ID     string `json:"id"`
			Passed bool   `json:"all_passed"`
			Error  struct{ Kind, Hint string }
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		got[line.ID] += strings.TrimSpace(fmt.Sprintln(line.Passed, line.Error.Kind)) + ";"
		if (line.Error.Kind == "invalid" || line.ID == "lost") && line.Error.Hint == "" {
			t.Errorf("%s: says not what to do", text)
		}
		return nil
	})
	want := map[string]string{
		"7": "false;", "line 4": "false invalid;", "line 5": "false invalid;", "refused": "false denied;",
		"lost": "false unavailable;", "odd": "false invalid;", "two": "false invalid;",
	}
	twice := got["a"] // its result, and that a later line has its id, in the order of their ends
	delete(got, "a")
	if d := cmp.Diff(want, got); err != nil || d != "" || twice != "true;false invalid;" && twice != "false invalid;true;" {
		t.Errorf("%v, a %q, -want +got\n%s", err, twice, d)
	}
}

// TestBatchBounds has as many at once as there are workers, and no more.
func TestBatchBounds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	full := make(chan struct{})
	b := testloop.Batch{Workers: 3, Judge: func(context.Context, testloop.Exercise) (testloop.Result, error) {
		mu.Lock()
		now++
		most = max(most, now)
		if now == 3 && most == 3 {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		<-full // nobody ends before three are at work
		mu.Lock()
		now--
		mu.Unlock()
		return testloop.Result{}, nil
	}}
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf(`{"id": %d}`, i))
	}
	ended := 0
	if err := b.Run(t.Context(), linesOf(lines...), func(testloop.Judged) error { ended++; return nil }); err != nil || ended != 20 || most != 3 {
		t.Errorf("%v, %d ended, %d at once", err, ended, most)
	}
}

// TestBatchEnds has a batch that is ended end what runs, and hand on nothing of it.
func TestBatchEnds(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for name, tt := range map[string]struct {
		end  func(cancel context.CancelFunc) error
		want error
	}{
		"cancel":      {func(cancel context.CancelFunc) error { cancel(); return nil }, context.Canceled},
		"no more out": {func(context.CancelFunc) error { return full }, full},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var cut sync.WaitGroup
		cut.Add(1)
		b := testloop.Batch{Workers: 2, Judge: func(ctx context.Context, e testloop.Exercise) (testloop.Result, error) {
			if e.ID == "hangs" {
				defer cut.Done()
				<-ctx.Done()
				return testloop.Result{}, ctx.Err()
			}
			return testloop.Result{}, nil
		}}
		var got []testloop.Name
		err := b.Run(ctx, linesOf(`{"id": "hangs"}`, `{"id": "quick"}`, `{"id": "quicker"}`), func(j testloop.Judged) error {
			got = append(got, j.ID)
			return tt.end(cancel)
		})
		cut.Wait()
		if !errors.Is(err, tt.want) || !slices.Equal(got, []testloop.Name{"quick"}) {
			t.Errorf("%s: %v, %q", name, err, got)
		}
		cancel()
	}
}

func TestExercisesThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		e    testloop.Exercise
		want sandbox.Kind
	}{
		"no solution":  {testloop.Exercise{Tests: testloop.Texts{"": ""}}, sandbox.Invalid},
		"no tests":     {testloop.Exercise{Solution: testloop.Texts{"": ""}}, sandbox.Invalid},
		"both":         {testloop.Exercise{Solution: testloop.Texts{"": ""}, Tests: testloop.Texts{"": ""}, Cases: []testloop.Case{{}}}, sandbox.Invalid},
		"outside":      {testloop.Exercise{Solution: testloop.Texts{"../a.py": ""}, Tests: testloop.Texts{"": ""}}, sandbox.Invalid},
		"tests beside": {testloop.Exercise{Solution: testloop.Texts{"": ""}, Tests: testloop.Texts{"/t.py": ""}}, sandbox.Invalid},
		"of shell":     {testloop.Exercise{Solution: testloop.Texts{"": ""}, Tests: testloop.Texts{"": ""}, Language: "shell"}, sandbox.Unsupported},
		"its memory":   {testloop.Exercise{Solution: testloop.Texts{"": ""}, Tests: testloop.Texts{"": ""}, Limits: sandbox.Limits{Memory: 1}}, sandbox.Invalid},
		"its time":     {testloop.Exercise{Solution: testloop.Texts{"": ""}, Tests: testloop.Texts{"": ""}, Timeout: -1}, sandbox.Invalid},
	} {
		if _, err := tt.e.Judge(t.Context(), nil, testloop.CaseSuite{}, testloop.Suite{}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
