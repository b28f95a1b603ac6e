package sandbox

import "time"

// Execution is a run that is carried out by itself: who submitted it has its id
// and comes back for what came of it, or is called back.
type Execution struct {
	ID     ID             `json:"id"`
	State  ExecutionState `json:"state"`
	Owner  string         `json:"owner,omitempty"`  // who submitted it; "" is the local user
	Actor  string         `json:"actor,omitempty"`  // by which name, for the audit; "" is the process's own
	Access Access         `json:"access,omitempty"` // with which it was submitted
	Labels Labels         `json:"labels,omitempty"`
	// Session is that which it runs in, "" for a sandbox of its own.
	Session   string    `json:"session,omitempty"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	// Expires is when it is forgotten with all that is kept of it; zero before its end.
	Expires time.Time `json:"expires,omitzero"`
	Keep    Duration  `json:"keep_ms"` // from its end
	// Waits says why one that is queued cannot begin, where that is not for want of a
	// worker. It is asked for, not kept.
	Waits string `json:"waits,omitempty"`
	// CancelAsked says that it is to end, and has not yet.
	CancelAsked bool `json:"cancel_asked,omitempty"`
	// Exec is the exec that carries it out, "" before that is known.
	Exec ID `json:"exec_id,omitempty"`
	// Exit is how its program ended, zero where none did.
	Exit Exit `json:"exit,omitzero"`
	// Error is why no program ran, or what went wrong beside it.
	Error    *Problem  `json:"error,omitempty"`
	Callback *Callback `json:"callback,omitempty"`
	// Run is what was submitted: of its environment the names alone, and of its
	// files no contents. Lists have neither Run nor Result.
	Run    *Run    `json:"run,omitempty"`
	Result *Result `json:"result,omitempty"`
}

// Caller is who submitted it, and in whose name it runs.
func (e Execution) Caller() Caller { return Caller{Owner: e.Owner, Name: e.Actor, Access: e.Access} }

// ShownTo is e with the name of its session that a caller uses.
func (e Execution) ShownTo(c Caller) Execution {
	e.Session = c.Shown(e.Session)
	if e.Run != nil {
		run := *e.Run
		run.Session = c.Shown(run.Session)
		e.Run = &run
	}
	if e.Result != nil {
		res := *e.Result
		res.Session = c.Shown(res.Session)
		e.Result = &res
	}
	return e
}

// ExecutionState is where an execution stands:
//
//	queued → running → succeeded   its program exited with 0
//	   ▲        │    → failed      it did not, or was refused, or could not be run
//	   └────────┤    → canceled
//	   │        │    → lost        it began, and what came of it is not known
//	   └────────┴────► canceled
//
// One whose server died before it began is queued again.
type ExecutionState string

// The states.
const (
	ExecutionQueued    ExecutionState = "queued"
	ExecutionRunning   ExecutionState = "running"
	ExecutionSucceeded ExecutionState = "succeeded"
	ExecutionFailed    ExecutionState = "failed"
	ExecutionCanceled  ExecutionState = "canceled"
	ExecutionLost      ExecutionState = "lost"
)

// ExecutionStates lists every state.
func ExecutionStates() []ExecutionState {
	return []ExecutionState{ExecutionQueued, ExecutionRunning, ExecutionSucceeded, ExecutionFailed, ExecutionCanceled, ExecutionLost}
}

// Over reports whether nothing follows the state.
func (s ExecutionState) Over() bool { return s != ExecutionQueued && s != ExecutionRunning }

// ExecutionLabel is the label by which the exec of an execution is found. Its
// value is the execution's id.
const ExecutionLabel = "caisson/execution"

// ExecutionOptions ask for an execution.
type ExecutionOptions struct {
	// Run is what to run, in its Session where that is set.
	Run Run `json:"run"`
	// Stdin is the program's standard input, StdinBytes one that is not UTF-8.
	Stdin      string `json:"stdin,omitempty"`
	StdinBytes []byte `json:"stdin_base64,omitempty"`
	// Keep is for how long what came of it is kept; 0 is the server's default.
	Keep     Duration         `json:"keep_ms,omitempty"`
	Callback *CallbackOptions `json:"callback,omitempty"`
}

// CallbackOptions say who is told of an execution's end.
type CallbackOptions struct {
	URL string `json:"url"`
	// Secret signs what is posted, with 16 bytes at least; "" is the server's own,
	// where it has one. It is never shown again.
	Secret string `json:"secret,omitempty"`
	// Heartbeat has the same address told, so often, that it still runs; 0 is never.
	Heartbeat Duration `json:"heartbeat_ms,omitempty"`
}

// Callback is what may be shown of a callback, and what came of it.
type Callback struct {
	Address   string        `json:"address"` // its scheme and host: the rest may be a secret
	Signed    bool          `json:"signed"`
	Heartbeat Duration      `json:"heartbeat_ms,omitempty"`
	Delivery  ID            `json:"delivery"` // the same at each attempt
	State     CallbackState `json:"state"`
	Attempts  int           `json:"attempts"` // to tell of the end
	// Error is why the last attempt failed; Next is when there will be another.
	Error string    `json:"error,omitempty"`
	Next  time.Time `json:"next,omitzero"`
	// Settled is when it was delivered, or given up.
	Settled time.Time `json:"settled,omitzero"`
}

// CallbackState is where a callback stands: waiting for the execution's end,
// then pending until it is delivered or, after the last attempt, dead. A dead one
// can be sent again.
type CallbackState string

// The states.
const (
	CallbackWaiting   CallbackState = "waiting"
	CallbackPending   CallbackState = "pending"
	CallbackDelivered CallbackState = "delivered"
	CallbackDead      CallbackState = "dead"
)

// ExecutionFilter selects executions, the newest first. The zero value selects
// all of them.
type ExecutionFilter struct {
	States   []ExecutionState `json:"states,omitempty"`
	Session  string           `json:"session,omitempty"`
	Callback CallbackState    `json:"callback,omitempty"` // only those whose callback stands so
	Owner    *string          `json:"owner,omitempty"`    // nil is everybody
	Labels   Labels           `json:"labels,omitempty"`   // those that have them all
	After    ID               `json:"after,omitempty"`    // only those behind this one: a page's cursor is the last id of the one before
	Limit    int              `json:"limit,omitempty"`    // 0 is no limit
}

// Check refuses a state that there is not, of which nothing would be found. Errors:
// Invalid.
func (f ExecutionFilter) Check() error {
	if err := knownWords("state of an execution", f.States, ExecutionStates()); err != nil || f.Callback == "" {
		return err
	}
	return knownWords("state of a callback", []CallbackState{f.Callback}, []CallbackState{CallbackWaiting, CallbackPending, CallbackDelivered, CallbackDead})
}

// DeadLetter is a callback that was given up.
type DeadLetter struct {
	Execution ID             `json:"execution"`
	Owner     string         `json:"owner,omitempty"`
	Labels    Labels         `json:"labels,omitempty"`
	State     ExecutionState `json:"state"`
	Callback  Callback       `json:"callback"`
}

// DeadLetterFilter selects dead letters, those of the newest executions first.
// The zero value selects all of them.
type DeadLetterFilter struct {
	Owner  *string `json:"owner,omitempty"`  // nil is everybody
	Labels Labels  `json:"labels,omitempty"` // of executions that have them all
	After  ID      `json:"after,omitempty"`  // only those of executions behind this one
	Limit  int     `json:"limit,omitempty"`  // 0 is no limit
}

// Submission is an execution as it enters the store. Exhausted where more than
// Most would be queued, or MostOf of its owner, or all together more than Bytes; 0
// is no bound.
type Submission struct {
	Execution    Execution
	Options      ExecutionOptions
	Most, MostOf int
	Bytes        Bytes
}

// ExecutionMove takes an execution from one of some states to another, or its
// callback where CallbackFrom is set.
type ExecutionMove struct {
	From         []ExecutionState
	CallbackFrom CallbackState // "" is any
	To           Execution     // as it is to be kept; Run stays as it is
	// Options replace what was submitted, which has secrets; nil leaves them.
	Options *ExecutionOptions
}

// QueuedExecution is one that waits. Seq grows with each that is submitted.
type QueuedExecution struct {
	Seq   int64
	ID    ID
	Owner string
}

// LetterOutcome is what came of one attempt to deliver a letter to an address of
// its own.
type LetterOutcome struct {
	// Next is when to try again; zero is never: it was taken, or is given up.
	Next time.Time
	// Beside is written down with that.
	Beside Transaction
}
