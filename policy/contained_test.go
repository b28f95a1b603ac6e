package policy_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// What a wall stops asks nobody where that wall stands, and keeps its level.
func TestContain(t *testing.T) {
	t.Parallel()
	p := load(t, policy.Config{})
	asks := p.Decide(t.Context(), netDoc(), policy.Request{})
	if asks.Verdict != sandbox.Ask {
		t.Fatalf("without a sandbox: %+v", asks)
	}
	for name, tt := range map[string]struct {
		walls []sandbox.Wall
		want  sandbox.Verdict
		by    sandbox.Wall
	}{
		"all":       {sandbox.Walls, sandbox.Allow, sandbox.WallNetwork},
		"this one":  {[]sandbox.Wall{sandbox.WallNetwork}, sandbox.Allow, sandbox.WallNetwork},
		"another":   {[]sandbox.Wall{sandbox.WallRoot, sandbox.WallLimits}, sandbox.Ask, ""},
		"none":      {nil, sandbox.Ask, ""},
		"not known": {[]sandbox.Wall{"a moat"}, sandbox.Ask, ""},
	} {
		d := p.Contain(t.Context(), asks, tt.walls)
		if d.Verdict != tt.want || d.Level != asks.Level || d.Findings[0].Contained != tt.by || d.Findings[0].Severity != asks.Findings[0].Severity {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if asks.Findings[0].Contained != "" || asks.Findings[0].Verdict != sandbox.Ask {
		t.Errorf("the decision that was handed over was altered: %+v", asks)
	}
	// One that no wall stops is left to ask, whatever stands beside it.
	both := asks
	both.Findings = append(slices.Clone(asks.Findings), sandbox.Finding{ID: "SBX-PER-0007", Severity: sandbox.High, Verdict: sandbox.Ask})
	if d := p.Contain(t.Context(), both, sandbox.Walls); d.Verdict != sandbox.Ask || d.Findings[0].Contained == "" {
		t.Errorf("beside another: %+v", d)
	}
}

// No wall lifts a denial, what is critical, or what was cut short.
func TestNotContained(t *testing.T) {
	t.Parallel()
	p := load(t, policy.Config{})
	if d := p.Contain(t.Context(), p.Decide(t.Context(), rmRoot(), policy.Request{}), sandbox.Walls); d.Verdict != sandbox.Deny {
		t.Errorf("the blacklist: %+v", d)
	}
	critical := sandbox.Decision{Verdict: sandbox.Ask, Level: sandbox.Critical, Findings: []sandbox.Finding{
		{ID: "SBX-NET-0001", Severity: sandbox.Critical, Verdict: sandbox.Ask},
	}}
	if d := p.Contain(t.Context(), critical, sandbox.Walls); d.Verdict != sandbox.Ask {
		t.Errorf("critical: %+v", d)
	}
	many := p.Decide(t.Context(), netDoc(), policy.Request{})
	for len(many.Findings) < 200 {
		many.Findings = append(many.Findings, many.Findings[0])
	}
	if d := p.Contain(t.Context(), many, sandbox.Walls); d.Verdict != sandbox.Ask {
		t.Errorf("more than a decision tells: %s", d.Verdict)
	}
	var none *policy.Policy
	if d := none.Contain(t.Context(), critical, sandbox.Walls); d.Verdict != sandbox.Ask {
		t.Errorf("without a policy: %+v", d)
	}
}

// An operator may have everything asked about, and no name passes that is none.
func TestContainedIsData(t *testing.T) {
	t.Parallel()
	settings, err := fs.ReadFile(policies.FS, "data/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ask := fstest.MapFS{"settings.yaml": {Data: []byte(strings.ReplaceAll(string(settings), "  contained: allow", "  contained: ask"))}}
	p := load(t, policy.Config{Data: ask})
	if d := p.Contain(t.Context(), p.Decide(t.Context(), netDoc(), policy.Request{}), sandbox.Walls); d.Verdict != sandbox.Ask {
		t.Errorf("contained: ask: %+v", d)
	}
	for name, file := range map[string]struct{ name, text string }{
		"wall":    {"contained.yaml", "contained: {a moat: [SBX-NET-0001]}\n"},
		"rule":    {"contained.yaml", "contained: {network none: [SBX-NONE-0001]}\n"},
		"setting": {"settings.yaml", strings.ReplaceAll(string(settings), "  contained: allow", "  contained: deny")},
	} {
		data := fstest.MapFS{file.name: {Data: []byte(file.text)}}
		if _, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, Data: data}); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
