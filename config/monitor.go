package config

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/sandbox"
)

// monitor reads how sandboxes are watched. What the conditions of rules say is
// checked by who evaluates them, and told by [File.Bad].
func (f *File) monitor(every, rules *yaml.Node) error {
	if every.Kind != 0 {
		d, err := sandbox.ParseDuration(every.Value)
		if err != nil || every.Kind != yaml.ScalarNode || d <= 0 {
			return f.bad(every.Line, "every is %q, and takes a time such as 2s", every.Value)
		}
		f.Monitor.Every = d
	}
	if rules.Kind == 0 {
		return nil
	}
	if rules.Kind != yaml.MappingNode {
		return f.bad(rules.Line, "rules is not a list of names and rules")
	}
	seen := map[string]bool{}
	for i := 0; i < len(rules.Content); i += 2 {
		key, v := rules.Content[i], rules.Content[i+1]
		if seen[key.Value] {
			return f.bad(key.Line, "rule %s stands twice", key.Value)
		}
		seen[key.Value] = true
		r, err := f.rule(key, v)
		if err != nil {
			return err
		}
		f.Monitor.Rules = append(f.Monitor.Rules, r)
	}
	return nil
}

// fields of a rule: each takes in a value.
var fields = map[string]func(r *sandbox.AlertRule, v *yaml.Node) error{
	"when":  func(r *sandbox.AlertRule, v *yaml.Node) error { return v.Decode(&r.When) },
	"clear": func(r *sandbox.AlertRule, v *yaml.Node) error { return v.Decode(&r.Clear) },
	"for":   func(r *sandbox.AlertRule, v *yaml.Node) error { return duration(&r.For, v) },
	"hold":  func(r *sandbox.AlertRule, v *yaml.Node) error { return duration(&r.Hold, v) },
	"severity": func(r *sandbox.AlertRule, v *yaml.Node) (err error) {
		r.Severity, err = sandbox.ParseLevel(v.Value)
		return err
	},
	"labels": func(r *sandbox.AlertRule, v *yaml.Node) error { return v.Decode(&r.Labels) },
	"action": func(r *sandbox.AlertRule, v *yaml.Node) error { return v.Decode(&r.Action) },
	"off":    func(r *sandbox.AlertRule, v *yaml.Node) error { return v.Decode(&r.Off) },
}

func duration(d *sandbox.Duration, v *yaml.Node) error {
	if v.Kind != yaml.ScalarNode {
		return fmt.Errorf("it takes a time such as 10s")
	}
	return d.Set(v.Value)
}

// rule reads one rule.
func (f *File) rule(key, v *yaml.Node) (sandbox.AlertRule, error) {
	r := sandbox.AlertRule{Name: key.Value, Given: map[string]int{"": key.Line}}
	if v.Kind != yaml.MappingNode {
		return r, f.bad(key.Line, "rule %s is not a list of names and values", key.Value)
	}
	for i := 0; i < len(v.Content); i += 2 {
		name, value := v.Content[i], v.Content[i+1]
		read := fields[name.Value]
		if read == nil {
			return r, f.bad(name.Line, "rule %s has no field %q: it can have when, clear, for, hold, severity, labels, action and off", r.Name, name.Value)
		}
		if r.Given[name.Value] != 0 {
			return r, f.bad(name.Line, "%s stands twice", name.Value)
		}
		if err := read(&r, value); err != nil {
			return r, f.bad(name.Line, "rule %s: %s: %w", r.Name, name.Value, err)
		}
		r.Given[name.Value] = name.Line
	}
	return r, nil
}
