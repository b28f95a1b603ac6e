package sandbox

import (
	"context"
	"encoding/json"
	"time"
)

// ApproveMode says what becomes of a run that policy asks about.
type ApproveMode string

// The modes. What policy denies stays denied in each of them.
const (
	// ApproveDefault asks whom there is to ask: the run's own [Asker], or an
	// approver that is configured. Where there is neither, it refuses at once.
	ApproveDefault ApproveMode = ""
	// ApproveNever refuses at once.
	ApproveNever ApproveMode = "never"
	// ApproveAlways approves everything that is asked about.
	ApproveAlways ApproveMode = "always"
	// ApproveAsk waits for an answer, from whomever and whichever process.
	ApproveAsk ApproveMode = "ask"
	// ApproveLater asks whom there is to ask, as [ApproveDefault] does. Where there
	// is nobody it leaves the question in the queue and refuses: who asks for the same
	// again, once it is approved, passes.
	ApproveLater ApproveMode = "later"
)

// Check reports a mode that is not known, as an [Invalid] error.
func (m ApproveMode) Check() error {
	switch m {
	case ApproveDefault, ApproveNever, ApproveAlways, ApproveAsk, ApproveLater:
		return nil
	}
	return Errorf(Invalid, "unknown way to approve %q", string(m)).WithHint("--approve takes ask, later, never or always")
}

// ApprovalState is where a question stands.
//
//	pending → approved → used
//	        → denied
//	        → expired            nobody answered in time: it counts as denied
//	        → withdrawn          who asked has given up
//
// An approval that is for always stays approved.
type ApprovalState string

// The states.
const (
	ApprovalPending   ApprovalState = "pending"
	ApprovalApproved  ApprovalState = "approved"
	ApprovalDenied    ApprovalState = "denied"
	ApprovalExpired   ApprovalState = "expired"
	ApprovalWithdrawn ApprovalState = "withdrawn"
	ApprovalUsed      ApprovalState = "used"
)

// Approval is a question to a person, or to a program in their place, and what
// became of it.
type Approval struct {
	ID ID `json:"id"`
	// Digest names exactly what is asked about: an answer holds for it alone.
	Digest   string           `json:"digest"`
	State    ApprovalState    `json:"state"`
	Asked    time.Time        `json:"asked"`
	Expires  time.Time        `json:"expires"`          // of the question, while it is pending
	Actor    string           `json:"actor"`            // who asks
	Owner    string           `json:"owner,omitempty"`  // its session's, or who runs it; "" is the local user
	Labels   Labels           `json:"labels,omitempty"` // of the run
	Session  string           `json:"session,omitempty"`
	Exec     ID               `json:"exec,omitempty"`
	Question ApprovalQuestion `json:"question"`
	Decision Decision         `json:"decision"` // that asks: findings with line and mend

	Answered time.Time `json:"answered,omitzero"`
	By       string    `json:"by,omitempty"`  // who answered
	Via      string    `json:"via,omitempty"` // terminal, command, webhook, api, mcp, always
	Note     string    `json:"note,omitempty"`
	// Always lets the same digest pass again; otherwise it passes once.
	Always bool      `json:"always,omitempty"`
	Used   time.Time `json:"used,omitzero"` // last
}

// ApprovalQuestion is what is to be run or made, whole: nothing in it is
// shortened. It is text of a stranger's, to be escaped before it is shown.
type ApprovalQuestion struct {
	Kind     string   `json:"kind"` // "exec", "sandbox", "tool", or [QuestionConnection] of an exec that runs
	Language string   `json:"language,omitempty"`
	Command  []string `json:"command,omitempty"` // argv, as it was asked for
	Dir      string   `json:"dir,omitempty"`
	Env      []string `json:"env,omitempty"`
	Role     Role     `json:"role,omitempty"`
	User     string   `json:"user,omitempty"`
	Image    string   `json:"image,omitempty"`
	Network  Network  `json:"network,omitzero"`
	// Host and Port are where a connection is to lead. Listed says that the network's
	// list has them, and that it is the policy alone that asks.
	Host   string `json:"host,omitempty"`
	Port   int    `json:"port,omitempty"`
	Listed bool   `json:"listed,omitempty"`
	Limits Limits `json:"limits,omitzero"` // of the sandbox
	ExecLimits
	Stdin      string          `json:"stdin,omitempty"` // "none", "data", or the digest of a program
	Policy     string          `json:"policy_revision,omitempty"`
	Texts      []ApprovalText  `json:"texts,omitempty"`
	Plan       json.RawMessage `json:"plan,omitempty"` // of a sandbox, in the engine's terms
	Background bool            `json:"background,omitempty"`
	// Tool is the tool that a program wants to call, and Arguments what it gives it.
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// QuestionConnection is the kind of a question about a host.
const QuestionConnection = "connection"

// ApprovalText is one text that would run.
type ApprovalText struct {
	Name     string `json:"name"` // "" is the run's own code
	Language string `json:"language,omitempty"`
	SHA256   string `json:"sha256"`
	Size     int    `json:"size"`
	Text     string `json:"text,omitempty"` // "" where it is no text
	// Missing says that it could not be read.
	Missing bool `json:"missing,omitempty"`
}

// ApprovalAnswer is one answer to a question.
type ApprovalAnswer struct {
	ID      ID     `json:"id"`
	Approve bool   `json:"approve"`
	Always  bool   `json:"always,omitempty"` // for this digest, from now on
	By      string `json:"by,omitempty"`
	Via     string `json:"via,omitempty"`
	Note    string `json:"note,omitempty"`
}

// ApprovedBy says who let a run pass that policy asks about.
type ApprovedBy struct {
	ID     ID     `json:"id"`
	By     string `json:"by"`
	Via    string `json:"via"`
	Always bool   `json:"always,omitempty"`
	Digest string `json:"digest"`
}

// Asker asks a person about a run, in person, while the run waits. It returns
// once there is an answer, or with an error once ctx is done: then somebody
// else has answered, or nobody will.
type Asker func(ctx context.Context, a Approval) (ApprovalAnswer, error)

// ApprovalFilter selects approvals. The zero value selects all of them.
type ApprovalFilter struct {
	Digest string          `json:"digest,omitempty"`
	States []ApprovalState `json:"states,omitempty"`
	Owner  *string         `json:"owner,omitempty"`  // nil is everybody
	Labels Labels          `json:"labels,omitempty"` // those that have them all
	After  ID              `json:"after,omitempty"`  // only those behind this one: a page's cursor is the last id of the one before
	Limit  int             `json:"limit,omitempty"`  // 0 is no limit; the newest first
}

// Check refuses a state that there is not, of which nothing would be found. Errors:
// Invalid.
func (f ApprovalFilter) Check() error {
	return knownWords("state of a question", f.States, []ApprovalState{ApprovalPending, ApprovalApproved, ApprovalDenied, ApprovalExpired, ApprovalWithdrawn, ApprovalUsed})
}
