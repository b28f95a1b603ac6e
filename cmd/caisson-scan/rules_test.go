package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/sandbox"
)

// inProcess scans without a process of its own.
type inProcess struct {
	t     *facts.Tables
	langs facts.Dispatcher
}

func (s inProcess) Scan(ctx context.Context, r facts.Request) (*facts.Document, error) {
	return facts.Scan(ctx, s.t, s.langs, facts.Limits{}, r.Lang, r.Code), nil
}

// newPolicy judges as shipped, but for the time that it has: what a text is
// judged to be must not depend on what else the machine does.
func newPolicy(t testing.TB) *policy.Policy {
	t.Helper()
	return newPolicyWithin(t, time.Minute)
}

// newPolicyWithin has that time for a scan, the shipped one where it is 0.
func newPolicyWithin(t testing.TB, scan time.Duration) *policy.Policy {
	t.Helper()
	tb, err := tables.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, Scanner: inProcess{tb, extractors(tb)}, ScanTimeout: scan, Timeout: scan})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRuleExamples runs every example of every rule through the real
// extractors: what a rule says that it matches, it matches.
func TestRuleExamples(t *testing.T) {
	p := newPolicy(t)
	for _, r := range p.Rules() {
		speaks := func(e policy.Example) (bool, sandbox.Decision) {
			d := p.Judge(t.Context(), policy.Request{Language: e.Language, Code: []byte(e.Code)})
			return slices.ContainsFunc(d.Findings, func(f sandbox.Finding) bool { return f.ID == r.ID }), d
		}
		for _, e := range r.Match {
			if ok, d := speaks(e); !ok {
				t.Errorf("%s does not speak of %s %q: %+v", r.ID, e.Language, e.Code, d.Findings)
			}
		}
		for _, e := range r.NotMatch {
			if ok, _ := speaks(e); ok {
				t.Errorf("%s speaks of %s %q", r.ID, e.Language, e.Code)
			}
		}
	}
}
