package sandbox

import "fmt"

// Verdict is what policy answers to "may this run". The zero value is no
// answer and must be treated as [Deny].
type Verdict string

// The verdicts, from the mildest to the strictest.
const (
	// Unjudged is the verdict of the gate that judges nothing. It may run.
	Unjudged Verdict = "unjudged"
	// Allow lets the run start.
	Allow Verdict = "allow"
	// Ask lets the run start once a person, or a program in their place, has
	// approved its digest.
	Ask Verdict = "ask"
	// Deny refuses it; no approval lifts that.
	Deny Verdict = "deny"
)

// Permits reports whether a run with this verdict may start without asking
// anybody. Only [Allow] and [Unjudged] do.
func (v Verdict) Permits() bool { return v == Allow || v == Unjudged }

func (v Verdict) rank() int {
	switch v {
	case Unjudged:
		return 0
	case Allow:
		return 1
	case Ask:
		return 2
	case Deny:
		return 3
	}
	return 3
}

// Stricter returns the stricter of two verdicts. One that is not known counts
// as [Deny].
func Stricter(a, b Verdict) Verdict {
	if b.rank() > a.rank() {
		return b
	}
	return a
}

// Level is how much harm a run could do, or how severe a finding is. The
// levels are ordered; the zero value is unset and ranks below [Safe].
type Level int

// The levels.
const (
	Safe Level = iota + 1
	Low
	Medium
	High
	Critical
)

var levelNames = [...]string{Safe: "safe", Low: "low", Medium: "medium", High: "high", Critical: "critical"}

// String is the level's name in lower case, and "" for the zero value.
func (l Level) String() string {
	if l < 0 || int(l) >= len(levelNames) {
		return ""
	}
	return levelNames[l]
}

// ParseLevel is the inverse of [Level.String]. Its error is [Invalid].
func ParseLevel(s string) (Level, error) {
	for l, n := range levelNames {
		if n == s && n != "" {
			return Level(l), nil
		}
	}
	return 0, Errorf(Invalid, "unknown level %q", s).WithHint("levels are safe, low, medium, high, critical")
}

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) {
	n := l.String()
	if n == "" {
		return nil, fmt.Errorf("level %d has no name", int(l))
	}
	return []byte(n), nil
}

// UnmarshalText reads a level's name.
func (l *Level) UnmarshalText(b []byte) error {
	p, err := ParseLevel(string(b))
	if err != nil {
		return err
	}
	*l = p
	return nil
}

// Decision is policy's answer about one run. The zero value refuses.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Level is the highest severity among the findings, [Safe] where there are
	// none, and unset where nothing was judged.
	Level    Level     `json:"level,omitzero"`
	Findings []Finding `json:"findings"`
	// PolicyRevision names the rule set and data that decided. It changes
	// whenever a rule or a datum does.
	PolicyRevision string `json:"policy_revision,omitempty"`
	// Approval says who approved what the verdict [Ask] asks about. nil: nobody.
	Approval *ApprovedBy `json:"approval,omitempty"`
	// Refused says why a run that was asked about may not start: nobody to ask,
	// a person's no, no answer in time.
	Refused string `json:"refused,omitempty"`
}

// Permits reports whether the run may start: by its verdict, or because what
// that asks about was approved.
func (d Decision) Permits() bool {
	return d.Verdict.Permits() || d.Verdict == Ask && d.Approval != nil
}

// Finding is one thing that a rule has to say about a run.
type Finding struct {
	ID       string `json:"id"`       // of the rule, stable, such as "SBX-SH-0001"
	Title    string `json:"title"`    // of the rule
	Severity Level  `json:"severity"` // of this finding, at least the rule's own
	// Category is the kind of capability: destructive, network, credentials,
	// persistence, execution, evasion, privilege, reconnaissance, resources,
	// surveillance, container, …
	Category string  `json:"category"`
	Verdict  Verdict `json:"verdict,omitempty"` // what this finding alone asks for
	// Contained is the limit of the sandbox that stops what was found, so that it
	// asks nobody. "" is none.
	Contained Wall   `json:"contained,omitempty"`
	File      string `json:"file,omitempty"` // "" is the run's own code
	// Line and Column are 1-based; Column counts bytes. 0 is "the whole text".
	Line      int `json:"line,omitempty"`
	Column    int `json:"column,omitempty"`
	EndLine   int `json:"end_line,omitempty"`
	EndColumn int `json:"end_column,omitempty"`
	// Message says what this code does, Remediation what to do instead.
	Message     string `json:"message"`
	Remediation string `json:"remediation,omitempty"`
	// Via is how the text came to be code, outermost first, such as
	// ["sudo", "sh -c"]. Empty for code that stands in the source as such.
	Via []string `json:"via,omitempty"`
}

// place says where in the program a finding is.
func (f Finding) place() string {
	switch {
	case f.Line > 0 && f.File != "":
		return fmt.Sprintf(" at %s:%d", f.File, f.Line)
	case f.Line > 0:
		return fmt.Sprintf(" at line %d", f.Line)
	case f.File != "":
		return " in " + f.File
	}
	return ""
}
