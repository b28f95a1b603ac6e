package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Tool declares a function of the host that programs in a sandbox may call.
type Tool struct {
	// Name is what programs call it by: letters, digits, _ and -, at most
	// [MaxToolName]. In Python and Node, where names have no -, that is _.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is a JSON Schema of the arguments, which are an object, and Result
	// one of what it answers. Without, it takes any keywords, or answers anything.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	// Timeout bounds one call, and what it waits for its turn. 0 is
	// [DefaultToolTimeout].
	Timeout Duration `json:"timeout_ms,omitempty"`
	// Concurrency is how many calls of it run at once, whosesoever they are. 0 is
	// [DefaultToolConcurrency].
	Concurrency int `json:"concurrency,omitempty"`
	// Verdict is the operator's word on all calls, which the rules are told: "" is
	// [Allow].
	Verdict Verdict `json:"verdict,omitempty"`
	// Rate bounds the calls of one owner in any time so long, and OwnerBudget those in
	// one that begins with the first of them; then they are counted anew. The zero value
	// does not. Both count over all execs.
	Rate        ToolRate `json:"rate,omitzero"`
	OwnerBudget ToolRate `json:"owner_budget,omitzero"`
	// Budget bounds the calls of one exec. 0 does not.
	Budget int `json:"budget,omitempty"`
}

// ToolRate is a number of calls in a time.
type ToolRate struct {
	Calls int      `json:"calls"`
	Per   Duration `json:"per_ms"`
}

// ToolSpend is a call that an owner's budget of a tool counts: among those that it has
// counted, or as the first of what begins anew at Until.
type ToolSpend struct {
	Owner, Tool string
	At, Until   time.Time
}

// ToolSpent is how many calls a budget has counted that begins anew at Until. The zero
// value is none.
type ToolSpent struct {
	Calls int
	Until time.Time
}

func (r ToolRate) wrong() bool { return r.Calls < 0 || (r.Calls > 0) != (r.Per > 0) }

// Bounds of tools and their calls.
const (
	DefaultToolTimeout     = Duration(time.Minute)
	DefaultToolConcurrency = 64
	MaxToolName            = 64
	// MaxToolData bounds the arguments of a call, and its result, as JSON: 64 MiB of
	// bytes in base64, and some more.
	MaxToolData = 96 * MiB
	// MaxToolCalls is how many calls of an exec are told one by one. Those beyond are
	// counted.
	MaxToolCalls = 256
)

const (
	nameFirst = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	nameRest  = nameFirst + "0123456789-"
)

// Check reports what is wrong with a declaration, but for its schemas. Errors: Invalid.
func (t Tool) Check() error {
	switch {
	case t.Name == "" || len(t.Name) > MaxToolName || strings.Trim(t.Name[:1], nameFirst)+strings.Trim(t.Name, nameRest) != "":
		return Errorf(Invalid, "%q is not a name of a tool", t.Name).WithHint("write letters, digits, _ and -, %d at most, and a letter first", MaxToolName)
	case t.Timeout < 0 || t.Concurrency < 0 || t.Budget < 0 || t.Rate.wrong() || t.OwnerBudget.wrong():
		return Errorf(Invalid, "tool %s: a bound is negative, or a rate has no time", t.Name).WithHint("leave out what is not to be bounded")
	}
	if slices.Contains([]Verdict{"", Allow, Ask, Deny}, t.Verdict) {
		return nil
	}
	return Errorf(Invalid, "tool %s: verdict is %q", t.Name, t.Verdict).WithHint("make it allow, ask or deny")
}

// WithDefaults fills in what is left out.
func (t Tool) WithDefaults() Tool {
	t.Timeout, t.Concurrency = cmp.Or(t.Timeout, DefaultToolTimeout), cmp.Or(t.Concurrency, DefaultToolConcurrency)
	t.Verdict = cmp.Or(t.Verdict, Allow)
	return t
}

// ToolFunc answers a call. Its arguments are a JSON object that the tool's schema
// lets pass, and what it returns is JSON; nothing is null. Its errors reach the
// program, with their kind. It obeys ctx, which is done when the call's time is over
// or nobody waits for it any more.
type ToolFunc func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error)

// Callable is a tool with what answers it, in the process that asks for a run.
type Callable struct {
	Tool
	Call ToolFunc
}

// ToolCall is one call of a tool that an exec has made.
type ToolCall struct {
	Tool string `json:"tool"`
	// Arguments is the SHA-256 of the arguments, as JSON in its canonical form.
	Arguments string `json:"arguments_sha256,omitempty"`
	// Verdict is what policy said, "" where it was not asked: such arguments are
	// none, or there is no such tool. Rules are those that found something.
	Verdict Verdict  `json:"verdict,omitempty"`
	Rules   []string `json:"rules,omitempty"`
	// Approver let it pass where policy asked.
	Approver string `json:"approver,omitempty"`
	// Kind and Error say why it has no result.
	Kind  string `json:"error_kind,omitempty"`
	Error string `json:"error,omitempty"`
	// Sent and Received are the sizes of arguments and result.
	Sent     Bytes     `json:"arguments_bytes"`
	Received Bytes     `json:"result_bytes"`
	Began    time.Time `json:"began"`
	Duration Duration  `json:"duration_ms"`
}
