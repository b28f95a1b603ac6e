package policy_test

import (
	"testing"
	"time"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// The part of the rules that judges sandboxes says what all of them say.
func TestPlansAgree(t *testing.T) {
	t.Parallel()
	start := time.Now()
	part, err := policy.Load(t.Context(), policy.Config{Rules: policies.Plans})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("prepared in %s", time.Since(start))
	whole := load(t, policy.Config{})
	for name, about := range map[string]map[string]any{
		"privileged": {"HostConfig": map[string]any{"Privileged": true}},
		"a socket":   {"HostConfig": map[string]any{"Binds": []any{"/var/run/docker.sock:/x"}}},
		"nothing":    {},
	} {
		about := map[string]any{"container": about}
		a, b := part.DecideContext(t.Context(), "", about), whole.DecideContext(t.Context(), "", about)
		if a.Verdict != b.Verdict || len(a.Findings) != len(b.Findings) {
			t.Errorf("%s: %s with %d findings, and %s with %d", name, a.Verdict, len(a.Findings), b.Verdict, len(b.Findings))
		}
		if name != "nothing" && a.Verdict != sandbox.Deny {
			t.Errorf("%s: %s", name, a.Verdict)
		}
	}
}
