package sandbox

import "time"

// Figures are what rules about sandboxes look at: a [Sample] beside the one
// before it. What has no limit is 0 % of it. Rates are those between the two.
type Figures struct {
	CPU        float64 `json:"cpu" expr:"cpu"`                 // % of its limit
	CPUMachine float64 `json:"cpu_machine" expr:"cpu_machine"` // % of all cores of its machine
	Throttled  float64 `json:"throttled" expr:"throttled"`     // % of the time that its CPU limit held it back
	Memory     float64 `json:"memory" expr:"memory"`           // % of its limit, working set
	Processes  float64 `json:"processes" expr:"processes"`     // % of its limit, without the agent's
	Workspace  float64 `json:"workspace" expr:"workspace"`     // % of its size
	Tmp        float64 `json:"tmp" expr:"tmp"`                 // % of the size of the other file systems in memory

	MemoryBytes     float64 `json:"memory_bytes" expr:"memory_bytes"`
	ProcessCount    float64 `json:"process_count" expr:"process_count"` // and threads, without the agent's
	OOMKills        float64 `json:"oom_kills" expr:"oom_kills"`         // since the sample before
	NetworkReceived float64 `json:"network_received" expr:"network_received"`
	NetworkSent     float64 `json:"network_sent" expr:"network_sent"` // as the one before, bytes a second
	BlockRead       float64 `json:"block_read" expr:"block_read"`
	BlockWritten    float64 `json:"block_written" expr:"block_written"`

	ExecSeconds float64 `json:"exec_seconds" expr:"exec_seconds"` // the oldest exec that runs has run so long
	ExecOverdue float64 `json:"exec_overdue" expr:"exec_overdue"` // so many seconds an exec has run beyond its timeout
	Denials     float64 `json:"denials" expr:"denials"`           // runs of its session that were refused within a minute

	RefusedConnections float64 `json:"refused_connections" expr:"refused_connections"` // within a minute, where its network is a list
}

// Each calls do for every figure, in a fixed order.
func (f *Figures) Each(do func(i int, v *float64)) {
	for i, v := range []*float64{
		&f.CPU, &f.CPUMachine, &f.Throttled, &f.Memory, &f.Processes, &f.Workspace, &f.Tmp, &f.MemoryBytes, &f.ProcessCount, &f.OOMKills,
		&f.NetworkReceived, &f.NetworkSent, &f.BlockRead, &f.BlockWritten, &f.ExecSeconds, &f.ExecOverdue, &f.Denials, &f.RefusedConnections,
	} {
		do(i, v)
	}
}

// LiveSandbox is a sandbox that a process uses, with the execs in it that the
// process follows, the oldest first.
type LiveSandbox struct {
	ID       ID
	Session  string // "" for a one-shot
	Owner    string // its session's, or who runs it; "" is the local user
	Labels   Labels // its session's, or its run's
	Language string
	Execs    []LiveExec
	Refused  int // connections within a minute
}

// LiveExec is an exec that runs.
type LiveExec struct {
	ID      ID
	Started time.Time
	Timeout time.Duration // 0 is none
}

// Reading is what one sandbox uses and has used, as it is kept: while it lives,
// and after.
type Reading struct {
	Sandbox  ID        `json:"sandbox"`
	Session  string    `json:"session,omitempty"`
	Owner    string    `json:"owner,omitempty"`  // its session's, or who runs it; "" is the local user
	Labels   Labels    `json:"labels,omitempty"` // its session's, or its run's
	Language string    `json:"language,omitempty"`
	Execs    []ID      `json:"execs,omitempty"` // that run
	First    time.Time `json:"first"`           // when it was sampled first
	Ended    time.Time `json:"ended,omitzero"`  // when it was gone; zero while it lives
	Samples  int       `json:"samples"`
	Sample   Sample    `json:"sample"` // the newest
	Now      Figures   `json:"now"`
	Peak     Figures   `json:"peak"` // the largest of each
	Mean     Figures   `json:"mean"`
}

// ReadingFilter selects readings, those of the newest sandboxes first. The zero
// value selects all of them.
type ReadingFilter struct {
	Live    bool      `json:"live,omitempty"` // only of sandboxes that live
	Since   time.Time `json:"since,omitzero"` // only those sampled later
	Session string    `json:"session,omitempty"`
	Owner   *string   `json:"owner,omitempty"`  // nil is everybody
	Labels  Labels    `json:"labels,omitempty"` // those that have them all
	After   ID        `json:"after,omitempty"`  // only those behind the one of this sandbox: a page's cursor is the last one of the one before
	Limit   int       `json:"limit,omitempty"`  // 0 is no limit
}
