package tools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Question is a call that policy is asked about.
type Question struct {
	Tool      sandbox.Tool
	Arguments json.RawMessage // an object, in canonical form
	Value     map[string]any  // the same, decoded
}

// Config says how an exec's calls are answered. Set, Judge and Record are required.
type Config struct {
	Set *Set
	// Judge says what policy decides. An error refuses, as does every verdict that
	// does not permit.
	Judge func(ctx context.Context, q Question) (sandbox.Decision, error)
	// Record writes a call down before it is answered, and with it what it spends of its
	// owner's budget, which is nil for most. What cannot be written down has no result.
	Record func(ctx context.Context, c sandbox.ToolCall, spend *sandbox.ToolSpend) error
	// Program says that what calls is to return a value.
	Program bool
	// Owner is whose calls they are, and Spent counts them beside those of other execs,
	// for rates and budgets of owners. nil counts those of this one.
	Owner string
	Spent *Spent
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// Way takes the calls of one exec. It is safe for concurrent use, and made by
// [NewWay].
type Way struct {
	cfg   Config
	share share

	mu    sync.Mutex
	spent map[string]int // calls, by tool
	told  []sandbox.ToolCall
	more  int

	returned returned
}

// NewWay returns a way for the calls of one exec. It starts nothing.
func NewWay(cfg Config) *Way {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Spent == nil {
		cfg.Spent = &Spent{}
	}
	return &Way{cfg: cfg, spent: map[string]int{}}
}

// Calls are those that have ended since it was asked last, and how many more there
// were than are told.
func (w *Way) Calls() (told []sandbox.ToolCall, more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	told, more = w.told, w.more
	w.told, w.more = nil, 0
	return told, more
}

func (w *Way) tell(c sandbox.ToolCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.told) >= sandbox.MaxToolCalls {
		w.more++
		return
	}
	w.told = append(w.told, c)
}

// recorded is one call, as it is written down.
type recorded struct {
	sandbox.ToolCall
	spend *sandbox.ToolSpend // nil is nothing
}

// Call takes one call its whole way. The result is JSON. Its errors are what the
// program is told: NotFound, Invalid, Denied, Exhausted, TimedOut, those of the tool,
// and Unavailable where the call could not be written down.
func (w *Way) Call(ctx context.Context, name string, arguments []byte) (json.RawMessage, error) {
	c := recorded{ToolCall: sandbox.ToolCall{Tool: cut(name), Sent: sandbox.Bytes(len(arguments)), Began: w.cfg.Now().UTC()}}
	result, err := w.answer(ctx, name, arguments, &c)
	c.Duration = sandbox.Duration(w.cfg.Now().Sub(c.Began))
	if err != nil {
		c.Kind, c.Error = sandbox.KindOf(err).String(), shortened(err.Error())
	}
	if err == nil {
		c.Received = sandbox.Bytes(len(result))
	}
	w.tell(c.ToolCall)
	if unwritten := w.cfg.Record(ctx, c.ToolCall, c.spend); unwritten != nil {
		return nil, sandbox.Errorf(sandbox.Unavailable, "the call could not be written down: %w", errors.Join(unwritten, err))
	}
	return result, err
}

// mostError bounds what is told of an error.
const mostError = 4 << 10

func shortened(text string) string {
	if len(text) > mostError {
		text = strings.ToValidUTF8(text[:mostError], "") + "…"
	}
	return text
}

// answer is Call, but for what is told of it.
func (w *Way) answer(ctx context.Context, name string, arguments []byte, c *recorded) (json.RawMessage, error) {
	t := w.cfg.Set.find(name)
	if t == nil {
		return nil, unknown(w.cfg.Set, name)
	}
	q, err := t.question(arguments)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(q.Arguments)
	c.Arguments, c.Sent = hex.EncodeToString(sum[:]), sandbox.Bytes(len(q.Arguments))
	d, err := w.cfg.Judge(ctx, q)
	c.Verdict = cmp.Or(d.Verdict, sandbox.Deny)
	for _, f := range d.Findings {
		c.Rules = append(c.Rules, f.ID)
	}
	if a := d.Approval; a != nil {
		c.Approver = a.By
	}
	if err != nil {
		return nil, err
	}
	if !d.Permits() {
		return nil, refusal(name, d)
	}
	if c.spend, err = w.spend(ctx, t); err != nil {
		return nil, err
	}
	result, err := t.run(ctx, q.Arguments)
	if err != nil {
		return nil, err
	}
	return t.checked(result)
}

// refusal says to a program why policy let a call not pass.
func refusal(name string, d sandbox.Decision) error {
	var why []string
	for _, f := range d.Findings {
		if f.Verdict != sandbox.Allow {
			why = append(why, f.ID+": "+f.Message)
		}
	}
	why = append(why, d.Refused)
	text := strings.TrimSuffix(strings.Join(why, "; "), "; ")
	return sandbox.Errorf(sandbox.Denied, "tool %s: %s", name, cmp.Or(text, "policy denies the call"))
}

// question checks the arguments of a call. Errors: Invalid.
func (t *tool) question(arguments []byte) (Question, error) {
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	canonical, value, err := decoded(arguments)
	if err != nil {
		return Question{}, sandbox.Errorf(sandbox.Invalid, "tool %s: its arguments are not JSON: %w", t.Name, err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return Question{}, sandbox.Errorf(sandbox.Invalid, "tool %s: its arguments are no object", t.Name)
	}
	if t.parameters != nil {
		if err := fits(t.parameters, canonical); err != nil {
			return Question{}, sandbox.Errorf(sandbox.Invalid, "tool %s: its arguments do not fit: %s", t.Name, shortened(err.Error()))
		}
	}
	return Question{Tool: t.Tool, Arguments: canonical, Value: object}, nil
}

// checked is a result in canonical form. Errors: Internal where it is not what was
// declared.
func (t *tool) checked(result json.RawMessage) (json.RawMessage, error) {
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	if len(result) > int(sandbox.MaxToolData) {
		return nil, sandbox.Errorf(sandbox.Exhausted, "tool %s: its result has more than %s", t.Name, sandbox.MaxToolData.Human())
	}
	canonical, _, err := decoded(result)
	if err == nil && t.result != nil {
		err = fits(t.result, canonical)
	}
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "tool %s: its result is not as declared: %s", t.Name, shortened(err.Error()))
	}
	return canonical, nil
}

// spend holds a caller to the tool's budgets and rate. Errors: Exhausted, and those of
// [Spent.Kept].
func (w *Way) spend(ctx context.Context, t *tool) (*sandbox.ToolSpend, error) {
	if err := w.cfg.Spent.recall(ctx, w.cfg.Owner, t.Tool, w.cfg.Now()); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.Budget > 0 && w.spent[t.Name] >= t.Budget {
		return nil, sandbox.Errorf(sandbox.Exhausted, "tool %s: the program has made its %d calls", t.Name, t.Budget)
	}
	spend, err := w.cfg.Spent.take(w.cfg.Owner, t.Tool, w.cfg.Now())
	if err == nil {
		w.spent[t.Name]++
	}
	return spend, err
}

// run waits for the tool's turn and has it answer. A function that goes on after its
// time keeps its turn: what it says then nobody hears.
func (t *tool) run(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(t.Timeout))
	defer cancel()
	late := func() error {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return sandbox.Errorf(sandbox.TimedOut, "tool %s: it has not answered within %s", t.Name, t.Timeout)
		}
		return sandbox.Errorf(sandbox.Unavailable, "tool %s: the call was given up", t.Name)
	}
	select {
	case t.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, late()
	}
	type answer struct {
		result json.RawMessage
		err    error
	}
	done := make(chan answer, 1)
	go func() { // it ends with the tool's function
		defer func() { <-t.turns }()
		result, err := t.guarded(ctx, arguments)
		done <- answer{result, err}
	}()
	select {
	case a := <-done:
		if a.err != nil && ctx.Err() != nil {
			return nil, late()
		}
		return a.result, a.err
	case <-ctx.Done():
		return nil, late()
	}
}

// guarded has a function that panics fail alone.
func (t *tool) guarded(ctx context.Context, arguments json.RawMessage) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = sandbox.Errorf(sandbox.Internal, "tool %s: it crashed: %s", t.Name, shortened(fmt.Sprint(p)))
		}
	}()
	return t.Call(ctx, arguments)
}
