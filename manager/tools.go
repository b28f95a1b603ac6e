package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/tools"
)

// ToolQuestion is a call of a tool, by a program that runs.
type ToolQuestion struct {
	tools.Question
	Exec     sandbox.ID
	Session  string
	Language string
	Labels   sandbox.Labels
	// Program is what was decided about what calls.
	Program sandbox.Decision
	Approve sandbox.ApproveMode
	Ask     sandbox.Asker // of the run; may be nil
}

// callWay is an exec's way to the host's tools, while this process holds it open.
// nil is that it has none.
type callWay struct {
	m       *Manager
	way     *tools.Way
	outlet  *client.Outlet
	modules map[string][]byte
	program bool          // it is to return a value
	over    chan struct{} // closed once all calls have ended
	cancel  context.CancelFunc
	once    sync.Once

	mu   sync.Mutex
	own  calling // whose it is
	text calling // of a shell: the text that runs in it, with a zero r where none does
}

// calling is an exec whose calls they are.
type calling struct {
	r *resolved
	d sandbox.Decision
}

// now is the exec in whose name calls are judged and written down.
func (w *callWay) now() calling {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text.r != nil {
		return w.text
	}
	return w.own
}

// toolsOf are the tools that a run may call. Errors: NotFound, Conflict and Invalid.
func (m *Manager) toolsOf(ctx context.Context, run sandbox.Run, local sandbox.Local) (*tools.Set, error) {
	if run.Tools != nil && len(run.Tools) == 0 {
		return nil, nil //nolint:nilnil // an empty set
	}
	set, err := m.cfg.Tools.Now(ctx).With(local.Tools...)
	if err != nil {
		return nil, err
	}
	return set.Only(run.Tools)
}

// openCalls opens the way to tools of an exec that is about to begin, where there are
// any: this process answers until [callWay.close].
func (m *Manager) openCalls(ctx context.Context, b *box.Box, r *resolved, d sandbox.Decision) (*callWay, error) {
	if len(r.tools.Tools()) == 0 && !r.run.Program || r.shell != nil { // a shell's texts call by the shell's own: [Manager.lendCalls]
		return nil, nil //nolint:nilnil // most have none, and nothing that is asked of it minds
	}
	modules, err := r.tools.Modules()
	if err != nil {
		return nil, err
	}
	outlet, err := b.Client.Tools(ctx, r.id)
	if err != nil {
		return nil, err
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &callWay{m: m, outlet: outlet, modules: modules, program: r.run.Program, over: make(chan struct{}), cancel: cancel, own: calling{r, d}}
	w.way = tools.NewWay(tools.Config{
		Set: r.tools, Program: r.run.Program, Owner: sandbox.CallerFrom(ctx).Owner, Spent: m.spent, Now: m.cfg.Now,
		Judge: func(ctx context.Context, q tools.Question) (sandbox.Decision, error) {
			now := w.now()
			r := now.r
			d, _, err := m.judge(ctx, Question{Tool: &ToolQuestion{
				Question: q, Exec: r.id, Session: r.run.Session, Language: r.question.Language.Name, Labels: r.run.Labels,
				Program: now.d, Approve: r.run.Approve, Ask: r.question.Ask,
			}})
			if errors.Is(err, sandbox.Denied) && !d.Permits() {
				err = nil // the verdict says it, and why
			}
			return d, err
		},
		Record: func(ctx context.Context, c sandbox.ToolCall, spend *sandbox.ToolSpend) error {
			event := sandbox.Event{Kind: sandbox.EventToolCalled, Session: r.run.Session, Sandbox: b.ID, Exec: w.now().r.id, Data: data(c)}
			return m.recordLate(ctx, sandbox.Transaction{SpendTool: spend, Events: []sandbox.Event{event}})
		},
	})
	go w.serve(serving)
	return w, nil
}

// serve answers the exec's processes, no more connections of theirs at once than an
// honest agent has.
func (w *callWay) serve(ctx context.Context) {
	defer close(w.over)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer w.cancel()
	places := make(chan struct{}, client.MaxCalling)
	for {
		places <- struct{}{}
		conn, err := w.outlet.Accept(ctx)
		if err != nil {
			return // the exec has ended, or the connection to its agent
		}
		serving.Go(func() {
			defer func() { <-places }()
			w.way.Serve(ctx, conn)
		})
	}
}

// into lets a command find its way to tools.
func (w *callWay) into(cmd *client.Command) {
	if w == nil {
		return
	}
	cmd.Tools, cmd.Stage = true, slices.Clone(cmd.Stage)
	cmd.Warm = nil // an interpreter that runs already has not met them
	for _, name := range slices.Sorted(maps.Keys(w.modules)) {
		cmd.Stage = append(cmd.Stage, StageFile{Name: path.Join(client.ToolsLib, name), Data: w.modules[name]})
	}
}

// close gives up what is being answered, and returns once nothing is.
func (w *callWay) close() {
	if w == nil {
		return
	}
	w.once.Do(func() {
		w.cancel()
		_ = w.outlet.Close() // the agent ends it with the exec anyway
		<-w.over
	})
}

// tell closes the way and puts its calls into a Result.
func (w *callWay) tell(res *sandbox.Result) {
	if w != nil {
		w.close()
		res.Calls, res.CallsLeftOut = w.way.Calls()
		if w.program {
			res.Program = w.way.Returned().Settled(res.Exit)
		}
	}
}

// keep holds the way of an exec in the background open until that has ended, or this
// process is about to.
func (w *callWay) keep() {
	if w != nil {
		w.m.calls.Store(w.own.r.id, w)
		w.m.tasks.Go(func() {
			<-w.over
			w.m.calls.Delete(w.own.r.id)
			w.close()
		})
	}
}

// lentCalls is a shell's way to tools while a text runs in it, whose calls they are
// then. nil is that it has none that this process holds.
type lentCalls struct {
	w *callWay
	r *resolved // the text
}

// lendCalls lends a text the way of its shell. Errors: Conflict where another has it.
func (m *Manager) lendCalls(r *resolved, d sandbox.Decision) (*lentCalls, error) {
	if r.shell == nil {
		return nil, nil //nolint:nilnil // it has a way of its own, or none
	}
	held, ok := m.calls.Load(r.shell.record.ID)
	if !ok {
		return nil, nil //nolint:nilnil // it has none, or the process that opened it answers
	}
	w := held.(*callWay)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text.r != nil {
		return nil, sandbox.Errorf(sandbox.Conflict, "something runs in it")
	}
	w.text = calling{r, d}
	w.way.Calls() // what ended between two texts stands in the audit
	return &lentCalls{w, r}, nil
}

// tell puts the calls that ended while the text ran into its Result.
func (l *lentCalls) tell(res *sandbox.Result) {
	if l != nil {
		res.Calls, res.CallsLeftOut = l.w.way.Calls()
	}
}

// back gives the way back to the shell. Doing so twice is fine.
func (l *lentCalls) back() {
	if l == nil {
		return
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.w.text.r == l.r {
		l.w.text = calling{}
	}
}

// ways are an exec's ways out of its sandbox.
type ways struct {
	out      *wayOut
	calls    *callWay
	lent     *lentCalls
	starts   *starting // how what it starts is seen
	compiler *starting // and what its compiler does
}

// openWays opens the ways that an exec is to have, which was judged so. started, where
// it is not nil, is told what it starts.
func (m *Manager) openWays(ctx context.Context, b *box.Box, r *resolved, d sandbox.Decision, started func(sandbox.Start)) (w ways, err error) {
	if w.out, err = m.openWay(ctx, b, r); err != nil {
		return ways{}, err
	}
	if w.calls, err = m.openCalls(ctx, b, r, d); err != nil {
		return ways{}, errors.Join(err, w.out.close(ctx))
	}
	if w.lent, err = m.lendCalls(r, d); err != nil {
		return ways{}, errors.Join(err, w.close(ctx))
	}
	if w.starts, err = m.seeStarts(ctx, b, r, r.id, d, started); err != nil {
		return ways{}, errors.Join(err, w.close(ctx))
	}
	if c := r.compile; c != nil {
		if w.compiler, err = m.seeStarts(ctx, b, r, c.id, d, started); err != nil {
			return ways{}, errors.Join(err, w.close(ctx))
		}
	}
	return w, nil
}

// into lets a command find its ways.
func (w ways) into(ctx context.Context, cmd *client.Command) {
	w.out.show(cmd)
	w.calls.into(cmd)
	w.starts.into(ctx, cmd)
}

// tell closes the ways and puts what went by them into a Result, and what the exec
// started, which has ended so.
func (w ways) tell(ctx context.Context, res *sandbox.Result, ended client.Outcome) error {
	w.calls.tell(res)
	w.lent.tell(res)
	return errors.Join(w.out.tell(ctx, res), w.starts.tell(ctx, res, ended))
}

// close ends the ways and what goes by them. Doing so twice is fine.
func (w ways) close(ctx context.Context) error {
	w.calls.close()
	w.lent.back()
	if err := errors.Join(w.out.close(ctx), w.compiler.close(ctx), w.starts.close(ctx)); err != nil {
		return fmt.Errorf("close the ways of an exec: %w", err)
	}
	return nil
}

// keep holds the ways open until the exec in the background has ended, or this
// process is about to.
func (w ways) keep(ctx context.Context, b *box.Box, r *resolved) {
	w.calls.keep()
	w.out.keep(ctx)
	w.starts.keep(ctx, b, r.free)
}
