package monitor

import (
	"fmt"
	"slices"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/caisson-dev/caisson/sandbox"
)

// Builtin returns the rules that hold where no configuration says otherwise.
func Builtin() []sandbox.AlertRule {
	const (
		long = sandbox.Duration(10 * time.Second)
		calm = sandbox.Duration(4 * time.Second)
	)
	return []sandbox.AlertRule{
		{Name: "cpu", When: "cpu > 80", Clear: "cpu < 70", For: long, Hold: calm, Severity: sandbox.Low},
		{Name: "memory", When: "memory > 90", Clear: "memory < 85", Hold: calm, Severity: sandbox.Medium},
		{Name: "processes", When: "processes > 90", Clear: "processes < 85", Hold: calm, Severity: sandbox.Medium},
		{Name: "workspace", When: "workspace > 90", Clear: "workspace < 85", Hold: calm, Severity: sandbox.Medium},
		{Name: "oom", When: "oom_kills > 0", Hold: long, Severity: sandbox.High},
		{Name: "throttled", When: "throttled > 50", Clear: "throttled < 40", For: long, Hold: calm, Severity: sandbox.Low},
		{Name: "overdue", When: "exec_overdue > 1", Severity: sandbox.High},
		{Name: "connections", When: "refused_connections >= 20", Clear: "refused_connections == 0", Severity: sandbox.High},
		{Name: "denials", When: "denials >= 5", Clear: "denials == 0", Severity: sandbox.High},
	}
}

// env is what an expression knows.
type env struct {
	sandbox.Figures
	Session  string `expr:"session"`
	Language string `expr:"language"`
	Execs    int    `expr:"execs"`
}

// RuleError says what is wrong with a rule. Line is the configuration's, 0 for a
// rule that stands in none.
type RuleError struct {
	Rule string
	Line int
	Err  error
}

// Error names the rule.
func (e *RuleError) Error() string { return fmt.Sprintf("rule %s: %v", e.Rule, e.Err) }

// Unwrap returns what is wrong.
func (e *RuleError) Unwrap() error { return e.Err }

// rule is one that was read.
type rule struct {
	sandbox.AlertRule
	when, clear *vm.Program // clear is nil for the opposite of when
}

// compile reads the built-in rules and those given over them. Its errors are
// [*RuleError], of kind Invalid.
func compile(given []sandbox.AlertRule) ([]*rule, error) {
	all := Builtin()
	for _, g := range given {
		i := slices.IndexFunc(all, func(r sandbox.AlertRule) bool { return r.Name == g.Name })
		if i < 0 {
			all = append(all, g)
			continue
		}
		all[i] = over(all[i], g)
	}
	var rules []*rule
	for _, r := range all {
		if r.Off {
			continue
		}
		c, err := read(r)
		if err != nil {
			return nil, err
		}
		rules = append(rules, c)
	}
	return rules, nil
}

// over is a rule with what was given in its place.
func over(r, g sandbox.AlertRule) sandbox.AlertRule {
	for field := range g.Given {
		switch field {
		case "when":
			r.When = g.When
			if _, both := g.Given["clear"]; !both {
				r.Clear = "" // it was the opposite of another condition
			}
		case "clear":
			r.Clear = g.Clear
		case "for":
			r.For = g.For
		case "hold":
			r.Hold = g.Hold
		case "severity":
			r.Severity = g.Severity
		case "labels":
			r.Labels = g.Labels
		case "action":
			r.Action = g.Action
		case "off":
			r.Off = g.Off
		}
	}
	r.Given = g.Given
	return r
}

// longest is how long a rule may wait.
const longest = sandbox.Duration(time.Hour)

// read checks one rule.
func read(r sandbox.AlertRule) (*rule, error) {
	bad := func(field, format string, args ...any) error {
		return &RuleError{Rule: r.Name, Line: r.LineOf(field), Err: sandbox.Errorf(sandbox.Invalid, format, args...)}
	}
	if r.Severity == 0 {
		r.Severity = sandbox.Medium
	}
	if r.Action == "" {
		r.Action = sandbox.ActNone
	}
	switch {
	case r.When == "":
		return nil, bad("when", "it has no condition: say when")
	case r.For < 0 || r.For > longest:
		return nil, bad("for", "for is %v, and can be 0s to 1h", r.For)
	case r.Hold < 0 || r.Hold > longest:
		return nil, bad("hold", "hold is %v, and can be 0s to 1h", r.Hold)
	}
	switch r.Action {
	case sandbox.ActNone, sandbox.ActStopExec, sandbox.ActPause, sandbox.ActStopSandbox:
	default:
		return nil, bad("action", "action is %q, and can be none, stop-exec, pause or stop-sandbox", r.Action)
	}
	c := &rule{AlertRule: r}
	var err error
	if c.when, err = condition(r.When); err != nil {
		return nil, bad("when", "when: %w", err)
	}
	if r.Clear != "" {
		if c.clear, err = condition(r.Clear); err != nil {
			return nil, bad("clear", "clear: %w", err)
		}
	}
	return c, nil
}

// mostNodes bounds an expression.
const mostNodes = 500

func condition(text string) (*vm.Program, error) {
	return expr.Compile(text, expr.Env(env{}), expr.AsBool(), expr.MaxNodes(mostNodes))
}

// holds evaluates a condition. One that cannot be evaluated does not hold.
func holds(p *vm.Program, e env) (bool, error) {
	v, err := expr.Run(p, e)
	if err != nil {
		return false, err
	}
	b, _ := v.(bool) // it was compiled as one
	return b, nil
}
