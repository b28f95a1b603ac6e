package sandbox

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Kinds of event. A start is recorded before what it tells of begins, and an
// end before anybody is told of it.
const (
	EventSessionCreated   = "session.created"
	EventSessionChanged   = "session.changed"
	EventSessionRemoved   = "session.removed"
	EventSessionSnapshot  = "session.snapshot"
	EventSessionRestored  = "session.restored"
	EventSessionForked    = "session.forked"
	EventSandboxCreating  = "sandbox.creating"
	EventSandboxReady     = "sandbox.ready"
	EventSandboxPaused    = "sandbox.paused"
	EventSandboxResumed   = "sandbox.resumed"
	EventSandboxFailed    = "sandbox.failed"
	EventSandboxRemoved   = "sandbox.removed"
	EventExecStarted      = "exec.started"
	EventExecEnded        = "exec.ended"
	EventExecDenied       = "exec.denied"
	EventExecConnected    = "exec.connected" // its connections, once its way out is closed
	EventToolCalled       = "tool.called"    // a call of a tool has ended: its data is the [ToolCall]
	EventExecStarts       = "exec.starts"    // what it started, once it has ended
	EventPortOpened       = "port.opened"    // somebody connects to a port inside, from this process for the first time
	EventFilesChanged     = "files.changed"  // by no exec that has just ended
	EventUndone           = "undone"
	EventApprovalAsked    = "approval.asked"
	EventApprovalAnswered = "approval.answered"
	EventExecution        = "execution"   // one was submitted, or moved on: its data has id, state and labels
	EventAlertFired       = "alert.fired" // its data is the [Alert]
	EventAlertResolved    = "alert.resolved"
	EventAlertActed       = "alert.acted" // what its action came to
	EventFunctionPut      = "function.put"
	EventFunctionRemoved  = "function.removed"
	EventFunctionInvoked  = "function.invoked" // once a call has ended
	EventRecovered        = "recovered"        // a manager took up what another had left
	EventTokenCreated     = "token.created"
	EventTokenRevoked     = "token.revoked"
	EventAuditPruned      = "audit.pruned"
	EventAuditReanchored  = "audit.reanchored" // somebody took a log as it is whose anchor was lost
)

// EventKinds lists every kind of event.
func EventKinds() []string {
	return []string{
		EventSessionCreated, EventSessionChanged, EventSessionRemoved, EventSessionSnapshot, EventSessionRestored, EventSessionForked,
		EventSandboxCreating, EventSandboxReady, EventSandboxPaused, EventSandboxResumed, EventSandboxFailed, EventSandboxRemoved,
		EventExecStarted, EventExecEnded, EventExecDenied, EventExecConnected, EventToolCalled, EventExecStarts, EventPortOpened,
		EventFilesChanged, EventUndone, EventApprovalAsked, EventApprovalAnswered, EventExecution, EventAlertFired, EventAlertResolved,
		EventAlertActed, EventFunctionPut, EventFunctionRemoved, EventFunctionInvoked, EventRecovered, EventTokenCreated, EventTokenRevoked,
		EventAuditPruned, EventAuditReanchored,
	}
}

// Event is one line of the audit log. Seq, Prev and Hash are set by the log,
// which chains each event to the one before.
type Event struct {
	Seq     int64     `json:"seq"`
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Actor   string    `json:"actor"`           // who: user@host, or a client's name
	Owner   string    `json:"owner,omitempty"` // its session's, or who runs it; "" is the local user
	Session string    `json:"session,omitempty"`
	Sandbox ID        `json:"sandbox,omitempty"`
	Exec    ID        `json:"exec,omitempty"`
	// Data is what there is to say for its kind: a JSON object.
	Data json.RawMessage `json:"data,omitempty"`
	Prev string          `json:"prev"`
	Hash string          `json:"hash"`
}

// EventFilter selects events. The zero value selects all of them.
type EventFilter struct {
	After   int64     `json:"after,omitempty"` // only those with a larger Seq
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Session string    `json:"session,omitempty"`
	Exec    ID        `json:"exec,omitempty"`
	Kinds   []string  `json:"kinds,omitempty"`
	Owner   *string   `json:"owner,omitempty"`  // nil is everybody
	Labels  Labels    `json:"labels,omitempty"` // only of sessions and runs that have them all: created, started, ended, denied
	Limit   int       `json:"limit,omitempty"`  // 0 is no limit
	Newest  bool      `json:"newest,omitempty"` // the last of them alone
}

// Check refuses a kind that there is not, of which nothing would be found. Errors:
// Invalid.
func (f EventFilter) Check() error { return knownWords("kind of event", f.Kinds, EventKinds()) }

// knownWords refuses a word that is none of those there are.
func knownWords[W ~string](what string, given, known []W) error {
	for _, w := range given {
		if !slices.Contains(known, w) {
			words := make([]string, len(known))
			for i, k := range known {
				words[i] = string(k)
			}
			return Errorf(Invalid, "unknown %s %q", what, w).WithHint("known are %s", strings.Join(words, ", "))
		}
	}
	return nil
}
