package sandbox

import "time"

// AlertRule says what is worth an alert. In configuration, a zero field of a rule
// that is built in is as it was.
type AlertRule struct {
	Name string `json:"name"`
	// When is an expression over [Figures]; the alert fires once it held for For.
	When string   `json:"when"`
	For  Duration `json:"for_ms"`
	// Clear is an expression; the alert resolves once it held for Hold. "" is the
	// opposite of When.
	Clear    string            `json:"clear,omitempty"`
	Hold     Duration          `json:"hold_ms"`
	Severity Level             `json:"severity"`
	Labels   map[string]string `json:"labels,omitempty"`
	Action   AlertAction       `json:"action"`
	Off      bool              `json:"-"` // it is not looked at
	// Given names the fields that a configuration gave, also those with a zero
	// value, and Line is where: see [AlertRule.LineOf].
	Given map[string]int `json:"-"`
}

// LineOf is the line of a configuration that a field stands in, 0 where it
// stands in none.
func (r AlertRule) LineOf(field string) int {
	if line, ok := r.Given[field]; ok {
		return line
	}
	return r.Given[""] // the rule's own
}

// AlertAction is what is done when an alert fires.
type AlertAction string

// The actions. The zero value is [ActNone].
const (
	ActNone        AlertAction = "none"
	ActStopExec    AlertAction = "stop-exec"    // what runs in the sandbox is canceled
	ActPause       AlertAction = "pause"        // the sandbox is frozen
	ActStopSandbox AlertAction = "stop-sandbox" // what runs is canceled, and the sandbox destroyed
)

// Alert is what a rule made of the samples of one sandbox: one for each rule,
// sandbox and episode, whoever samples it.
type Alert struct {
	ID       ID                `json:"id"`
	Rule     string            `json:"rule"`
	When     string            `json:"when"`
	Severity Level             `json:"severity"`
	Labels   map[string]string `json:"labels,omitempty"`
	// Sandbox is "" where a session has none: runs of it were refused.
	Sandbox  ID        `json:"sandbox,omitempty"`
	Session  string    `json:"session,omitempty"`
	Owner    string    `json:"owner,omitempty"` // its sandbox's; "" is the local user
	Language string    `json:"language,omitempty"`
	Exec     ID        `json:"exec,omitempty"` // that ran, the oldest
	Fired    time.Time `json:"fired"`
	Resolved time.Time `json:"resolved,omitzero"` // zero while it fires
	Why      string    `json:"why,omitempty"`     // it was resolved, where that is not that its rule was clear
	Figures  Figures   `json:"figures"`           // that completed it
	Sample   Sample    `json:"sample"`

	Action AlertAction `json:"action"`
}

// AlertFilter selects alerts, the newest first. The zero value selects all of
// them.
type AlertFilter struct {
	Firing  bool    `json:"firing,omitempty"` // only those that are not resolved
	Session string  `json:"session,omitempty"`
	Rule    string  `json:"rule,omitempty"`
	Owner   *string `json:"owner,omitempty"`  // nil is everybody
	Labels  Labels  `json:"labels,omitempty"` // those whose rule has them all
	After   ID      `json:"after,omitempty"`  // only those behind this one: a page's cursor is the last id of the one before
	Limit   int     `json:"limit,omitempty"`  // 0 is no limit
}

// AlertNews is an alert that has just fired or was resolved.
type AlertNews struct {
	Alert
	// Lost counts news before this one that the subscriber was too slow for; one
	// without an ID says only that.
	Lost int `json:"lost,omitempty"`
}

// Letter is something to be delivered to a receiver outside, kept until that has
// taken it or it is too old.
type Letter struct {
	ID       int64     `json:"id"` // of the outbox; 0 before it is posted
	To       string    `json:"to"` // the receiver's name
	Body     []byte    `json:"body"`
	Posted   time.Time `json:"posted"`
	Attempts int       `json:"attempts"` // that failed
}

// Reply is what a server answered to a letter.
type Reply struct {
	From   string // the server's name
	Status int    // as HTTP has it
	Body   []byte // nil where it is too long
	// Failed says, in place of all that, why no attempt can reach the server.
	Failed error
}

// LetterRetry puts a letter off after an attempt that failed.
type LetterRetry struct {
	ID   int64
	Next time.Time // not before then
}
