package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// maxFindings is how many findings a decision carries; the strictest are kept.
const maxFindings = 200

// finding makes Go's of what a rule said: {id, at, msg}, where at is the
// number of a place, and severity where it
// is more than the rule's own. A user's rule says title, category and
// remediation too, since no catalogue has them.
func (s *snapshot) finding(e any, places []*facts.At, rules map[string]Rule) (sandbox.Finding, error) {
	m, ok := e.(map[string]any)
	if !ok {
		return sandbox.Finding{}, fmt.Errorf("a finding is not an object: %T", e)
	}
	id, _ := m["id"].(string)
	f := sandbox.Finding{ID: id, Message: text(m["msg"], 600)}
	if said, ok := m["severity"].(string); ok {
		l, err := sandbox.ParseLevel(said)
		if err != nil {
			return f, fmt.Errorf("rule %s: %w", id, err)
		}
		f.Severity = l
	}
	if n := integer(m["at"]); m["at"] != nil && n >= 0 && n < len(places) {
		at := places[n]
		f.Line, f.Column, f.EndLine, f.EndColumn = at.Line, at.Col, at.EndLine, at.EndCol
		for _, v := range at.Via {
			f.Via = append(f.Via, text(v, 80))
		}
	}
	if f.Line == 0 {
		f.Line = integer(m["line"]) // of what has no facts
	}
	if bundle, ok := m["user"].(string); ok {
		return s.userFinding(f, bundle, m, rules)
	}
	r, ok := rules[id]
	if !ok {
		return f, fmt.Errorf("a rule gave the id %q, which no annotation has", id)
	}
	f.Title, f.Category, f.Remediation = r.Title, r.Category, r.Remediation
	s.rate(&f, r)
	if f.Message == "" {
		f.Message = r.Title
	}
	return f, nil
}

// rate gives a finding its severity, by its rule and the settings, and the
// verdict of that.
func (s *snapshot) rate(f *sandbox.Finding, r Rule) {
	f.Severity = max(f.Severity, r.Severity)
	if over, ok := s.settings.Severity[f.ID]; ok && !r.Deny {
		f.Severity, _ = sandbox.ParseLevel(over)
	}
	f.Verdict = s.verdict(f.Severity, r.Deny)
}

// userPrefix begins the ids of what users' rules find.
const userPrefix = "user/"

// userFinding is a finding of a user's rule. What it does not say itself, the
// rule's annotation says, where it has one.
func (s *snapshot) userFinding(f sandbox.Finding, bundle string, m map[string]any, rules map[string]Rule) (sandbox.Finding, error) {
	f.ID = userPrefix + bundle + "/" + f.ID
	r := rules[f.ID]
	f.Title = cmp.Or(text(m["title"], 200), r.Title)
	f.Category = cmp.Or(text(m["category"], 40), r.Category)
	f.Remediation = cmp.Or(text(m["remediation"], 400), r.Remediation)
	f.Message = cmp.Or(f.Message, f.Title)
	s.rate(&f, r)
	if f.Severity == 0 {
		return f, fmt.Errorf("user rule %s: a finding without severity: %s", f.ID, severityMend)
	}
	if v, _ := m["verdict"].(string); v == string(sandbox.Ask) || v == string(sandbox.Deny) {
		f.Verdict = sandbox.Stricter(f.Verdict, sandbox.Verdict(v))
	}
	return f, nil
}

func text(v any, most int) string {
	s, _ := v.(string)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func integer(v any) int {
	switch n := v.(type) {
	case json.Number:
		i, _ := n.Int64()
		return int(i)
	case float64:
		return int(n)
	case int:
		return n
	}
	return 0
}

func (s *snapshot) verdict(l sandbox.Level, deny bool) sandbox.Verdict {
	switch {
	case deny, s.settings.Deny > 0 && l >= s.settings.Deny:
		return sandbox.Deny
	case l >= s.settings.Ask:
		return sandbox.Ask
	}
	return sandbox.Allow
}

// sum makes a decision of findings: the strictest verdict, the highest level.
func (s *snapshot) sum(found []sandbox.Finding) sandbox.Decision {
	slices.SortFunc(found, func(a, b sandbox.Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
	})
	found = slices.CompactFunc(found, func(a, b sandbox.Finding) bool {
		return a.ID == b.ID && a.Line == b.Line && a.Column == b.Column && a.Message == b.Message
	})
	d := sandbox.Decision{Verdict: sandbox.Allow, Level: sandbox.Safe, PolicyRevision: s.revision, Findings: found}
	for _, f := range found {
		d.Verdict = sandbox.Stricter(d.Verdict, f.Verdict)
		d.Level = max(d.Level, f.Severity)
	}
	if len(found) > maxFindings {
		d.Findings = found[:maxFindings]
	}
	return d
}
