package sandbox

// SessionStats is one reading of what a session uses.
type SessionStats struct {
	Session   string  `json:"session"`
	Execs     int     `json:"execs"`   // that are recorded: those that ended some time ago are not
	Running   int     `json:"running"` // of these
	Sandboxes []Stats `json:"sandboxes"`
}

// Stats is one reading of what one sandbox of a session uses.
type Stats struct {
	ID       ID            `json:"sandbox"`
	Language string        `json:"language"`
	State    State         `json:"state"`
	Execs    int           `json:"execs"` // that are recorded
	Running  int           `json:"running"`
	Sample   Sample        `json:"sample"` // zero where nothing could be read
	Methods  SampleMethods `json:"methods,omitzero"`
}

// SampleMethods say who took the figures of a [Sample]: "agent" reads the
// sandbox's cgroup, /proc and file systems from inside, "engine" is the runtime's
// own. "" is nobody.
type SampleMethods struct {
	CPU       string `json:"cpu,omitempty"`
	Memory    string `json:"memory,omitempty"`
	Processes string `json:"processes,omitempty"`
	Network   string `json:"network,omitempty"`
	Block     string `json:"block,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Tmp       string `json:"tmp,omitempty"`
}
