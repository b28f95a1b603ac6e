package sandbox

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// FunctionOptions ask for a function: code that is kept, to be called by its name
// in the convention of AWS Lambda. A zero field is its default.
type FunctionOptions struct {
	Name string `json:"name"` // letters, digits, - and _; unique for its owner
	// Handler is what is called: a module among the files, a dot, and the name of a
	// function in it, such as "main.handler".
	Handler string `json:"handler"`
	// Files are the code, found by the function in a folder that nobody can write.
	Files []File `json:"files"`
	// Language is one with handlers, python or node, or a version of it. "" is told
	// by the handler's file.
	Language string `json:"language,omitempty"`
	Image    string `json:"image,omitempty"` // overrides the language's
	// Env is the functions' environment, KEY=VALUE. It is judged with the code.
	Env    []string `json:"env,omitempty"`
	Labels Labels   `json:"labels,omitempty"`
	// Limits are those of each sandbox, which serves one call at a time.
	Limits  Limits  `json:"limits,omitzero"`
	Network Network `json:"network,omitzero"`
	// Timeout bounds each call. 0 is [DefaultFunctionTimeout].
	Timeout Duration `json:"timeout_ms,omitempty"`
	// Concurrency is how many calls are served at once, each in a sandbox of its
	// own; more of them wait. 0 is [DefaultConcurrency].
	Concurrency int `json:"concurrency,omitempty"`
	// Runtime names what makes its sandboxes, OCIRuntime the engine's runtime, such as
	// "runsc". "" is the default.
	Runtime    string `json:"runtime,omitempty"`
	OCIRuntime string `json:"oci_runtime,omitempty"`
}

// What zero fields of [FunctionOptions] mean, and what they may be at most.
const (
	DefaultFunctionTimeout = Duration(30 * time.Second)
	MaxFunctionTimeout     = Duration(24 * time.Hour)
	DefaultConcurrency     = 4
	MaxConcurrency         = 1000
)

// MaxPayload bounds a call's event, and what it returns, as JSON.
const MaxPayload = 6 * MiB

// MaxLaterPayload bounds the event of a call that nobody waits for.
const MaxLaterPayload = MiB

// Function is a function as it is kept, without the contents of its files.
type Function struct {
	// ID names this code with its settings: each put has a new one.
	ID      ID     `json:"id"`
	Name    string `json:"name"`
	Owner   string `json:"owner,omitempty"` // the tenant; "" is the local user
	Version int    `json:"version"`         // counts from 1; a put makes the next, which replaces it
	Handler string `json:"handler"`
	// Files are the code's, with their sizes.
	Files       []FunctionFile `json:"files"`
	SHA256      string         `json:"sha256"` // of all files with their names
	Language    string         `json:"language"`
	Image       string         `json:"image,omitempty"`
	Env         []string       `json:"env,omitempty"` // where it is shown, the names alone
	Labels      Labels         `json:"labels,omitempty"`
	Limits      Limits         `json:"limits"`
	Network     Network        `json:"network,omitzero"`
	Timeout     Duration       `json:"timeout_ms"`
	Concurrency int            `json:"concurrency"`
	Runtime     string         `json:"runtime,omitempty"`
	OCIRuntime  string         `json:"oci_runtime,omitempty"`
	Updated     time.Time      `json:"updated"`
}

// FunctionFile is one file of a function's code.
type FunctionFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// WithoutValues is f as it may be shown: of its environment the names alone.
func (f Function) WithoutValues() Function {
	f.Env = slices.Clone(f.Env)
	for i, kv := range f.Env {
		f.Env[i], _, _ = strings.Cut(kv, "=")
	}
	return f
}

// FunctionFilter selects functions, by name. The zero value selects all of them.
type FunctionFilter struct {
	Owner  *string `json:"owner,omitempty"`  // nil is everybody
	Labels Labels  `json:"labels,omitempty"` // those that have them all
	After  string  `json:"after,omitempty"`  // only those behind this name: a page's cursor is the last name of the one before
	Limit  int     `json:"limit,omitempty"`  // 0 is no limit
}

// Invocation calls a function.
type Invocation struct {
	Function string `json:"function"`
	// Version refuses another one than this. 0 is whichever there is.
	Version int `json:"version,omitempty"`
	// Event is what the handler gets: JSON. nil is null.
	Event json.RawMessage `json:"event,omitempty"`
	// ClientContext is what the handler finds as its context's client context: a
	// JSON object. nil is none.
	ClientContext json.RawMessage `json:"client_context,omitempty"`
	// Approve says what becomes of the function's code where policy asks about it.
	Approve ApproveMode `json:"approve,omitempty"`
	// Later has nobody wait for the call, whose event may have [MaxLaterPayload]: it is
	// kept until a server makes it, also over restarts, and only its id, function and
	// version are told. What came of it is in the audit.
	Later bool `json:"later,omitempty"`
}

// Invoked is what came of a call. A handler that failed is one, not an error.
type Invoked struct {
	RequestID string `json:"request_id"` // a UUID; the handler knows it too
	Function  string `json:"function"`
	Version   int    `json:"version"`
	// Value is what the handler returned, as JSON; nil where Error is set.
	Value json.RawMessage `json:"value,omitempty"`
	Error *FunctionError  `json:"error,omitempty"`
	// Log is what was printed since the call before, with what the start of a cold
	// one printed: the newest of it. LogLost counts the bytes before.
	Log     string `json:"log"`
	LogLost int64  `json:"log_lost,omitempty"`
	// Cold says that a process had to be started; Init is how long it took from then
	// on until its module was there.
	Cold     bool     `json:"cold"`
	Init     Duration `json:"init_ms,omitempty"`
	Duration Duration `json:"duration_ms"` // of the handler
	// PeakMemory is the most that the process has used so far, as it says itself; 0
	// is not known.
	PeakMemory Bytes  `json:"peak_memory_bytes,omitempty"`
	Session    string `json:"session"`           // that it ran in
	ExecID     ID     `json:"exec_id,omitempty"` // of the process
	// Starts are the programs that the process started since the call before, where that
	// is seen: of the first [MaxStarts] that it starts, those that were heard of before
	// the answer.
	Starts []Start `json:"starts,omitempty"`
}

// Classes of [FunctionError]: whether the handler said so, or its process could
// not.
const (
	FunctionHandled   = "Handled"
	FunctionUnhandled = "Unhandled"
)

// FunctionError is why a call has no value, in the vendor's form.
type FunctionError struct {
	Class      string   `json:"class"` // [FunctionHandled] or [FunctionUnhandled]
	Type       string   `json:"errorType"`
	Message    string   `json:"errorMessage"`
	StackTrace []string `json:"stackTrace"`
}

// Payload is the body that the vendor's API answers with: the value, or the error
// without its class.
func (i Invoked) Payload() json.RawMessage {
	if i.Error == nil {
		return i.Value
	}
	body, err := json.Marshal(struct {
		Type       string   `json:"errorType"`
		Message    string   `json:"errorMessage"`
		RequestID  string   `json:"requestId"`
		StackTrace []string `json:"stackTrace"`
	}{i.Error.Type, i.Error.Message, i.RequestID, append([]string{}, i.Error.StackTrace...)})
	if err != nil { // strings always encode
		return json.RawMessage(`{}`)
	}
	return body
}
