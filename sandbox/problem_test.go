package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// An error has one form for programs: four fields, always.
func TestProblem(t *testing.T) {
	t.Parallel()
	finding := sandbox.Finding{ID: "R", Message: "m", Remediation: "do less"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"with a hint": {
			fmt.Errorf("look: %w", sandbox.Errorf(sandbox.NotFound, "no session x").WithHint("list them")),
			`{"code":7,"kind":"not_found","message":"look: no session x","hint":"list them"}`,
		},
		"not classed": {errors.New("boom"), `{"code":7,"kind":"internal","message":"boom","hint":""}`},
		"canceled":    {fmt.Errorf("wait: %w", context.Canceled), `{"code":7,"kind":"canceled","message":"wait: context canceled","hint":""}`},
		"refused": {
			&sandbox.DeniedError{Decision: sandbox.Decision{Verdict: sandbox.Deny, Findings: []sandbox.Finding{finding}}},
			`{"code":7,"kind":"denied","message":"refused: verdict deny by rule R: m","hint":"do less"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := json.Marshal(sandbox.ProblemOf(c.err, 7))
			if err != nil || string(b) != c.want {
				t.Errorf("got %s, %v; want %s", b, err, c.want)
			}
			var read sandbox.Problem
			if err := json.Unmarshal(b, &read); err != nil {
				t.Fatal(err)
			}
			back := read.Err()
			if again, err := json.Marshal(sandbox.ProblemOf(back, 7)); err != nil || string(again) != c.want {
				t.Errorf("its error says %s, %v; want %s", again, err, c.want)
			}
			if sandbox.KindOf(back) != sandbox.KindOf(c.err) || errors.Is(back, context.Canceled) != errors.Is(c.err, context.Canceled) {
				t.Errorf("%v comes back as %v", c.err, back)
			}
		})
	}
}
