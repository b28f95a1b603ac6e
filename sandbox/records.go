package sandbox

import (
	"encoding/json"
	"strings"
	"time"
)

// Session is a workspace and the sandboxes made for it, as it is kept.
type Session struct {
	ID   ID     `json:"id"`
	Name string `json:"name"` // unique among those that live
	// Owner is the tenant that it belongs to. "" is the local user.
	Owner    string    `json:"owner,omitempty"`
	Labels   Labels    `json:"labels,omitempty"`
	Language string    `json:"language"`
	Image    string    `json:"image,omitempty"` // overrides the language's
	Created  time.Time `json:"created"`
	// Idle ends a sandbox that nobody has used for so long; TTL ends each so
	// long after its creation. 0 is never. The workspace stays.
	Idle      Duration  `json:"idle_ms,omitempty"`
	TTL       Duration  `json:"ttl_ms,omitempty"`
	Limits    Limits    `json:"limits"`
	Network   Network   `json:"network,omitzero"`
	Workspace Workspace `json:"workspace"`
	Identity  Identity  `json:"identity"`
	// Runtime names what makes its sandboxes. "" is the default.
	Runtime string `json:"runtime,omitempty"`
	// OCIRuntime names the engine's runtime. "" is its default.
	OCIRuntime string `json:"oci_runtime,omitempty"`
	// Holder is the process that it goes with, of one that is temporary.
	Holder string `json:"holder,omitempty"`
	// Env is added to the environment of each exec, KEY=VALUE, below its own.
	Env []string `json:"env,omitempty"`
	// Snapshots are kept workspaces, the oldest first. They go with the session.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
}

// WithoutValues is s as it may be shown: of its environment the names alone.
func (s Session) WithoutValues() Session {
	var names []string
	for _, kv := range s.Env {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	s.Env = names
	return s
}

// Snapshot is a session's workspace as it was at one moment.
type Snapshot struct {
	ID        ID        `json:"id"`
	Name      string    `json:"name,omitempty"` // a person's; unique in the session
	Created   time.Time `json:"created"`
	Copied    CopiedBy  `json:"copied"`
	Workspace Workspace `json:"workspace"`
}

// CopiedBy says how a workspace was copied.
type CopiedBy string

// How.
const (
	CopiedByOverlay CopiedBy = "overlay" // both go on upon the same layers: nothing was copied
	CopiedByBytes   CopiedBy = "bytes"   // all of it was copied
)

// SandboxRecord is a sandbox of a session, as it is kept: what it takes to find
// it again and to speak with its agent.
type SandboxRecord struct { //nolint:revive // beside ExecRecord; Record alone would be any
	ID       ID     `json:"id"`
	Session  string `json:"session"`
	Language string `json:"language"`
	Runtime  string `json:"runtime,omitempty"` // its name
	// NotEnforced names limits that it is not held to.
	NotEnforced []string        `json:"not_enforced,omitempty"`
	State       State           `json:"state"`
	Handle      json.RawMessage `json:"handle"`            // a runtime's, versioned by it
	Secret      []byte          `json:"-"`                 // of the agent; never shown
	Image       string          `json:"image"`             // digest
	Volumes     []string        `json:"volumes,omitempty"` // [Image.Volumes]
	Link        string          `json:"link,omitempty"`    // [Image.Link]
	Walls       []Wall          `json:"walls,omitempty"`   // those that it was made with
	Holder      string          `json:"holder"`            // who made it
	Created     time.Time       `json:"created"`
	Expires     time.Time       `json:"expires,omitzero"` // by the TTL
}

// ExecRecord is an exec of a session, as it is kept.
type ExecRecord struct {
	ID         ID       `json:"id"`
	Owner      string   `json:"owner,omitempty"` // its session's, or who runs it; "" is the local user
	Labels     Labels   `json:"labels,omitempty"`
	Session    string   `json:"session"`
	Sandbox    ID       `json:"sandbox"`
	Argv       []string `json:"argv"`
	Holder     string   `json:"holder"` // the process that starts it or follows it; "" in the background once it runs
	Background bool     `json:"background,omitempty"`
	// Shell is set of one that is a shell's process: see [Shell].
	Shell *ShellRecord `json:"shell,omitempty"`
	// PID is the number of its process in the sandbox, of one in the background that
	// runs; 0 where nobody said.
	PID int `json:"pid,omitempty"`
	// Terminal says that it has one: what is typed there is not judged.
	Terminal bool      `json:"terminal,omitempty"`
	Started  time.Time `json:"started"`
	// Ended is zero while it runs, or while nobody has seen its end.
	Ended time.Time `json:"ended,omitzero"`
	Exit  Exit      `json:"exit,omitzero"`
	// Decision let it run, where it runs in the background. Approve, Role and Env, which
	// says that it was given variables, are what judging its starts takes beside that.
	Decision *Decision   `json:"decision,omitempty"`
	Approve  ApproveMode `json:"approve,omitempty"`
	Role     Role        `json:"role,omitempty"`
	Env      bool        `json:"env,omitempty"`
	// Starts, StartsLeftOut and StartsUnjudged are as in [Result], of one in the
	// background that has ended. Fewer are kept: about 64 KiB, those that were refused
	// before others.
	Starts         []Start `json:"starts,omitempty"`
	StartsLeftOut  int     `json:"starts_left_out,omitempty"`
	StartsUnjudged int     `json:"starts_unjudged,omitempty"`
	// NotEnforced has "starts" where what it starts should be seen, and cannot be.
	NotEnforced []string `json:"not_enforced,omitempty"`
}

// Transaction is what the store does at once: all of it or nothing.
type Transaction struct {
	// While makes the change only while that exec is recorded as running, and
	// it is a Conflict otherwise: of all that would tell an exec's end, one does.
	While           ID
	CreateSession   *Session // Conflict where the name is taken
	PutSession      *Session // NotFound where there is none
	DeleteSession   string   // with its sandboxes and execs; Conflict while one of those runs
	PutSandboxes    []SandboxRecord
	DeleteSandboxes []ID
	PutExecs        []ExecRecord
	DeleteExecs     []ID
	// KeepEnded, where it is not 0, bounds the ended execs of the sessions of PutExecs:
	// the newest that many are kept.
	KeepEnded int
	// AskApproval remembers a question. MoveApproval changes its state: Conflict
	// where it is not From any more, so that of two answers the first wins.
	AskApproval  *Approval
	MoveApproval *ApprovalMove
	// PutReadings remembers what sandboxes use. DeleteSession, DeleteSandboxes, and
	// a record that says that its sandbox is gone, end a reading too.
	PutReadings []Reading
	// FireAlert is a Conflict where one of its rule fires for its sandbox, or for
	// its session where it has none; ResolveAlert where it does not fire any more.
	FireAlert    *Alert
	ResolveAlert *Alert
	CreateToken  *KeptToken // Conflict where the name is taken
	DeleteToken  ID         // NotFound where there is none
	// PostLetters puts letters into the outbox, DeleteLetters takes them out, and
	// RetryLetters puts them off.
	PostLetters   []Letter
	DeleteLetters []int64
	RetryLetters  []LetterRetry
	// SubmitExecution remembers an execution: see [Submission]. MoveExecution is a
	// Conflict where it does not stand as From and CallbackFrom say any more.
	SubmitExecution *Submission
	MoveExecution   *ExecutionMove
	// ForgetExecutions drops those that expired before then, but for those whose
	// callback is pending.
	ForgetExecutions time.Time
	// Clock is kept. Where the clock was set since the one that was kept before, when
	// executions and questions expire, letters are due, budgets of tools begin anew and
	// sandboxes end is moved by as much.
	Clock *ClockReading
	// SpendTool counts a call of a tool.
	SpendTool *ToolSpend
	// PutFunction is a Conflict where the version before it is not the one that is
	// kept, DeleteFunction NotFound where there is none.
	PutFunction    *FunctionCode
	DeleteFunction *FunctionName
	Events         []Event
}

// FunctionCode is a function with its files.
type FunctionCode struct {
	Function Function
	Files    []File
}

// FunctionName names an owner's function.
type FunctionName struct{ Owner, Name string }

// ApprovalMove takes an approval from one state to another.
type ApprovalMove struct {
	From ApprovalState
	To   Approval // as it is to be kept
}

// SessionView is a session with what belongs to it.
type SessionView struct {
	Session
	Sandboxes []SandboxRecord `json:"sandboxes"`
	Execs     []ExecRecord    `json:"execs"`
	// HeldBy says what holds the workspace to its size. It is asked for, not kept.
	HeldBy HeldBy `json:"held_by,omitempty"`
}

// HeldBy says what holds a workspace to its size. "" is nothing, or not known.
type HeldBy string

// What holds a workspace.
const (
	HeldByFileSystem HeldBy = "file system" // no byte more can be written
	HeldByAgent      HeldBy = "agent"       // who passes it is ended soon after
)

// SessionFilter selects sessions, by name. The zero value selects all of them.
type SessionFilter struct {
	Owner  *string `json:"owner,omitempty"`  // nil is everybody
	Labels Labels  `json:"labels,omitempty"` // those that have them all
	After  string  `json:"after,omitempty"`  // only those behind this name: a page's cursor is the last name of the one before
	Limit  int     `json:"limit,omitempty"`  // 0 is no limit
	// Name selects the one of that name. Running leaves out execs that have ended, of
	// which a session may keep hundreds.
	Name    string `json:"name,omitempty"`
	Running bool   `json:"running,omitempty"`
}

// ExecFilter selects execs that are kept, the newest first: those that run, and
// those in the background that have ended. The zero value selects all of them.
type ExecFilter struct {
	ID      ID      `json:"id,omitempty"` // the one
	Session string  `json:"session,omitempty"`
	Owner   *string `json:"owner,omitempty"`  // nil is everybody
	Labels  Labels  `json:"labels,omitempty"` // those that have them all
	Running bool    `json:"running,omitempty"`
	After   ID      `json:"after,omitempty"` // only those behind this one: a page's cursor is the last id of the one before
	Limit   int     `json:"limit,omitempty"` // 0 is no limit
}

// FileInfo describes one entry of a workspace.
type FileInfo struct {
	Path   string    `json:"path"` // below the workspace; "." is the workspace itself
	Type   string    `json:"type"` // "file", "dir", "link", "other"
	Size   int64     `json:"size"`
	Mode   uint32    `json:"mode"` // permission bits
	MTime  time.Time `json:"mtime"`
	Target string    `json:"target,omitempty"` // of a link, as it stands there
	// Attributes are extended ones of the namespace "user.", without that: those that
	// are text, of 4 KiB together.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// plainInfo is a FileInfo without its methods, infoJSON what it is on the wire.
type (
	plainInfo FileInfo
	infoJSON  struct {
		plainInfo
		PathBytes   []byte `json:"path_base64,omitempty"`
		TargetBytes []byte `json:"target_base64,omitempty"`
	}
)

// MarshalJSON adds path_base64 and target_base64 where these are not UTF-8.
func (i FileInfo) MarshalJSON() ([]byte, error) {
	j := infoJSON{plainInfo: plainInfo(i)}
	_, j.PathBytes = nameJSON(i.Path)
	_, j.TargetBytes = nameJSON(i.Target)
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (i *FileInfo) UnmarshalJSON(b []byte) error {
	j := infoJSON{plainInfo: plainInfo(*i)}
	err := json.Unmarshal(b, &j)
	*i = FileInfo(j.plainInfo)
	if j.PathBytes != nil {
		i.Path = string(j.PathBytes)
	}
	if j.TargetBytes != nil {
		i.Target = string(j.TargetBytes)
	}
	return err
}

// Moved says what a transfer of files came to.
type Moved struct {
	Files int   `json:"files"` // entries: files, folders, links
	Bytes int64 `json:"bytes"` // of contents
	Same  int   `json:"same"`  // were there already, and were not moved
	Left  int   `json:"left_out"`
	// LeftOut names some of those, with the reason.
	LeftOut []string `json:"left_out_names,omitempty"`
}

// FileEvent is one change that a watch saw. Op is "ready", "create", "write",
// "remove", "rename", "chmod", or "overflow": some were lost, look anew.
type FileEvent struct {
	Path string `json:"path,omitempty"`
	Op   string `json:"op"`
}

// plainFileEvent is a FileEvent without its methods, fileEventJSON what it is on
// the wire.
type (
	plainFileEvent FileEvent
	fileEventJSON  struct {
		plainFileEvent
		PathBytes []byte `json:"path_base64,omitempty"`
	}
)

// MarshalJSON adds path_base64 where the path is not UTF-8.
func (e FileEvent) MarshalJSON() ([]byte, error) {
	j := fileEventJSON{plainFileEvent: plainFileEvent(e)}
	_, j.PathBytes = nameJSON(e.Path)
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *FileEvent) UnmarshalJSON(b []byte) error {
	j := fileEventJSON{plainFileEvent: plainFileEvent(*e)}
	err := json.Unmarshal(b, &j)
	*e = FileEvent(j.plainFileEvent)
	if j.PathBytes != nil {
		e.Path = string(j.PathBytes)
	}
	return err
}

// AuditReport says what a check of the audit's chain found.
type AuditReport struct {
	OK     bool  `json:"ok"`
	Events int64 `json:"events"` // that are there
	// First and Last are the sequence numbers of what is there. Events before
	// First were pruned by a retention, and a checkpoint stands for them.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Head is the hash of the last event: whoever keeps a copy of it elsewhere
	// can tell a log that was written anew.
	Head     string         `json:"head"`
	Problems []AuditProblem `json:"problems,omitempty"`
}

// AuditProblem is one place where the chain does not hold.
type AuditProblem struct {
	Seq  int64  `json:"seq"`
	What string `json:"what"` // such as "changed", "missing", "truncated"
}

// Retention says what is kept of an audit, and of the questions that are over. A
// zero field keeps everything.
type Retention struct {
	Age   Duration `json:"age_ms,omitempty"` // what is younger than that
	Bytes Bytes    `json:"bytes,omitempty"`  // about so many of the newest, of each
}

// Pruned says how much a [Retention] dropped.
type Pruned struct {
	Events    int64 `json:"events"`
	Questions int64 `json:"questions"`
}

// StateSize is how much there is of one thing in the state.
type StateSize struct {
	What  string `json:"what"` // such as "events"
	Count int64  `json:"count"`
	Bytes Bytes  `json:"bytes"` // about
}
