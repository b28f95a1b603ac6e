package api

import "context"

// Doctor looks at what caisson stands on.
type Doctor interface {
	// Doctor examines the engine, the host and caisson's own parts, and says of
	// each whether it will do. What is wrong is a [Check], never an error: an
	// error is the context's, or that of a wire. It changes nothing.
	Doctor(ctx context.Context) ([]Check, error)
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
