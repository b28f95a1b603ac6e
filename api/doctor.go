package api

import "context"

// Doctor looks at what caisson stands on.
type Doctor interface {
	// Doctor examines the engine, the host and caisson's own parts, and says of
	// each whether it will do. What is wrong is a [Check], never an error: an
	// error is the context's, or that of a wire. It changes nothing.
	Doctor(ctx context.Context) ([]Check, error)
}

// Examined are the roles of caisson that a doctor tries out.
type Examined interface {
	Languages
	Housekeeping
}

// RuntimeInfo is a runtime, and whether it can be used here.
type RuntimeInfo struct {
	Name      string `json:"name"`
	Default   bool   `json:"default,omitempty"` // of who asks for none
	Available bool   `json:"available"`
	Engine    string `json:"engine,omitempty"`    // what makes its sandboxes, with its version
	Isolation string `json:"isolation,omitempty"` // "container", "jail", "none", "vm"
	// NotEnforced names what it holds nobody to, such as "memory".
	NotEnforced []string `json:"not_enforced,omitempty"`
	// Error says why it is not available, Hint what mends that.
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// CheckStatus says whether something will do.
type CheckStatus string

// The statuses.
const (
	CheckOK      CheckStatus = "ok"
	CheckWarning CheckStatus = "warning" // it works, with less safety, speed or room than it could
	CheckError   CheckStatus = "error"   // something that caisson is asked for will fail
)

// Check is one finding of [Doctor].
type Check struct {
	Name   string      `json:"name"` // stable, such as "engine" or "state_dir"
	Status CheckStatus `json:"status"`
	Detail string      `json:"detail"`
	// Mend is the one command or sentence that helps. It is "" for [CheckOK].
	Mend string `json:"mend,omitempty"`
}
