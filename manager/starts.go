package manager

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Start is what an agent tells of a program that is about to be started.
type Start = client.Start

// StartQuestion is a program that an exec, which runs, is about to start.
type StartQuestion struct {
	// Exec is what was asked about the exec itself. Its Workspace is the one that it
	// runs in, as it is now.
	Exec  *ExecQuestion
	Start Start
	// Decision let the exec run.
	Decision sandbox.Decision
	// Hold is called before a person is asked: the exec stands still from then on.
	Hold func()
}

// starting is how an exec's starts are seen by this process. nil is that they are not.
type starting struct {
	m     *Manager
	judge *client.Judge
	asked *ExecQuestion    // about the exec itself
	let   sandbox.Decision // that let it run
	clock *client.Clock    // the exec's, which stands still while a person is asked
	event sandbox.Event    // that tells of them
	over  chan struct{}    // closed once nothing more comes
	// settled is closed once all is written down of one that was kept.
	settled chan struct{}
	stop    context.CancelFunc
	watch   func(sandbox.Start) // is shown them; nil is nobody
	once    sync.Once
	shell   *starting     // whose judge this is, of what runs in a shell; nil of others
	again   bool          // it takes another's place, and was told what that had been told
	seated  atomic.Bool   // it has that
	mark    chan struct{} // told once that has told all
	none    bool          // the exec has ended and started nothing

	mu    sync.Mutex
	told  []sandbox.Start
	place map[uint64]int // of a start in told, by its number
	count int            // of those that were not told one by one
	run   *starting      // of a shell, what runs in it, whose starts they are; nil is nothing

	calling sync.Mutex                                   // held while the judge is opened
	open    func(context.Context) (*client.Judge, error) // opens it once it is called for; nil once that is done, or late
	late    *time.Timer                                  // calls for it

	showing sync.Mutex // held while one is shown

	asking sync.Mutex // held while a person is asked: one question at a time
}

// mostJudged bounds the starts of one exec that are judged at once.
const mostJudged = 16

// seesStarts reports whether what is started in the sandbox of a plan will be seen, as
// far as can be known before its agent says so.
func (m *Manager) seesStarts(ctx context.Context, plan *runtimes.Plan) (bool, error) {
	if !m.cfg.Starts.Sees() {
		return false, nil
	}
	rt, err := m.runtimeOf(plan.Runtime)
	if err != nil {
		return false, err
	}
	if s, ok := rt.(runtimes.StartsSeer); ok {
		return s.SeesStarts(), nil
	}
	caps, err := m.capabilities(ctx, plan.Runtime, rt)
	return err == nil && caps.SeesStarts(plan.Spec.OCIRuntime), err
}

// seeStarts has the starts of a step of an exec seen that is about to begin, which the
// agent knows by an id, where that is the rule and can be had. Errors: Unsupported where
// it must be had.
func (m *Manager) seeStarts(ctx context.Context, b *box.Box, r *resolved, whose sandbox.ID, d sandbox.Decision, watch func(sandbox.Start)) (*starting, error) {
	rule := m.cfg.Starts
	if !rule.Sees() {
		return nil, nil //nolint:nilnil // nothing that is asked of it minds
	}
	if !b.Client.SeesStarts() {
		if rule.Required || r.counted.Load() {
			return nil, sandbox.Errorf(sandbox.Unsupported, "what programs start cannot be seen in this sandbox, and has to be").
				WithHint("use the docker runtime with runc, or bubblewrap as root, on Linux 5.19 or newer, or set starts.required to false")
		}
		return nil, nil //nolint:nilnil // as above: the Result says so
	}
	asked := r.question
	asked.in(b)
	s := m.newStarting(&asked, d, b)
	s.watch = watch
	if r.shell != nil { // the shell's process starts things, and this process may judge it already
		if whose = r.shell.record.ID; s.lent(whose) {
			return s, nil
		}
	}
	open := func(ctx context.Context) (*client.Judge, error) {
		return b.Client.Judge(ctx, whose, client.JudgeConfig{Rules: d.PolicyRevision})
	}
	if r.shell == nil && !asked.Background {
		s.open = open
		return s, nil
	}
	var err error
	if s.judge, err = open(ctx); err != nil {
		return nil, err
	}
	s.begin(ctx)
	return s, nil
}

// callPatience is after how long the judge of an exec is there in any case: who reads its
// output may hold up the agent's call.
const callPatience = 100 * time.Millisecond

// call opens the judge of an exec that has to have one now. Where that fails the
// connection is broken, as the exec finds too.
func (s *starting) call(ctx context.Context) {
	s.calling.Lock()
	defer s.calling.Unlock()
	if s.open == nil {
		return
	}
	opening, cancel := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
	defer cancel()
	judge, err := s.open(opening)
	if s.open = nil; err != nil {
		return
	}
	s.judge = judge
	s.begin(ctx)
}

// uncall has no judge opened from now on, and returns the one that there is, or nil.
func (s *starting) uncall() *client.Judge {
	s.calling.Lock()
	defer s.calling.Unlock()
	if s.late != nil {
		s.late.Stop()
	}
	s.open = nil
	return s.judge
}

// in has a question be about what is in a box now.
func (q *ExecQuestion) in(b *box.Box) {
	q.Workspace = &space{role: q.Run.Role, index: map[string]int{}, connect: func(context.Context) (*client.Client, error) { return b.Client, nil }}
	q.Plan = func(context.Context) (runtimes.Plan, error) { return b.Plan, nil }
}

func (m *Manager) newStarting(asked *ExecQuestion, d sandbox.Decision, b *box.Box) *starting {
	return &starting{
		m: m, asked: asked, let: d, clock: &client.Clock{}, over: make(chan struct{}), settled: make(chan struct{}), place: map[uint64]int{},
		event: sandbox.Event{Kind: sandbox.EventExecStarts, Session: asked.Run.Session, Sandbox: b.ID, Exec: asked.ID},
	}
}

// begin judges from now on, until [starting.close] whatever becomes of ctx.
func (s *starting) begin(ctx context.Context) {
	judging, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go s.serve(judging)
}

// into says to the agent what is wanted of it.
func (s *starting) into(ctx context.Context, cmd *client.Command) {
	if s == nil {
		return
	}
	cmd.Clock, cmd.Starts = s.clock, &client.Starts{
		Ask: s.m.cfg.Starts.Mode == sandbox.StartsJudge, End: !s.m.cfg.Starts.Goes, Variables: s.m.cfg.StartVariables, Rules: s.let.PolicyRevision,
	}
	s.calling.Lock()
	defer s.calling.Unlock()
	if s.open != nil {
		call := func() { s.call(ctx) }
		cmd.Starts.Call, s.late = call, time.AfterFunc(callPatience, call)
	}
}

// hold notes that a person is asked about what is started in a sandbox, or no more.
func (m *Manager) hold(box sandbox.ID, more int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[box] += more; m.held[box] == 0 {
		delete(m.held, box)
	}
}

// checkHeld refuses to freeze a sandbox in which something waits for a person's answer:
// the kernel freezes nobody who waits so. Errors: Conflict.
func (m *Manager) checkHeld(box sandbox.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[box] == 0 {
		return nil
	}
	return sandbox.Errorf(sandbox.Conflict, "a person is being asked about what a program starts").WithHint("answer first: caisson approvals list")
}

// serve hears what is started, and answers.
func (s *starting) serve(ctx context.Context) {
	defer close(s.over)
	var judging sync.WaitGroup
	defer judging.Wait()
	defer s.stop()
	places := make(chan struct{}, mostJudged)
	for {
		t, err := s.judge.Next()
		if err != nil {
			return
		}
		to := s.taker()
		switch {
		case t.End != nil:
			if !to.ended(t) && to != s {
				s.ended(t)
			}
		case t.N == 0:
			s.seated.Store(true)
			to.marked(t.LeftOut)
		case !t.Asks:
			to.note(t, nil, nil)
		default:
			places <- struct{}{}
			judging.Go(func() {
				defer func() { <-places }()
				to.answer(ctx, t)
			})
		}
	}
}

// answer judges one start.
func (s *starting) answer(ctx context.Context, t Start) {
	held := false
	hold := func() {
		s.asking.Lock()
		held = true
		s.m.hold(s.event.Sandbox, 1)
		s.clock.Stop()
		_ = s.judge.Answer(t.N, client.Verdict{Hold: true}) // who is gone waits for nothing
	}
	defer func() {
		if held {
			s.clock.Go()
			s.m.hold(s.event.Sandbox, -1)
			s.asking.Unlock()
		}
	}()
	a, err := s.m.cfg.Gate(ctx, Question{Start: &StartQuestion{Exec: s.asked, Start: t, Decision: s.let, Hold: hold}})
	v := client.Verdict{Allow: err == nil && a.Decision.Permits(), Same: a.Same, Any: a.Any}
	if !v.Allow {
		v = client.Verdict{Cause: itStarted(t) + whyRefused(a.Decision, err)}
	}
	s.note(t, &a.Decision, err)
	_ = s.judge.Answer(t.N, v) // as above
}

// itStarted begins the cause of an exec's end by a start that was refused.
func itStarted(t Start) string { return "it started " + t.Path + ": " }

// whyRefused says why a start was refused, in a few words.
func whyRefused(d sandbox.Decision, err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "its exec has ended"
	case err != nil:
		return err.Error()
	case d.Refused != "":
		return d.Refused
	}
	for _, f := range d.Findings {
		if f.Verdict == d.Verdict || len(d.Findings) == 1 {
			return f.ID + " " + f.Title
		}
	}
	return "policy says " + string(d.Verdict)
}

// note keeps a start for the Result.
func (s *starting) note(t Start, d *sandbox.Decision, err error) {
	told := toldOf(t)
	if d != nil {
		for _, f := range d.Findings {
			told.Rules = append(told.Rules, f.ID)
		}
		slices.Sort(told.Rules)
		told.Rules = slices.Compact(told.Rules)
		if err != nil || !d.Permits() {
			told.Verdict, told.Why = sandbox.Deny, whyRefused(*d, err)
		}
	}
	s.mu.Lock()
	// The ones that were refused have room beside the others.
	n := len(s.told)
	if n >= sandbox.MaxStarts && (told.Verdict != sandbox.Deny || n >= 2*sandbox.MaxStarts) {
		s.count++
		s.mu.Unlock()
		return
	}
	s.place[t.N], s.told = n, append(s.told, told)
	s.mu.Unlock()
	s.show(told)
}

// toldOf is a start as it is told.
func toldOf(t Start) sandbox.Start {
	told := sandbox.Start{
		PID: t.PID, Parent: t.Parent, At: sandbox.Duration(t.At), Path: strings.ToValidUTF8(t.Path, "\uFFFD"), Cut: t.Cut, SHA256: hex.EncodeToString(t.SHA256),
		Verdict: sandbox.Allow, Why: strings.ToValidUTF8(strings.TrimPrefix(t.Refused, itStarted(t)), "\uFFFD"),
	}
	room := 1 << 10
	for _, word := range t.Argv {
		if room -= len(word); room < 0 {
			told.Cut = true
			break
		}
		told.Argv = append(told.Argv, strings.ToValidUTF8(word, "\uFFFD"))
	}
	if t.Refused != "" {
		told.Verdict = sandbox.Deny
	}
	return told
}

// ended notes how a start ended, and reports whether it is known here.
func (s *starting) ended(t Start) bool {
	s.mu.Lock()
	i, known := s.place[t.N]
	if !known {
		s.mu.Unlock()
		return false
	}
	endOf(&s.told[i], t.End)
	told := s.told[i]
	s.mu.Unlock()
	s.show(told)
	return true
}

func endOf(told *sandbox.Start, e *client.StartEnd) {
	told.Ended, told.Code, told.Signal, told.Replaced = sandbox.Duration(e.At), e.Code, e.Signal, e.Replaced
}

// show shows a start to who watches the exec, if anybody does.
func (s *starting) show(t sandbox.Start) {
	if s.watch == nil {
		return
	}
	s.showing.Lock()
	defer s.showing.Unlock()
	s.watch(t)
}

// close ends the judge, and writes down what was started. Doing so twice is fine.
func (s *starting) close(ctx context.Context) (err error) {
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		if s.shell != nil {
			s.giveBack(ctx)
		} else {
			s.leave()
		}
		d := s.started()
		if len(d.Starts) == 0 {
			return
		}
		s.event.Data = data(d)
		if err = s.m.recordLate(ctx, sandbox.Transaction{Events: []sandbox.Event{s.event}}); err != nil {
			err = fmt.Errorf("write down what exec %s started: %w", s.event.Exec.Short(), err)
		}
	})
	return err
}

// leave ends the judge, where there is one.
func (s *starting) leave() {
	judge := s.uncall()
	if judge == nil {
		return
	}
	select {
	case <-s.over: // the exec has ended
	default:
		judge.Finish()
		<-s.over
	}
	_ = judge.Close() // its connection may be gone
}

// tell closes the judge, and puts what was started into a Result. out counts it.
func (s *starting) tell(ctx context.Context, res *sandbox.Result, out client.Outcome) error {
	if s == nil {
		return nil
	}
	s.none = out.Starts == 0 && !out.Broken // then nothing is to come
	switch {
	case s.none && s.shell == nil:
		s.once.Do(func() { go s.leave() })
	case out.Starts > 0 && len(out.Told) == 0:
		s.call(ctx) // the agent's own call may be on its way
	}
	for _, t := range out.Told {
		if t.End == nil {
			s.note(t, nil, nil)
		} else {
			s.ended(t)
		}
	}
	err := s.close(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	res.Starts, res.StartsLeftOut, res.StartsUnjudged = s.told, max(s.count, out.Starts-len(s.told)), out.Unjudged
	return err
}

// startsData is what an exec.starts event says.
type startsData struct {
	Starts  []startData `json:"starts"`
	LeftOut int         `json:"starts_left_out,omitempty"`
}

// startData is one start: its words, or where the audit keeps no text, their digest.
type startData struct {
	sandbox.Start
	Digest string `json:"argv_sha256,omitempty"`
}

// started sorts what is told, and is what the audit says of it.
func (s *starting) started() startsData {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.told, func(a, b sandbox.Start) int { return cmp.Compare(a.At, b.At) })
	d := startsData{LeftOut: s.count}
	for _, t := range s.told {
		one := startData{Start: t}
		if !s.m.cfg.AuditText {
			sum := sha256.Sum256([]byte(strings.Join(t.Argv, "\x00")))
			one.Argv, one.Digest = nil, hex.EncodeToString(sum[:])
		}
		d.Starts = append(d.Starts, one)
	}
	return d
}

// unseen are what an exec that begins in a box is not held to, with no starts seen that
// should be.
func (m *Manager) unseen(b *box.Box) []string {
	if m.cfg.Starts.Sees() && !b.Client.SeesStarts() {
		return []string{runtimes.Starts}
	}
	return nil
}
