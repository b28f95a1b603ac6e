package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/tables"
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
		if _, wrong := p.Examples(t.Context(), r); len(wrong) > 0 {
			t.Error(strings.Join(wrong, "\n"))
		}
	}
}

// TestWorkedRules holds the users' rules that the documentation shows to their
// tests and examples, and the text that it shows to the rules.
func TestWorkedRules(t *testing.T) {
	passed, failures, err := newPolicy(t).Test(t.Context(), "../../docs/rules/team")
	if err != nil || len(failures) > 0 || passed < 10 {
		t.Fatalf("%d passed, failed: %s (%v)", passed, failures, err)
	}
	doc, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("../../docs/rules/team/team.rego")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(doc), "```rego\n")
	shown, _, _ = strings.Cut(shown, "```")
	if shown == "" || !strings.Contains(string(rules), shown) {
		t.Errorf("the documentation shows another rule than docs/rules/team has:\n%s", shown)
	}
}
