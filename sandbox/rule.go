package sandbox

// Rule is one rule of the policy, as it is listed and explained.
type Rule struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	// Severity of its findings, at least.
	Severity    Level    `json:"severity"`
	Category    string   `json:"category"`
	CWE         []string `json:"cwe,omitempty"`
	Attack      []string `json:"attack,omitempty"` // ATT&CK techniques
	Remediation string   `json:"remediation"`
	// Match and NotMatch are examples; tests run them.
	Match    []RuleExample `json:"match,omitempty"`
	NotMatch []RuleExample `json:"not_match,omitempty"`
	// Deny: no approval lifts its findings (the blacklist).
	Deny bool `json:"deny,omitempty"`
	// File and Line say where it stands.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// RuleExample is a program that a rule does, or does not, speak of.
type RuleExample struct {
	Language string `json:"language"`
	Code     string `json:"code"`
}
