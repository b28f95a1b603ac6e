package sandbox

// AttachOptions say what is read of an exec's output.
type AttachOptions struct {
	// Stdout and Stderr are where to begin, in bytes from the exec's start.
	Stdout int64 `json:"stdout_offset,omitempty"`
	Stderr int64 `json:"stderr_offset,omitempty"`
	// Follow waits for more until the exec ends.
	Follow bool `json:"follow,omitempty"`
}

// Attached says how far an exec's output was read, and how the exec ended.
type Attached struct {
	// Stdout and Stderr are the offsets to go on from.
	Stdout int64     `json:"stdout_offset"`
	Stderr int64     `json:"stderr_offset"`
	Lost   Truncated `json:"lost"` // was not kept any more
	Ended  bool      `json:"ended"`
	// Exit and Usage are zero where it has not ended.
	Exit  Exit  `json:"exit,omitzero"`
	Usage Usage `json:"usage,omitzero"`
}

// Skipper is a writer of output that is told of bytes which were not kept any
// more, before it is given those behind them.
type Skipper interface{ Skip(n int64) }
