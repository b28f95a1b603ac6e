package policy

import (
	"slices"
	"strings"
)

// LooksAtPlan reports whether a rule may look at input.ctx.plan, which is a
// [sandbox.Surroundings]: a text has then to be judged anew for each sandbox. None of
// the shipped rules does.
func (p *Policy) LooksAtPlan() bool { return p != nil && p.c.looksAtPlan() }

// LooksAtPlan is [Policy.LooksAtPlan]. It loads nothing.
func (d *Deferred) LooksAtPlan() bool { return d.c.looksAtPlan() }

func (c *Config) looksAtPlan() bool {
	for name, bundle := range c.User {
		files, err := userSources(bundle, name)
		if err != nil || slices.ContainsFunc(files, func(f source) bool { return strings.Contains(f.text, "plan") }) {
			return true
		}
	}
	return false
}
