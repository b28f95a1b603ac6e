package policy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/caisson-dev/caisson/sandbox"
)

// Rule is one rule as its annotation describes it.
type Rule = sandbox.Rule

// Example is a program that a rule does or does not speak of.
type Example = sandbox.RuleExample

// catalogue reads the annotations of all rules named findings, and the
// blacklist's entries.
func catalogue(annotations *ast.AnnotationSet, data map[string]any) (map[string]Rule, error) {
	rules := map[string]Rule{}
	add := func(r Rule, where string) error {
		switch {
		case r.ID == "" || r.Title == "" || r.Category == "" || r.Remediation == "" || r.Severity == 0:
			return sandbox.Errorf(sandbox.Invalid, "%s: rule %q lacks id, title, severity, category or remediation", where, r.ID)
		case rules[r.ID].ID != "":
			return sandbox.Errorf(sandbox.Invalid, "%s: rule id %s is taken", where, r.ID)
		}
		rules[r.ID] = r
		return nil
	}
	for _, a := range annotations.Flatten() {
		rule := a.GetRule()
		if rule == nil || a.Annotations == nil || rule.Head.Name.String() != "findings" && !strings.HasSuffix(rule.Head.Ref().String(), "findings") {
			continue
		}
		r, err := ruleOf(a.Annotations)
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "%s: %w", rule.Location, err)
		}
		if r.ID == "" {
			continue
		}
		if bundle := bundleOf(rule.Module); bundle != "" {
			r.ID = userPrefix + bundle + "/" + r.ID
		}
		r.File, r.Line = rule.Location.File, rule.Location.Row
		if err := add(r, rule.Location.String()); err != nil {
			return nil, err
		}
	}
	var list struct {
		Blacklist []Rule `json:"blacklist"`
		Lookups   []Rule `json:"lookups"`
	}
	if err := convert(data, &list); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "blacklist: %w", err)
	}
	for _, r := range list.Blacklist {
		r.Deny, r.File = true, "blacklist.yaml"
		if r.Severity == 0 {
			r.Severity = sandbox.Critical
		}
		if err := add(r, "blacklist"); err != nil {
			return nil, err
		}
	}
	for _, r := range list.Lookups {
		r.File = "lookups.yaml"
		if err := add(r, "lookups"); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

// bundleOf is the bundle that a module belongs to, "" of the shipped ones.
func bundleOf(m *ast.Module) string {
	path := m.Package.Path
	if len(path) != 4 || !path.HasPrefix(userPackages) {
		return ""
	}
	name, _ := path[3].Value.(ast.String)
	return string(name)
}

// userPackages is where users' bundles have their packages.
var userPackages = ast.MustParseRef("data.caisson.user")

func ruleOf(a *ast.Annotations) (Rule, error) {
	var r Rule
	if err := convert(a.Custom, &r); err != nil {
		return r, err
	}
	r.Title, r.Description = a.Title, a.Description
	return r, nil
}

func convert(from, into any) error {
	j, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	return json.Unmarshal(j, into)
}

// catalogued gives the catalogue, which is read when it is first needed: a
// program that nothing is found in needs none.
func (s *snapshot) catalogued() (map[string]Rule, error) {
	s.once.Do(func() { s.rules, s.rulesErr = s.readCatalogue() })
	return s.rules, s.rulesErr
}

func (s *snapshot) readCatalogue() (map[string]Rule, error) {
	if s.kept != nil {
		var rules map[string]Rule
		if err := json.Unmarshal(s.kept, &rules); err != nil {
			return nil, sandbox.Errorf(sandbox.Internal, "read the rules' catalogue: %w", err)
		}
		return rules, nil
	}
	return s.parseCatalogue()
}

// wholeCatalogue has the rules' examples too, which are not kept.
func (s *snapshot) wholeCatalogue() (map[string]Rule, error) {
	if s.kept != nil {
		return s.parseCatalogue()
	}
	return s.catalogued()
}

func (s *snapshot) parseCatalogue() (map[string]Rule, error) {
	texts, err := s.texts, error(nil)
	if texts == nil {
		if texts, err = allSources(s.from, s.users, nil); err != nil {
			return nil, err
		}
	}
	modules, err := parse(texts, s.caps, true)
	if err != nil {
		return nil, err
	}
	list := make([]*ast.Module, 0, len(modules))
	for _, key := range sortedKeys(modules) {
		list = append(list, modules[key])
	}
	annotations, errs := ast.BuildAnnotationSet(list)
	if len(errs) > 0 {
		return nil, sandbox.Errorf(sandbox.Invalid, "read the rules' annotations: %w", errs)
	}
	rules, err := catalogue(annotations, s.data)
	if err != nil {
		return nil, err
	}
	for i, w := range s.waivers {
		// What a user's rules are called is not known before they find something.
		if _, ok := rules[w.Rule]; !ok && !strings.HasPrefix(w.Rule, userPrefix) {
			return nil, sandbox.Errorf(sandbox.Invalid, "waiver %d: there is no rule %s", i+1, w.Rule).
				WithHint("see: caisson policy rules")
		}
	}
	for wall, ids := range s.settings.Contained {
		for _, id := range ids {
			if _, ok := rules[id]; !ok && !strings.HasPrefix(id, userPrefix) {
				return nil, sandbox.Errorf(sandbox.Invalid, "contained: %s: there is no rule %s", wall, id).WithHint("see: caisson policy rules")
			}
		}
	}
	return rules, s.overrideSeverities(rules)
}

func (s *snapshot) overrideSeverities(rules map[string]Rule) error {
	for id, name := range s.settings.Severity {
		r, ok := rules[id]
		if !ok {
			return sandbox.Errorf(sandbox.Invalid, "settings: severity of unknown rule %s", id)
		}
		l, err := sandbox.ParseLevel(name)
		if err != nil {
			return sandbox.Errorf(sandbox.Invalid, "settings: severity of %s: %w", id, err)
		}
		if !r.Deny {
			r.Severity = l
			rules[id] = r
		}
	}
	return nil
}
