package policy_test

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
)

// Who judges for a sandbox is told whether a rule looks at it, without loading any.
func TestLooksAtPlan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"": false, "input.meta.bytes > 9": false, "input.ctx.plan.session != \"\"": true} {
		c := policy.Config{Rules: policies.FS}
		if text != "" {
			rule := "package caisson.user.a\n\nfindings contains {\"id\": \"A\", \"severity\": \"low\"} if " + text + "\n"
			c.User = map[string]fs.FS{"a": fstest.MapFS{"a.rego": {Data: []byte(rule)}}}
		}
		d, err := policy.Defer(c, func(context.Context) (*policy.Policy, error) { t.Error("loaded"); return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		if got := d.LooksAtPlan(); got != want {
			t.Errorf("%q: %t", text, got)
		}
		if got := load(t, c).LooksAtPlan(); got != want {
			t.Errorf("%q: %t, loaded", text, got)
		}
	}
}
