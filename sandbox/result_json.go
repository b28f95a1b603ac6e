package sandbox

import (
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// resultJSON is a Result on the wire: sizes in bytes, times in milliseconds,
// and bytes that are not UTF-8 in base64 under a name of their own.
type resultJSON struct {
	ExecID       ID             `json:"exec_id"`
	Session      string         `json:"session"`
	Language     string         `json:"language"`
	ExitCode     int            `json:"exit_code"`
	ExitReason   string         `json:"exit_reason"`
	Signal       string         `json:"signal"`
	Cause        string         `json:"cause,omitempty"`
	Events       []string       `json:"events,omitempty"`
	Shared       bool           `json:"shared,omitempty"`
	Replaced     bool           `json:"replaced,omitempty"`
	Stdout       *string        `json:"stdout,omitempty"`
	StdoutBase64 *string        `json:"stdout_base64,omitempty"`
	Stderr       *string        `json:"stderr,omitempty"`
	StderrBase64 *string        `json:"stderr_base64,omitempty"`
	Truncated    Truncated      `json:"truncated"`
	DurationMS   int64          `json:"duration_ms"`
	TimedOut     bool           `json:"timed_out"`
	OOMKilled    bool           `json:"oom_killed"`
	Usage        Usage          `json:"usage"`
	Changes      []FileChange   `json:"changes"`
	UnknownWhy   string         `json:"changes_error,omitempty"`
	Artifacts    []Artifact     `json:"artifacts,omitempty"`
	LeftWhy      string         `json:"artifacts_error,omitempty"`
	Decision     Decision       `json:"decision"`
	Sandbox      ID             `json:"sandbox,omitempty"`
	Image        string         `json:"image,omitempty"`
	Runtime      string         `json:"runtime,omitempty"`
	NotEnforced  []string       `json:"not_enforced,omitempty"`
	Warm         bool           `json:"warm,omitempty"`
	Compiled     *Compiled      `json:"compiled,omitempty"`
	Shell        *ShellState    `json:"shell,omitempty"`
	Connections  []Connection   `json:"connections,omitempty"`
	LeftOut      int            `json:"connections_left_out,omitempty"`
	Calls        []ToolCall     `json:"calls,omitempty"`
	CallsLeftOut int            `json:"calls_left_out,omitempty"`
	Program      *ProgramResult `json:"program,omitempty"`
	Starts       []Start        `json:"starts,omitempty"`
	StartsLeft   int            `json:"starts_left_out,omitempty"`
	Unjudged     int            `json:"starts_unjudged,omitempty"`
}

type usageJSON struct {
	CPUMS     int64   `json:"cpu_ms"`
	WallMS    int64   `json:"wall_ms"`
	Memory    Bytes   `json:"peak_memory_bytes"`
	Processes int     `json:"processes_peak"`
	Methods   Methods `json:"methods"`
}

// MarshalJSON writes times in milliseconds.
func (u Usage) MarshalJSON() ([]byte, error) {
	return json.Marshal(usageJSON{
		CPUMS: u.CPU.Milliseconds(), WallMS: u.Wall.Milliseconds(), Memory: u.PeakMemory, Processes: u.PeakProcesses, Methods: u.Methods,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (u *Usage) UnmarshalJSON(b []byte) error {
	var j usageJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*u = Usage{
		CPU: time.Duration(j.CPUMS) * time.Millisecond, Wall: time.Duration(j.WallMS) * time.Millisecond,
		PeakMemory: j.Memory, PeakProcesses: j.Processes, Methods: j.Methods,
	}
	return nil
}

// MarshalJSON writes the form that the command line and the HTTP API share.
func (r Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{
		ExecID: r.ExecID, Session: r.Session, Language: r.Language, ExitCode: r.Code, ExitReason: string(r.Reason),
		Signal: r.Signal, Cause: r.Cause, Events: r.Events, Shared: r.Shared, Replaced: r.Replaced, Truncated: r.Truncated,
		DurationMS: r.Duration.Milliseconds(), TimedOut: r.TimedOut(), OOMKilled: r.OOMKilled(), Decision: r.Decision,
		Sandbox: r.Sandbox, Image: r.Image, Runtime: r.Runtime, NotEnforced: r.NotEnforced, Artifacts: r.Artifacts, LeftWhy: r.ArtifactsError,
		UnknownWhy: r.ChangesError, Usage: r.Usage, Compiled: r.Compiled, Warm: r.Warm, Shell: r.Shell, Connections: r.Connections, LeftOut: r.ConnectionsLeftOut,
		Calls: r.Calls, CallsLeftOut: r.CallsLeftOut, Program: r.Program,
		Starts: r.Starts, StartsLeft: r.StartsLeftOut, Unjudged: r.StartsUnjudged,
	}
	if j.Changes = r.Changes; j.Changes == nil {
		j.Changes = []FileChange{}
	}
	if j.Decision.Findings == nil {
		j.Decision.Findings = []Finding{}
	}
	j.Stdout, j.StdoutBase64 = textOrBase64(r.Stdout)
	j.Stderr, j.StderrBase64 = textOrBase64(r.Stderr)
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Result) UnmarshalJSON(b []byte) error {
	var j resultJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	stdout, err := fromTextOrBase64(j.Stdout, j.StdoutBase64)
	if err != nil {
		return err
	}
	stderr, err := fromTextOrBase64(j.Stderr, j.StderrBase64)
	if err != nil {
		return err
	}
	*r = Result{
		ExecID: j.ExecID, Session: j.Session, Language: j.Language, Replaced: j.Replaced, Stdout: stdout, Stderr: stderr,
		Exit: Exit{
			Code: j.ExitCode, Reason: ExitReason(j.ExitReason), Signal: j.Signal, Cause: j.Cause, Events: j.Events, Shared: j.Shared,
		},
		Truncated: j.Truncated, Duration: time.Duration(j.DurationMS) * time.Millisecond, Decision: j.Decision,
		Sandbox: j.Sandbox, Image: j.Image, Runtime: j.Runtime, NotEnforced: j.NotEnforced, Changes: j.Changes, ChangesError: j.UnknownWhy,
		Artifacts: j.Artifacts, ArtifactsError: j.LeftWhy, Usage: j.Usage, Compiled: j.Compiled, Warm: j.Warm, Shell: j.Shell, Connections: j.Connections, ConnectionsLeftOut: j.LeftOut,
		Calls: j.Calls, CallsLeftOut: j.CallsLeftOut, Program: j.Program,
		Starts: j.Starts, StartsLeftOut: j.StartsLeft, StartsUnjudged: j.Unjudged,
	}
	return nil
}

func textOrBase64(b []byte) (text, encoded *string) {
	if utf8.Valid(b) {
		s := string(b)
		return &s, nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	return nil, &s
}

func fromTextOrBase64(text, encoded *string) ([]byte, error) {
	switch {
	case encoded != nil:
		return base64.StdEncoding.DecodeString(*encoded)
	case text != nil && *text != "":
		return []byte(*text), nil
	}
	return nil, nil
}
