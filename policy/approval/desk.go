// Package approval settles what policy asks about: it keeps questions where
// other processes see them, asks a person, a program or a server, and takes the
// first answer. It knows nothing of how programs are judged or run.
//
// An approval is bound to a digest of exactly what was asked. It is used once
// unless its answer says always. What nobody answers in time is refused. Every
// question and every answer is an event of the audit.
package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Store is what a desk needs in order to remember.
type Store interface {
	Apply(ctx context.Context, c sandbox.Transaction) error
	// Approval returns one approval. Errors: NotFound.
	Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error)
	// Approvals returns those that a filter selects, the newest first.
	Approvals(ctx context.Context, f sandbox.ApprovalFilter) ([]sandbox.Approval, error)
}

// Config is what a desk works with. Store is required.
type Config struct {
	Store Store
	// Approver is a program or a server that is asked beside the run's own
	// asker; nil is none. It makes [sandbox.ApproveDefault] wait.
	Approver sandbox.Asker
	// Letters names the receiver of letters whom questions go to beside, as a
	// server of the outbox: the desk is its correspondent. "" is none. It makes
	// [sandbox.ApproveDefault] wait, too. Posted is told that there is one; nil
	// tells nobody.
	Letters string
	Posted  func()
	// Mode stands for [sandbox.ApproveDefault].
	Mode sandbox.ApproveMode
	// Patience is how long a question waits; 5 minutes where 0. An approval
	// for once that came when its asker had gone holds for Hold, 1 hour where 0.
	Patience, Hold time.Duration
	// Poll is how often the store is looked at for another process's answer;
	// 100 ms where 0.
	Poll  time.Duration
	Actor string
	Now   func() time.Time // nil is [time.Now]
	Log   *slog.Logger     // nil discards
}

// Desk settles questions. It is safe for concurrent use.
type Desk struct{ c Config }

// New checks a Config and starts nothing. Errors: Invalid.
func New(c Config) (*Desk, error) {
	if c.Store == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "approval: no store")
	}
	if err := c.Mode.Check(); err != nil {
		return nil, err
	}
	if c.Patience <= 0 {
		c.Patience = 5 * time.Minute
	}
	if c.Hold <= 0 {
		c.Hold = time.Hour
	}
	if c.Poll <= 0 {
		c.Poll = 100 * time.Millisecond
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Posted == nil {
		c.Posted = func() {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Desk{c}, nil
}

// Why a question was not answered with yes.
const (
	refusedNever  = "nobody is asked: approvals are off"
	refusedNobody = "there is nobody to ask here; on a terminal caisson asks, --approve ask waits for an answer by caisson approvals, " +
		"--approve always runs it unasked, and a waiver allows it for good (docs/policy.md)"
	refusedNoHost  = "there is nobody to ask"
	refusedAlways  = "--approve always is about programs, and about no hosts"
	refusedExpired = "nobody approved it in time"
)

// Settle has a question answered, and waits for that. It returns who approved,
// or why nobody did. Errors: the context's, and the store's.
func (d *Desk) Settle(ctx context.Context, a sandbox.Approval, mode sandbox.ApproveMode, ask sandbox.Asker) (*sandbox.ApprovedBy, string, error) {
	if mode == sandbox.ApproveDefault || mode == sandbox.ApproveLater && d.c.Mode != sandbox.ApproveDefault {
		mode = d.c.Mode
	}
	if a.Digest == "" {
		return nil, "it cannot be named exactly", nil
	}
	if mode == sandbox.ApproveNever {
		return nil, refusedNever, nil
	}
	unlisted := a.Question.Kind == sandbox.QuestionConnection && !a.Question.Listed
	if mode == sandbox.ApproveAlways && unlisted {
		return nil, refusedAlways, nil // who trusts a program did not trust the hosts that it finds
	}
	who := sandbox.CallerFrom(ctx)
	a.Owner, a.Actor = who.Owner, cmp.Or(who.Name, a.Actor)
	if by, err := d.earlier(ctx, a.Digest, a.Owner); by != nil || err != nil {
		return by, "", err
	}
	now := d.c.Now().UTC()
	a.ID, a.State, a.Asked, a.Expires = sandbox.NewID(), sandbox.ApprovalPending, now, now.Add(d.c.Patience)
	if mode == sandbox.ApproveAlways {
		return d.approveAll(ctx, a)
	}
	if mode != sandbox.ApproveAsk && ask == nil && !d.others() {
		if mode == sandbox.ApproveLater {
			return d.leave(ctx, a)
		}
		if a.Question.Kind == sandbox.QuestionConnection {
			return nil, refusedNoHost, nil
		}
		return nil, refusedNobody, nil
	}
	err := d.c.Store.Apply(ctx, sandbox.Transaction{
		AskApproval: &a, PostLetters: d.letters(a, ask == nil), Events: []sandbox.Event{d.asked(a)},
	})
	if err != nil {
		return nil, "", err
	}
	d.c.Posted()
	return d.await(ctx, a, ask)
}

// leave leaves a question in the queue, for as long as an approval would hold.
// Where it is there already, it is not asked twice.
func (d *Desk) leave(ctx context.Context, a sandbox.Approval) (*sandbox.ApprovedBy, string, error) {
	list, err := d.c.Store.Approvals(ctx, sandbox.ApprovalFilter{Digest: a.Digest, Owner: &a.Owner, States: []sandbox.ApprovalState{sandbox.ApprovalPending}})
	if err != nil {
		return nil, "", err
	}
	for _, there := range list {
		if a.Asked.Before(there.Expires) {
			return nil, waits(there), nil
		}
	}
	a.Expires = a.Asked.Add(d.c.Hold)
	return nil, waits(a), d.c.Store.Apply(ctx, sandbox.Transaction{AskApproval: &a, Events: []sandbox.Event{d.asked(a)}})
}

// waits says how a question that was left is answered.
func waits(a sandbox.Approval) string {
	return fmt.Sprintf("question %s waits for an answer: a person can give it with caisson approvals approve %s, and then the same passes", a.ID.Short(), a.ID.Short())
}

// others reports whether there is a program or a server to ask.
func (d *Desk) others() bool { return d.c.Approver != nil || d.c.Letters != "" }

// earlier uses an approval that is there already. Another owner's is none.
func (d *Desk) earlier(ctx context.Context, digest, owner string) (*sandbox.ApprovedBy, error) {
	list, err := d.c.Store.Approvals(ctx, sandbox.ApprovalFilter{Digest: digest, Owner: &owner, States: []sandbox.ApprovalState{sandbox.ApprovalApproved}})
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if !a.Always && d.c.Now().After(a.Expires) {
			continue
		}
		by, err := d.use(ctx, a)
		if errors.Is(err, sandbox.Conflict) {
			continue // somebody was quicker
		}
		return by, err
	}
	return nil, nil //nolint:nilnil // there is none, and that is no error
}

// use takes an approval that was given.
func (d *Desk) use(ctx context.Context, a sandbox.Approval) (*sandbox.ApprovedBy, error) {
	by := &sandbox.ApprovedBy{ID: a.ID, By: a.By, Via: a.Via, Always: a.Always, Digest: a.Digest}
	a.Used = d.c.Now().UTC()
	if !a.Always {
		a.State = sandbox.ApprovalUsed
	}
	return by, d.c.Store.Apply(ctx, sandbox.Transaction{MoveApproval: &sandbox.ApprovalMove{From: sandbox.ApprovalApproved, To: a}})
}

// approveAll answers a question with yes because its asker says that everything
// is to be approved.
func (d *Desk) approveAll(ctx context.Context, a sandbox.Approval) (*sandbox.ApprovedBy, string, error) {
	a.State, a.Answered, a.Used, a.By, a.Via = sandbox.ApprovalUsed, a.Asked, a.Asked, a.Actor, "always"
	err := d.c.Store.Apply(ctx, sandbox.Transaction{AskApproval: &a, Events: []sandbox.Event{d.asked(a), d.answered(a)}})
	if err != nil {
		return nil, "", err
	}
	return &sandbox.ApprovedBy{ID: a.ID, By: a.By, Via: a.Via, Digest: a.Digest}, "", nil
}

// Answer answers a question. Of two answers the first wins: the second is a
// Conflict that says who was first. Errors: NotFound too.
func (d *Desk) Answer(ctx context.Context, ans sandbox.ApprovalAnswer) (sandbox.Approval, error) {
	a, err := d.c.Store.Approval(ctx, ans.ID)
	if err != nil {
		return a, err
	}
	now := d.c.Now().UTC()
	if a.State == sandbox.ApprovalPending && now.After(a.Expires) {
		return d.expire(ctx, a)
	}
	if a.State != sandbox.ApprovalPending {
		return a, tooLate(a)
	}
	a.Answered, a.By, a.Via, a.Note, a.State = now, ans.By, ans.Via, ans.Note, sandbox.ApprovalDenied
	if ans.Approve {
		a.State, a.Always, a.Expires = sandbox.ApprovalApproved, ans.Always, now.Add(d.c.Hold)
	}
	err = d.c.Store.Apply(ctx, sandbox.Transaction{
		MoveApproval: &sandbox.ApprovalMove{From: sandbox.ApprovalPending, To: a}, Events: []sandbox.Event{d.answered(a)},
	})
	if errors.Is(err, sandbox.Conflict) {
		if first, again := d.c.Store.Approval(ctx, ans.ID); again == nil {
			return first, tooLate(first)
		}
	}
	return a, err
}

func tooLate(a sandbox.Approval) error {
	who := ""
	if a.By != "" {
		who = " by " + a.By
	}
	state := a.State
	if state == sandbox.ApprovalUsed {
		state = "approved, and used,"
	}
	return sandbox.Errorf(sandbox.Conflict, "question %s is %s already%s", a.ID.Short(), state, who).
		WithHint("see it with: caisson approvals show %s", a.ID.Short())
}

// expire writes down that nobody answered in time.
func (d *Desk) expire(ctx context.Context, a sandbox.Approval) (sandbox.Approval, error) {
	a.State, a.Answered = sandbox.ApprovalExpired, d.c.Now().UTC()
	err := d.c.Store.Apply(ctx, sandbox.Transaction{
		MoveApproval: &sandbox.ApprovalMove{From: sandbox.ApprovalPending, To: a}, Events: []sandbox.Event{d.answered(a)},
	})
	if err != nil && !errors.Is(err, sandbox.Conflict) {
		return a, err
	}
	return a, tooLate(a)
}

// Revoke takes back an approval that holds for always, or was not used yet.
// Error: Conflict where there is nothing to take back.
func (d *Desk) Revoke(ctx context.Context, id sandbox.ID, by string) (sandbox.Approval, error) {
	a, err := d.c.Store.Approval(ctx, id)
	if err != nil {
		return a, err
	}
	if a.State != sandbox.ApprovalApproved {
		return a, tooLate(a)
	}
	a.State, a.By, a.Via, a.Answered = sandbox.ApprovalDenied, by, "api", d.c.Now().UTC()
	err = d.c.Store.Apply(ctx, sandbox.Transaction{
		MoveApproval: &sandbox.ApprovalMove{From: sandbox.ApprovalApproved, To: a}, Events: []sandbox.Event{d.answered(a)},
	})
	if errors.Is(err, sandbox.Conflict) {
		if now, again := d.c.Store.Approval(ctx, id); again == nil {
			return now, tooLate(now)
		}
	}
	return a, err
}

// Approvals lists questions, the newest first. One whose time is over is shown
// as expired.
func (d *Desk) Approvals(ctx context.Context, f sandbox.ApprovalFilter) ([]sandbox.Approval, error) {
	list, err := d.c.Store.Approvals(ctx, f)
	for i := range list {
		if a := &list[i]; a.State == sandbox.ApprovalPending && d.c.Now().After(a.Expires) {
			a.State = sandbox.ApprovalExpired
		}
	}
	return list, err
}

// askedData and answeredData are what the events say: rule ids and digests, and
// no text of the program's.
type askedData struct {
	ID      sandbox.ID `json:"id"`
	Digest  string     `json:"digest"`
	Kind    string     `json:"kind"`
	Rules   []string   `json:"rules"`
	Policy  string     `json:"policy_revision,omitempty"`
	Expires time.Time  `json:"expires"`
}

type answeredData struct {
	ID     sandbox.ID            `json:"id"`
	Digest string                `json:"digest"`
	State  sandbox.ApprovalState `json:"state"`
	By     string                `json:"by,omitempty"`
	Via    string                `json:"via,omitempty"`
	Always bool                  `json:"always,omitempty"`
	Note   string                `json:"note,omitempty"`
}

func (d *Desk) asked(a sandbox.Approval) sandbox.Event {
	rules := []string{}
	for _, f := range a.Decision.Findings {
		rules = append(rules, f.ID)
	}
	return d.event(sandbox.EventApprovalAsked, a, askedData{a.ID, a.Digest, a.Question.Kind, rules, a.Decision.PolicyRevision, a.Expires})
}

func (d *Desk) answered(a sandbox.Approval) sandbox.Event {
	return d.event(sandbox.EventApprovalAnswered, a, answeredData{a.ID, a.Digest, a.State, a.By, a.Via, a.Always, a.Note})
}

func (d *Desk) event(kind string, a sandbox.Approval, v any) sandbox.Event {
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(`{"error":"not encodable"}`)
	}
	return sandbox.Event{Kind: kind, Time: d.c.Now().UTC(), Actor: d.c.Actor, Owner: a.Owner, Session: a.Session, Exec: a.Exec, Data: b}
}

// Approval returns one question. Errors: NotFound.
func (d *Desk) Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error) {
	return d.c.Store.Approval(ctx, id)
}
