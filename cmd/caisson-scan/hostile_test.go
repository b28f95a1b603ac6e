package main

import (
	"testing"

	"github.com/caisson-dev/caisson/internal/hostile"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestHostileDecisions: texts that make the rules work are decided, and none is
// allowed. bench/policy says in what time.
func TestHostileDecisions(t *testing.T) {
	p := newPolicyWithin(t, 0)
	for _, text := range hostile.ForRules() {
		t.Run(text.Name, func(t *testing.T) {
			d := p.Judge(t.Context(), policy.Request{Language: string(text.Lang), Code: []byte(text.Code + "\n")})
			if d.Verdict == sandbox.Allow {
				t.Errorf("allowed: %+v", d.Findings)
			}
		})
	}
}
