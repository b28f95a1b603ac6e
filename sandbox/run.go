package sandbox

import (
	"io"
	"time"
)

// Run asks for one exec in a sandbox of its own, or in a session's. Exactly
// one of Code, File and Command says what to run.
type Run struct {
	Session  string   `json:"session,omitempty"`
	Labels   Labels   `json:"labels,omitempty"`
	Language string   `json:"language,omitempty"` // "" with a Command is "shell"
	Image    string   `json:"image,omitempty"`    // overrides the language's
	Code     string   `json:"code,omitempty"`
	File     string   `json:"file,omitempty"`    // a name in the workspace, put there by Files
	Command  []string `json:"command,omitempty"` // argv; no shell in between
	Args     []string `json:"args,omitempty"`    // for Code and File
	Env      []string `json:"env,omitempty"`     // KEY=VALUE; a later one wins
	Dir      string   `json:"dir,omitempty"`     // "" is the workspace; relative to it
	Role     Role     `json:"role,omitempty"`
	Files    []File   `json:"files,omitempty"` // put into the workspace before the exec
	// Stage are files that a Code finds beside itself, in a place of the agent's
	// that nobody in the sandbox can write and that goes with the exec. What of them
	// could be run is judged.
	Stage []File `json:"stage,omitempty"`
	// Reap ends, with the program, everything that it started, in a session too.
	Reap bool `json:"reap,omitempty"`
	// Warm forks an interpreter that runs and has imported its language's
	// [Language.Warm], in place of starting one, where that is the same for the program:
	// [Result.Warm] says whether it was. Without a session the sandbox may be one that ran
	// others of the same caller, and of which nothing is left.
	Warm bool `json:"warm,omitempty"`
	// WarmWith are modules that the warm interpreter has imported too, where the image
	// has them.
	WarmWith []string `json:"warm_with,omitempty"`

	Network   Network   `json:"network,omitzero"`
	Workspace Workspace `json:"workspace,omitzero"` // of its own: without a source
	Limits    Limits    `json:"limits,omitzero"`    // of a sandbox of its own: a session has its own limits
	ExecLimits
	// CompileTimeout bounds the compiler of a language that is compiled, beside the
	// time that the program has. 0 is the default of that.
	CompileTimeout Duration `json:"compile_timeout_ms,omitempty"`
	// Runtime names what makes the sandbox. "" is the default.
	Runtime string `json:"runtime,omitempty"`
	// OCIRuntime names the engine's runtime, such as "runsc". "" is its default.
	OCIRuntime string `json:"oci_runtime,omitempty"`
	// Input keeps the standard input of an exec in the background open, to be
	// written to later. Another's input comes with its [Streams].
	Input bool `json:"input,omitempty"`
	// Hold stalls an exec in the background while somebody who attached to its output
	// is behind, and at its start until somebody has, so that they lose nothing. Who
	// reads no byte for a minute is not waited for.
	Hold bool `json:"hold,omitempty"`
	// Guard has whoever starts an exec in the background watch the code of the workspace
	// that it reads later, as in the foreground: one that is another then ends it. It is
	// watched while that process lives; without it, policy asks about such an exec.
	Guard bool `json:"guard,omitempty"`
	// Terminal gives an exec in the background a terminal, to be attached to: what
	// is typed there is not judged, and may be forbidden by policy. What it shows is its
	// standard output.
	Terminal *TerminalSize `json:"terminal,omitempty"`
	// Track says how changes of the workspace are found. "" is [ModeFast].
	Track ChangeMode `json:"track,omitempty"`
	// Artifacts are patterns of files to collect at the end, such as "out/**" or
	// "*.png": * and ? stay in one folder, ** does not. Links are not followed.
	// nil is what the run has put below [DefaultArtifacts].
	Artifacts []string `json:"artifacts,omitzero"`
	// Answer lets the program hand back one value of at most so many bytes, outside of
	// the workspace and of its output: it connects to the socket answer.sock beside its
	// staged files and sends a memfd with all seals. That is collected as the artifact
	// [AnswerPath]; 0 allows none.
	Answer Bytes `json:"answer_bytes,omitempty"`
	// Tools names the tools of the host that its programs may call, of those that there
	// are: see [Tool]. nil is all of them, and an empty list none.
	Tools []string `json:"tools,omitzero"`
	// Program has Code, of Python or Node, return a value, by return at top level or as
	// its last expression, where await works too: see [Result].Program.
	Program bool `json:"program,omitempty"`
	// Keep leaves the sandbox in place when the run has failed, for a look.
	Keep bool `json:"keep,omitempty"`
	// Approve says what becomes of it where policy asks.
	Approve ApproveMode `json:"approve,omitempty"`
}

// Local is what stays beside a request because it cannot travel: it is of the
// process that asks. The zero value is nothing.
type Local struct {
	// Ask is asked where policy asks about what is requested.
	Ask Asker
	// Contents opens what files of the request have as their Ref. It is called once
	// for each file that is sent, and its caller closes what it returns.
	Contents func(ref string) (io.ReadCloser, error)
	// Folder is the absolute path of the host's folder that a session has as its
	// workspace, where the request says [WorkspaceHost] and names none.
	Folder string
	// Tools are further ones that the run's programs may call, answered here.
	Tools []Callable
}

// Open opens a content by its Ref. Errors: NotFound, and those of Contents.
func (l Local) Open(ref string) (io.ReadCloser, error) {
	if l.Contents == nil {
		return nil, Errorf(NotFound, "no content %q was handed over", ref).WithHint("send the bytes as the file's data")
	}
	return l.Contents(ref)
}

// Streams are an exec's standard streams, as in os/exec: a nil Stdin is empty,
// nil Stdout and Stderr are kept in the Result only. A writer that blocks holds
// up its own exec and no other.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Artifact takes the contents of artifacts. Where it is nil they are in the
	// Result, up to [MaxArtifacts].
	Artifact ArtifactTaker
	// Answer takes a large answer before Artifact is asked, and has small ones left in the
	// Result. nil has all of them be artifacts as any other.
	Answer AnswerTaker
	// Started is told of each program that the exec starts, where that is seen, before
	// it begins or soon after, and once more when it has ended: see [Start]. It is called
	// one at a time, and one that blocks holds up the exec.
	Started func(Start)
	Local
}

// ExitReason says why an exec ended. There is exactly one for each exec.
type ExitReason string

// The reasons.
const (
	ReasonExited   ExitReason = "exited"   // by itself, whatever its code
	ReasonSignal   ExitReason = "signal"   // by a signal that caisson did not send
	ReasonTimeout  ExitReason = "timeout"  // caisson ended it: its time was over
	ReasonCanceled ExitReason = "canceled" // caisson ended it: its caller gave up
	ReasonOOM      ExitReason = "oom"      // it failed, and the kernel had killed for memory meanwhile
	ReasonPIDs     ExitReason = "pids"     // it failed, and the process limit had been hit meanwhile
	ReasonDisk     ExitReason = "disk"     // it failed, and a file system of its was full
	ReasonOutput   ExitReason = "output"   // caisson ended it at the output cap
	ReasonDenied   ExitReason = "denied"   // policy or a person refused it, before it started, or what it started while it ran
	ReasonInfra    ExitReason = "infra"    // container, agent or engine failed under it: see Cause
)

// NeverBegan is the cause of a [ReasonInfra] where an exec was written down, and its
// process certainly has not begun and never will: it may be asked for again.
const NeverBegan = "it never began: the caisson that was to start it died"

// ExitReasons lists every reason, in the order of the documentation.
func ExitReasons() []ExitReason {
	return []ExitReason{ReasonExited, ReasonSignal, ReasonTimeout, ReasonCanceled, ReasonOOM, ReasonPIDs, ReasonDisk,
		ReasonOutput, ReasonDenied, ReasonInfra}
}

// Exit is how an exec's process ended.
type Exit struct {
	// Code is what `caisson run` exits with: see [Exit.Coded].
	Code   int        `json:"exit_code"`
	Reason ExitReason `json:"exit_reason"`
	Signal string     `json:"signal"`          // "SIGKILL", or ""
	Cause  string     `json:"cause,omitempty"` // of [ReasonInfra], [ReasonDenied] and [ReasonCanceled], where it is known
	// Events are limits that were hit while it ran: oom, pids, disk. One that
	// it survived stands here too.
	Events []string `json:"events,omitempty"`
	// Shared says that other execs ran beside it, so that an event may be
	// theirs.
	Shared bool `json:"shared,omitempty"`
}

// reasonCodes is the one table from exit reasons to exit codes. For a reason
// that is not in it the process's own code holds: what it exited with, or 128
// plus the signal.
var reasonCodes = map[ExitReason]int{
	ReasonTimeout: 124, ReasonCanceled: 130, ReasonOOM: 137, ReasonOutput: 137, ReasonDenied: 126, ReasonInfra: 125,
}

// Coded is the exit with the code that its reason has, wherever it is told.
func (e Exit) Coded() Exit {
	if code, ok := reasonCodes[e.Reason]; ok {
		e.Code = code
	}
	return e
}

// Usage is what an exec used. Each figure names its method in Methods.
type Usage struct {
	CPU           time.Duration `json:"-"`
	Wall          time.Duration `json:"-"`
	PeakMemory    Bytes         `json:"peak_memory_bytes"`
	PeakProcesses int           `json:"processes_peak"`
	Methods       Methods       `json:"methods"`
}

// Methods says how each figure of [Usage] was taken.
type Methods struct {
	Wall      string `json:"wall,omitempty"` // "" is the agent's clock
	CPU       string `json:"cpu,omitempty"`
	Memory    string `json:"memory,omitempty"`
	Processes string `json:"processes,omitempty"`
}

// Truncated counts the bytes of each stream that are missing from the Result.
type Truncated struct {
	Stdout int64 `json:"stdout"`
	Stderr int64 `json:"stderr"`
}

// Result is what came of a run. A program that ran and failed is a Result, not
// an error.
type Result struct {
	ExecID   ID     `json:"exec_id"`
	Session  string `json:"session"`
	Language string `json:"language"`
	Exit
	// Stdout and Stderr are exact bytes, kept up to the limit: beyond it, head
	// and tail.
	Stdout    []byte        `json:"-"`
	Stderr    []byte        `json:"-"`
	Truncated Truncated     `json:"truncated"`
	Duration  time.Duration `json:"-"` // from the start of the process to its end
	Usage     Usage         `json:"usage"`
	// Changes are what it did to the workspace, by path; ChangesError says why
	// not all of that is known.
	Changes      []FileChange `json:"changes"`
	ChangesError string       `json:"changes_error,omitempty"`
	// Artifacts are the files that were collected; ArtifactsError says why not
	// all were.
	Artifacts      []Artifact `json:"artifacts"`
	ArtifactsError string     `json:"artifacts_error,omitempty"`
	Decision       Decision   `json:"decision"`
	// Replaced says that the sandbox of an earlier exec was given up and this
	// one ran in a new one, with a new workspace where that does not last.
	Replaced bool `json:"replaced,omitempty"`
	// Warm says that its process was forked from a warm interpreter.
	Warm bool `json:"warm,omitempty"`
	// Compiled is how it was compiled, nil where it was not. Where that failed, it is
	// what the Result tells of, and the program never began.
	Compiled *Compiled `json:"compiled,omitempty"`
	// Shell is the shell that it ran in, nil of other execs.
	Shell *ShellState `json:"shell,omitempty"`
	// Connections are those that it asked for by [NetworkAllow], refused ones too, in
	// the order in which they began. ConnectionsLeftOut counts those above
	// [MaxConnections].
	Connections        []Connection `json:"connections,omitempty"`
	ConnectionsLeftOut int          `json:"connections_left_out,omitempty"`
	// Calls are its calls of tools, in the order in which they ended. CallsLeftOut
	// counts those above [MaxToolCalls].
	Calls        []ToolCall `json:"calls,omitempty"`
	CallsLeftOut int        `json:"calls_left_out,omitempty"`
	// Program is what a run with [Run].Program returned, nil of others.
	Program *ProgramResult `json:"program,omitempty"`
	// Starts are the programs that it started while it ran, where that was seen, in
	// the order in which they were; StartsLeftOut counts those above [MaxStarts].
	Starts        []Start `json:"starts,omitempty"`
	StartsLeftOut int     `json:"starts_left_out,omitempty"`
	// StartsUnjudged counts those that were refused since nobody was there to judge them.
	StartsUnjudged int `json:"starts_unjudged,omitempty"`
	// Sandbox is the id of the sandbox that it ran in, Image the digest of the
	// image that this was made from.
	Sandbox ID     `json:"sandbox,omitempty"`
	Image   string `json:"image,omitempty"`
	// Runtime names what made the sandbox. NotEnforced names limits that it was not
	// held to, such as "memory".
	Runtime     string   `json:"runtime,omitempty"`
	NotEnforced []string `json:"not_enforced,omitempty"`
}

// Compiled is what a compiler did before its program ran.
type Compiled struct {
	Exit
	// Stdout and Stderr are kept as those of a [Result]. What is no UTF-8 is replaced.
	Stdout    string    `json:"stdout"`
	Stderr    string    `json:"stderr"`
	Truncated Truncated `json:"truncated"`
	Duration  Duration  `json:"duration_ms"`
	// Starts are the programs that it started, as those of a [Result].
	Starts         []Start `json:"starts,omitempty"`
	StartsLeftOut  int     `json:"starts_left_out,omitempty"`
	StartsUnjudged int     `json:"starts_unjudged,omitempty"`
}

// Failed reports whether there is no program to run.
func (c *Compiled) Failed() bool { return c != nil && (c.Reason != ReasonExited || c.Code != 0) }

// TimedOut reports whether caisson ended the exec because its time was over.
func (r Result) TimedOut() bool { return r.Reason == ReasonTimeout }

// OOMKilled reports whether the exec ended for want of memory.
func (r Result) OOMKilled() bool { return r.Reason == ReasonOOM }
