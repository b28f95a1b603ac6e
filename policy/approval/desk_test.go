package approval_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/policy/approval"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// place is a state folder, which several desks share as processes do.
type place struct {
	store *sqlite.Store
	dir   string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{dir: t.TempDir()}
	p.store = p.open(t)
	return p
}

func (p *place) open(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (p *place) desk(t *testing.T, change func(*approval.Config)) *approval.Desk {
	t.Helper()
	c := approval.Config{Store: p.store, Poll: 5 * time.Millisecond, Patience: 20 * time.Second, Actor: "asker"}
	if change != nil {
		change(&c)
	}
	d, err := approval.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func question(digest string) sandbox.Approval {
	return sandbox.Approval{
		Digest: digest, Actor: "asker", Exec: sandbox.NewID(),
		Question: sandbox.ApprovalQuestion{Kind: "exec", Command: []string{"env"}},
		Decision: sandbox.Decision{Verdict: sandbox.Ask, Level: sandbox.High, Findings: []sandbox.Finding{{ID: "X-1", Severity: sandbox.High}}},
	}
}

// answerWhenAsked answers the first question that appears, from another process.
func (p *place) answerWhenAsked(t *testing.T, ans sandbox.ApprovalAnswer) <-chan error {
	t.Helper()
	other := p.desk(t, func(c *approval.Config) { c.Store = p.open(t) })
	done := make(chan error, 1)
	go func() {
		for t.Context().Err() == nil {
			list, err := other.Approvals(context.Background(), sandbox.ApprovalFilter{States: []sandbox.ApprovalState{sandbox.ApprovalPending}})
			if err != nil {
				done <- err
				return
			}
			if len(list) > 0 {
				ans.ID = list[0].ID
				_, err := other.Answer(context.Background(), ans)
				done <- err
				return
			}
			time.Sleep(2 * time.Millisecond) // between two looks
		}
	}()
	return done
}

func settle(t *testing.T, d *approval.Desk, a sandbox.Approval, mode sandbox.ApproveMode, ask sandbox.Asker) (*sandbox.ApprovedBy, string) {
	t.Helper()
	by, why, err := d.Settle(t.Context(), a, mode, ask)
	if err != nil {
		t.Fatal(err)
	}
	if (by == nil) == (why == "") {
		t.Fatalf("approved %+v and refused %q", by, why)
	}
	return by, why
}

func TestAnsweredByAnotherProcess(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	done := p.answerWhenAsked(t, sandbox.ApprovalAnswer{Approve: true, By: "bob", Via: "api"})
	by, _ := settle(t, p.desk(t, nil), question("d1"), sandbox.ApproveAsk, nil)
	if by == nil || by.By != "bob" || by.Digest != "d1" || <-done != nil {
		t.Fatalf("%+v", by)
	}
	// It was for once: the same asks again, and so does another digest.
	for _, digest := range []string{"d1", "d2"} {
		done = p.answerWhenAsked(t, sandbox.ApprovalAnswer{By: "bob", Via: "api", Note: "not today"})
		if by, why := settle(t, p.desk(t, nil), question(digest), sandbox.ApproveAsk, nil); by != nil || why != "denied by bob: not today" || <-done != nil {
			t.Errorf("%s again: %+v %q", digest, by, why)
		}
	}
}

// A question that is left waits by itself, once, and its answer lets the same pass.
func TestLater(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d := p.desk(t, nil)
	ids := map[string]bool{}
	for range 2 {
		by, why := settle(t, d, question("d1"), sandbox.ApproveLater, nil)
		if by != nil || !strings.Contains(why, "caisson approvals approve ") {
			t.Fatalf("%+v, %q", by, why)
		}
		ids[why] = true
	}
	list, err := d.Approvals(t.Context(), sandbox.ApprovalFilter{States: []sandbox.ApprovalState{sandbox.ApprovalPending}})
	if err != nil || len(list) != 1 || len(ids) != 1 {
		t.Fatalf("%d questions, %v, %v", len(list), ids, err)
	}
	if left := list[0].Expires.Sub(list[0].Asked); left != time.Hour {
		t.Errorf("it waits for %v", left)
	}
	if _, err := d.Answer(t.Context(), sandbox.ApprovalAnswer{ID: list[0].ID, Approve: true, By: "bob"}); err != nil {
		t.Fatal(err)
	}
	if by, _ := settle(t, d, question("d2"), sandbox.ApproveLater, nil); by != nil {
		t.Error("another digest passed")
	}
	if by, _ := settle(t, d, question("d1"), sandbox.ApproveLater, nil); by == nil || by.By != "bob" {
		t.Errorf("approved, it did not pass: %+v", by)
	}
	if by, _ := settle(t, d, question("d1"), sandbox.ApproveLater, nil); by != nil {
		t.Error("it passed twice")
	}
	never := p.desk(t, func(c *approval.Config) { c.Mode = sandbox.ApproveNever })
	if _, why := settle(t, never, question("d3"), sandbox.ApproveLater, nil); strings.Contains(why, "waits") {
		t.Errorf("approvals are off: %q", why)
	}
	yes := func(context.Context, sandbox.Approval) (sandbox.ApprovalAnswer, error) {
		return sandbox.ApprovalAnswer{Approve: true, By: "ann"}, nil
	}
	if by, _ := settle(t, d, question("d4"), sandbox.ApproveLater, yes); by == nil || by.By != "ann" {
		t.Errorf("whom there is to ask is asked: %+v", by)
	}
}

func TestAlways(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	done := p.answerWhenAsked(t, sandbox.ApprovalAnswer{Approve: true, Always: true, By: "bob"})
	first, _ := settle(t, p.desk(t, nil), question("d1"), sandbox.ApproveAsk, nil)
	if first == nil || <-done != nil {
		t.Fatal("not approved")
	}
	d := p.desk(t, nil)
	for range 3 {
		if by, _ := settle(t, d, question("d1"), sandbox.ApproveDefault, nil); by == nil || !by.Always || by.ID != first.ID {
			t.Errorf("%+v", by)
		}
	}
	if by, _ := settle(t, d, question("d2"), sandbox.ApproveDefault, nil); by != nil {
		t.Error("another digest passed")
	}
	if by, _ := settle(t, d, question("d1"), sandbox.ApproveNever, nil); by != nil {
		t.Error("it passed although approvals are off")
	}
	if _, err := d.Revoke(t.Context(), first.ID, "carol"); err != nil {
		t.Fatal(err)
	}
	if by, _ := settle(t, d, question("d1"), sandbox.ApproveDefault, nil); by != nil {
		t.Error("it passed after it was taken back")
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d := p.desk(t, nil)
	if by, why := settle(t, d, question("d"), sandbox.ApproveDefault, nil); by != nil || !strings.Contains(why, "--approve ask") {
		t.Errorf("nobody to ask: %+v %q", by, why)
	}
	if by, _ := settle(t, d, question("d"), sandbox.ApproveNever, nil); by != nil {
		t.Error("never: approved")
	}
	if by, _ := settle(t, d, question("d"), sandbox.ApproveAlways, nil); by == nil || by.Via != "always" {
		t.Errorf("always: %+v", by)
	}
	asked := 0
	ask := func(_ context.Context, a sandbox.Approval) (sandbox.ApprovalAnswer, error) {
		asked++
		return sandbox.ApprovalAnswer{Approve: true, By: "me", Via: "terminal"}, nil
	}
	if by, _ := settle(t, d, question("d"), sandbox.ApproveDefault, ask); by == nil || by.Via != "terminal" || asked != 1 {
		t.Errorf("in person: %+v, asked %d times", by, asked)
	}
	if _, err := approval.New(approval.Config{Store: p.store, Mode: "maybe"}); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a mode that is not known: %v", err)
	}
	if by, _, err := d.Settle(t.Context(), question(""), sandbox.ApproveAlways, nil); by != nil || err != nil {
		t.Errorf("without a digest: %+v, %v", by, err)
	}
}

// Two answers race: the first wins, and the second is told who was first.
func TestFirstAnswerWins(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d := p.desk(t, nil)
	for range 20 {
		settled := make(chan *sandbox.ApprovedBy, 1)
		go func() {
			by, _, _ := d.Settle(context.WithoutCancel(t.Context()), question("race"), sandbox.ApproveAsk, nil)
			settled <- by
		}()
		var id sandbox.ID
		for id == "" {
			list, err := d.Approvals(t.Context(), sandbox.ApprovalFilter{States: []sandbox.ApprovalState{sandbox.ApprovalPending}})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) > 0 {
				id = list[0].ID
			}
		}
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, yes := range []bool{true, false} {
			wg.Go(func() {
				_, errs[i] = d.Answer(t.Context(), sandbox.ApprovalAnswer{ID: id, Approve: yes, By: map[bool]string{true: "yes", false: "no"}[yes]})
			})
		}
		wg.Wait()
		by := <-settled
		won, lost := errs[0], errs[1]
		if by == nil {
			won, lost = lost, won
		}
		if won != nil || !errors.Is(lost, sandbox.Conflict) || !strings.Contains(lost.Error(), "already") {
			t.Fatalf("approved %+v, the winner was told %v, the loser %v", by, won, lost)
		}
	}
}

// An approval for once is used by one run, however many wait for it.
func TestOnceIsOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	now := time.Now()
	gone := p.desk(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan sandbox.ID, 1)
	settled := make(chan error, 1)
	go func() {
		_, _, err := gone.Settle(ctx, question("d"), sandbox.ApproveDefault, func(ctx context.Context, a sandbox.Approval) (sandbox.ApprovalAnswer, error) {
			asked <- a.ID
			<-ctx.Done()
			return sandbox.ApprovalAnswer{}, ctx.Err()
		})
		settled <- err
	}()
	id := <-asked
	cancel()
	if err := <-settled; !errors.Is(err, context.Canceled) {
		t.Fatalf("the asker gave up: %v", err)
	}
	if _, err := gone.Answer(t.Context(), sandbox.ApprovalAnswer{ID: id, Approve: true, By: "late"}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("a question that was withdrawn was answered: %v", err)
	}
	// One whose asker died without a word is answered, and used by the next.
	a := question("orphan")
	a.ID, a.State, a.Asked, a.Expires = sandbox.NewID(), sandbox.ApprovalPending, now, now.Add(time.Minute)
	if err := p.store.Apply(t.Context(), sandbox.Transaction{AskApproval: &a}); err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Answer(t.Context(), sandbox.ApprovalAnswer{ID: a.ID, Approve: true, By: "bob"}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for range 8 {
		wg.Go(func() {
			by, _, err := gone.Settle(t.Context(), question("orphan"), sandbox.ApproveDefault, nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if by != nil {
				passed++
			}
		})
	}
	wg.Wait()
	if passed != 1 {
		t.Errorf("%d runs passed by one approval", passed)
	}
}

func TestExpiryRefuses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d := p.desk(t, func(c *approval.Config) { c.Patience = 30 * time.Millisecond })
	if by, why := settle(t, d, question("d"), sandbox.ApproveAsk, nil); by != nil || !strings.Contains(why, "in time") {
		t.Errorf("%+v %q", by, why)
	}
	list, err := d.Approvals(t.Context(), sandbox.ApprovalFilter{})
	if err != nil || len(list) != 1 || list[0].State != sandbox.ApprovalExpired {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := d.Answer(t.Context(), sandbox.ApprovalAnswer{ID: list[0].ID, Approve: true}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("answered after its time: %v", err)
	}
	// One that is pending in the store, and whose asker is dead.
	a := question("old")
	a.ID, a.State, a.Asked, a.Expires = sandbox.NewID(), sandbox.ApprovalPending, time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	if err := p.store.Apply(t.Context(), sandbox.Transaction{AskApproval: &a}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Answer(t.Context(), sandbox.ApprovalAnswer{ID: a.ID, Approve: true}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("an old question was answered: %v", err)
	}
	// An approval for once that nobody used in its time is no more.
	b := question("held")
	b.ID, b.State, b.Asked, b.Expires = sandbox.NewID(), sandbox.ApprovalApproved, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	if err := p.store.Apply(t.Context(), sandbox.Transaction{AskApproval: &b}); err != nil {
		t.Fatal(err)
	}
	if by, _ := settle(t, d, question("held"), sandbox.ApproveDefault, nil); by != nil {
		t.Error("an approval was used after its time")
	}
}

// Every question and every answer is in the audit, whose chain holds.
func TestAudited(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d := p.desk(t, nil)
	settle(t, d, question("a"), sandbox.ApproveAlways, nil)
	done := p.answerWhenAsked(t, sandbox.ApprovalAnswer{By: "bob", Note: "no"})
	settle(t, d, question("b"), sandbox.ApproveAsk, nil)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for e, err := range p.store.Events(t.Context(), sandbox.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
		if e.Kind == sandbox.EventApprovalAsked && !strings.Contains(string(e.Data), `"X-1"`) {
			t.Errorf("a question without its rules: %s", e.Data)
		}
	}
	if got := strings.Join(kinds, " "); got != "approval.asked approval.answered approval.asked approval.answered" {
		t.Errorf("events: %s", got)
	}
	if r, err := p.store.Verify(t.Context()); err != nil || !r.OK {
		t.Errorf("the audit does not verify: %+v, %v", r, err)
	}
}

// What approves every program approves no host that is not listed, and nobody is told
// of ways to be asked that connections do not have.
func TestHosts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	host := question("d1")
	host.Question = sandbox.ApprovalQuestion{Kind: sandbox.QuestionConnection, Host: "a.test", Port: 443}
	if by, why := settle(t, p.desk(t, nil), host, sandbox.ApproveAlways, nil); by != nil || !strings.Contains(why, "about no hosts") {
		t.Errorf("always: %+v, %q", by, why)
	}
	if by, why := settle(t, p.desk(t, nil), host, sandbox.ApproveDefault, nil); by != nil || why != "there is nobody to ask" {
		t.Errorf("nobody: %+v, %q", by, why)
	}
	host.Question.Listed = true
	if by, why := settle(t, p.desk(t, nil), host, sandbox.ApproveAlways, nil); by == nil {
		t.Errorf("what is listed: %q", why)
	}
}
