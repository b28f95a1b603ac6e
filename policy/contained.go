package policy

import (
	"context"
	"slices"

	"github.com/caisson-dev/caisson/sandbox"
)

// Contain judges a decision about code again by the sandbox that it is to run in:
// what one of the walls stops is told, and no question. walls are those that are
// enforced there, not only asked for. It alters no level and lifts no denial, and
// a critical finding is never contained; which rules a wall contains stands in
// data/contained.yaml, and thresholds.contained turns all of it off.
func (p *Policy) Contain(_ context.Context, d sandbox.Decision, walls []sandbox.Wall) sandbox.Decision {
	if p == nil || p.snap.Load() == nil {
		return d
	}
	s := p.snap.Load()
	if d.Verdict != sandbox.Ask || s.settings.Thresholds.Contained == string(sandbox.Ask) || len(d.Findings) >= maxFindings {
		return d // what was left out of it would have to be looked at too
	}
	verdict := sandbox.Allow
	found := slices.Clone(d.Findings)
	for i := range found {
		f := &found[i]
		if wall := s.containing(f, walls); f.Verdict == sandbox.Ask && wall != "" {
			f.Contained, f.Verdict = wall, sandbox.Allow
		}
		verdict = sandbox.Stricter(verdict, f.Verdict)
	}
	d.Findings, d.Verdict = found, verdict
	return d
}

// containing is the wall that stops what a finding finds, or "".
func (s *snapshot) containing(f *sandbox.Finding, walls []sandbox.Wall) sandbox.Wall {
	if f.Severity >= sandbox.Critical {
		return ""
	}
	for _, w := range walls {
		if slices.Contains(s.settings.Contained[w], f.ID) {
			return w
		}
	}
	return ""
}

// Contain is [Policy.Contain], as Examine is [Policy.Examine].
func (d *Deferred) Contain(ctx context.Context, dec sandbox.Decision, walls []sandbox.Wall) sandbox.Decision {
	if dec.Verdict != sandbox.Ask {
		return dec
	}
	p, err := d.get(ctx)
	if err != nil {
		return refusal(d.revision, err.Error())
	}
	return p.Contain(ctx, dec, walls)
}
