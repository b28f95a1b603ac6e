package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// A shell is a background exec of its session whose record has its name. What it is
// known to hold the agent remembers, and the manager beside it: what it judged.

// OpenShell opens a shell in a session. Errors: Invalid, Conflict where the name is
// taken, NotFound for the session and for a shell that the image does not have.
func (m *Manager) OpenShell(ctx context.Context, session, name string, o sandbox.ShellOptions, local sandbox.Local) (_ sandbox.Shell, err error) {
	ctx, done := telemetry.Begin(ctx, m.cfg.Tracer, "open shell")
	defer func() { done(err) }()
	name, o.Kind = cmp.Or(name, sandbox.NewID().Short()), cmp.Or(o.Kind, sandbox.ShellAny)
	if err := o.Kind.Check(); err != nil {
		return sandbox.Shell{}, err
	}
	if !sessionName().MatchString(name) {
		return sandbox.Shell{}, sandbox.Errorf(sandbox.Invalid, "%q is not a name of a shell", name).WithHint("write lower-case letters, digits, and . _ - between them")
	}
	if o.Language == "" && o.Kind == sandbox.ShellPython {
		if v, err := m.running(ctx, session); err == nil && !strings.HasPrefix(v.Language, "python") && v.Image == "" {
			o.Language = "python"
		}
	}
	// It runs nothing yet: what is judged is its environment.
	run := sandbox.Run{Language: o.Language, Command: []string{"true"}, Env: o.Env, Dir: o.Dir, Labels: o.Labels, Approve: o.Approve, Track: sandbox.ModeOff}
	v, lang, r, err := m.resolveIn(ctx, session, run, sandbox.Streams{Local: local}, true)
	if err != nil {
		return sandbox.Shell{}, err
	}
	if findShell(v, name) != nil {
		return sandbox.Shell{}, shellTaken(session, name)
	}
	r.note(ctx)
	b, _, d, err := m.judgeAndConnect(ctx, v, lang, r)
	if err != nil {
		_, err = m.refused(ctx, r, err)
		return sandbox.Shell{}, err
	}
	r.question.Argv, r.opens = []string{string(o.Kind)}, &sandbox.ShellRecord{Name: name, Kind: o.Kind, Env: len(o.Env) > 0}
	if err := m.begin(ctx, b, r, d, true); err != nil {
		return sandbox.Shell{}, err
	}
	never, err := m.startTracked(ctx, b, r, d)
	switch {
	case err != nil:
		return sandbox.Shell{}, joinErr(err, m.notStarted(ctx, b, r, err))
	case never != nil:
		err := sandbox.Errorf(sandbox.NotFound, "%s", never.Message).WithHint("choose a --kind of shell that the image has")
		return sandbox.Shell{}, joinErr(err, m.finish(ctx, b, r, *never, nil, nil))
	}
	e, err := m.letGo(ctx, b, r)
	if err != nil {
		return sandbox.Shell{}, err
	}
	// Two may have asked at once: the older one has the name.
	if v, err = m.running(ctx, session); err != nil {
		return sandbox.Shell{}, err
	}
	if first := findShell(v, name); first != nil && first.ID != e.ID {
		return sandbox.Shell{}, joinErr(shellTaken(session, name), m.killExec(ctx, session, e.ID, "its name was taken"))
	}
	return shellOf(e), nil
}

func shellTaken(session, name string) error {
	return sandbox.Errorf(sandbox.Conflict, "session %s has a shell %s already", session, name).WithHint("run in it, or close it with: caisson shell close %s %s", session, name)
}

// findShell finds the oldest open shell of a name; nil is none.
func findShell(v sandbox.SessionView, name string) *sandbox.ExecRecord {
	var found *sandbox.ExecRecord
	for i := range v.Execs {
		e := &v.Execs[i]
		if e.Shell == nil || e.Shell.Name != name || !e.Ended.IsZero() {
			continue
		}
		if found == nil || cmp.Or(e.Started.Compare(found.Started), cmp.Compare(e.ID, found.ID)) < 0 {
			found = e
		}
	}
	return found
}

func shellOf(e sandbox.ExecRecord) sandbox.Shell {
	return sandbox.Shell{Name: e.Shell.Name, Session: e.Session, ExecID: e.ID, Kind: e.Shell.Kind, Sandbox: e.Sandbox, Opened: e.Started}
}

// noShell says that none of that name is open, and how the last one ended.
func (m *Manager) noShell(ctx context.Context, session, name string) error {
	var last sandbox.ExecRecord
	all, _ := m.Sessions(ctx, sandbox.SessionFilter{Name: session}) // without it nothing is known
	for _, v := range all {
		for _, e := range v.Execs {
			if e.Shell != nil && e.Shell.Name == name && e.Ended.After(last.Ended) {
				last = e
			}
		}
	}
	how := ""
	switch {
	case last.ID == "":
	case last.Exit.Cause != "":
		how = ": " + last.Exit.Cause
	case last.Exit.Signal != "":
		how = ": " + last.Exit.Signal + " killed it"
	default:
		how = fmt.Sprintf(": it exited with %d", last.Exit.Code)
	}
	return sandbox.Errorf(sandbox.NotFound, "session %s has no open shell %s%s", session, name, how).WithHint("open it with: caisson shell open %s %s", session, name)
}

// openShell finds an open shell and the connection to its sandbox. One whose sandbox
// is gone is open no more.
func (m *Manager) openShell(ctx context.Context, session, name string) (v sandbox.SessionView, e sandbox.ExecRecord, b *box.Box, err error) {
	if v, err = m.running(ctx, session); err != nil {
		return v, e, nil, err
	}
	found := findShell(v, name)
	if found == nil {
		return v, e, nil, m.noShell(ctx, session, name)
	}
	if b, err = m.shellBox(ctx, v, *found); err == nil && b == nil {
		err = m.noShell(ctx, session, name)
	}
	return v, *found, b, err
}

// shellBox is the sandbox of a shell that is recorded as open. nil is that it has
// ended, which is then written down.
func (m *Manager) shellBox(ctx context.Context, v sandbox.SessionView, e sandbox.ExecRecord) (*box.Box, error) {
	i := slices.IndexFunc(v.Sandboxes, func(r sandbox.SandboxRecord) bool { return r.ID == e.Sandbox })
	if i >= 0 {
		b, err := m.connect(ctx, v, v.Sandboxes[i])
		if err == nil || !errors.Is(err, box.ErrEnded) {
			return b, err
		}
	}
	exit := sandbox.Exit{Reason: sandbox.ReasonCanceled, Cause: "its sandbox has ended"}
	return nil, m.closeExec(ctx, e, client.Outcome{Exit: exit, Usage: m.hostWall(e)})
}

// shellOver writes down the end of a shell whose process has ended, and reports
// whether it has.
func (m *Manager) shellOver(ctx context.Context, b *box.Box, e sandbox.ExecRecord) (bool, error) {
	out, over, err := b.Client.Output(ctx, client.Command{ID: e.ID}, 0, 0)
	if errors.Is(err, sandbox.NotFound) {
		out, over, err = client.Outcome{Exit: sandbox.Exit{Reason: sandbox.ReasonInfra, Cause: "its end was not seen"}}, true, nil
	}
	if err != nil || !over {
		return false, err
	}
	return true, m.conclude(ctx, b, e, out)
}

// ListShells returns the open shells of a session, the oldest first.
func (m *Manager) ListShells(ctx context.Context, session string) ([]sandbox.Shell, error) {
	v, err := m.running(ctx, session)
	if err != nil {
		return nil, err
	}
	shells := []sandbox.Shell{}
	for _, e := range v.Execs {
		if e.Shell == nil || !e.Ended.IsZero() {
			continue
		}
		b, err := m.shellBox(ctx, v, e)
		if errors.Is(err, sandbox.Conflict) { // it is paused
			shells = append(shells, shellOf(e))
			continue
		}
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		over, err := m.shellOver(ctx, b, e)
		if err != nil {
			return nil, err
		}
		if !over {
			shells = append(shells, shellOf(e))
		}
	}
	slices.SortFunc(shells, func(a, b sandbox.Shell) int {
		return cmp.Or(a.Opened.Compare(b.Opened), cmp.Compare(a.ExecID, b.ExecID))
	})
	return shells, nil
}

// CloseShell ends a shell with everything that it started.
func (m *Manager) CloseShell(ctx context.Context, session, name string) error {
	_, e, _, err := m.openShell(ctx, session, name)
	if err != nil {
		return err
	}
	err = m.killExec(ctx, session, e.ID, "it was closed")
	m.forgetShell(e.ID)
	return err
}

// inShell is what a run that goes into a shell has beside it.
type inShell struct {
	record sandbox.ExecRecord
	held   client.Held
	state  sandbox.ShellState
}

// RunShell runs a text in a shell of a session. Errors are those of [Manager.ExecIn],
// NotFound where it is not open, Conflict where something runs in it.
func (m *Manager) RunShell(ctx context.Context, session, name string, run sandbox.ShellRun, streams sandbox.Streams) (_ sandbox.Result, err error) {
	ctx, done := telemetry.Begin(ctx, m.cfg.Tracer, "shell")
	defer func() { done(err) }()
	if err := run.Validate(); err != nil {
		return sandbox.Result{}, err
	}
	opened := false
	v, e, b, err := m.openShell(ctx, session, name)
	if err == nil && run.Open != nil {
		var over bool
		if over, err = m.shellOver(ctx, b, e); over && err == nil {
			err = m.noShell(ctx, session, name)
		}
	}
	if errors.Is(err, sandbox.NotFound) && run.Open != nil && v.ID != "" {
		if _, err = m.OpenShell(ctx, session, name, *run.Open, streams.Local); err == nil {
			opened = true
			v, e, b, err = m.openShell(ctx, session, name)
		}
	}
	if err != nil {
		return sandbox.Result{}, err
	}
	var res sandbox.Result
	if run.Continue || len(run.Until) > 0 {
		res, err = m.runPrompted(ctx, v, e, b, run, streams)
	} else {
		var finish func()
		streams, finish = expecting(run.Expect, streams)
		defer finish()
		res, err = m.runShell(ctx, v, e, b, run, streams, nil)
	}
	if res.Shell != nil {
		res.Shell.Opened = opened
	}
	return checked(run.Check, res, err)
}

// checked does with a Result what a check asks for.
func checked(mode sandbox.CheckMode, res sandbox.Result, err error) (sandbox.Result, error) {
	switch {
	case err != nil:
	case res.Shell != nil && res.Shell.Prompt != "": // it goes on
	case mode == sandbox.CheckIgnore && res.Reason == sandbox.ReasonExited:
		res.Code = 0
	case mode == sandbox.CheckRaise && (res.Code != 0 || res.Reason != sandbox.ReasonExited):
		return res, &sandbox.FailedError{Result: res}
	}
	return res, err
}

// shellTries bounds how often a text is judged anew because others ran in its shell
// meanwhile.
const shellTries = 5

// runShell runs a text in a shell. told is told its id, before it is judged.
func (m *Manager) runShell(ctx context.Context, v sandbox.SessionView, e sandbox.ExecRecord, b *box.Box, run sandbox.ShellRun, streams sandbox.Streams, told func(sandbox.ID)) (res sandbox.Result, err error) {
	for range shellTries {
		held, err := m.heldBy(ctx, b, e)
		if err != nil {
			return res, m.shellGone(ctx, b, e, err)
		}
		r, err := m.resolveShell(ctx, v, e, held, run, streams)
		if err != nil {
			return res, err
		}
		r.space.connect = func(context.Context) (*client.Client, error) { return b.Client, nil }
		r.question.Plan = func(context.Context) (runtimes.Plan, error) { return b.Plan, nil }
		r.note(ctx)
		if told != nil {
			told(r.id)
		}
		d, err := m.judgeExec(ctx, r)
		if err != nil {
			return m.refused(ctx, r, err)
		}
		res, broken, err := m.runIn(ctx, b, r, d, streams, false)
		if broken != nil {
			return res, joinErr(err, m.abandon(ctx, b, r.id, broken))
		}
		if moved, ok := errors.AsType[*client.MovedError](err); ok {
			m.holds(e.ID, moved.Held)
			continue
		}
		if err != nil {
			return res, m.shellGone(ctx, b, e, err)
		}
		m.ranIn(e.ID, held.Runs, run.Text, r.shell.state.Dir)
		if r.shell.state.Ended != "" {
			m.forgetShell(e.ID)
			if _, err = m.shellOver(ctx, b, e); err != nil {
				return res, err
			}
		}
		return res, nil
	}
	return res, sandbox.Errorf(sandbox.Conflict, "others run in shell %s all the time", e.Shell.Name).WithHint("open a shell of your own")
}

// shellGone says of an error that the shell has ended, where that is why.
func (m *Manager) shellGone(ctx context.Context, b *box.Box, e sandbox.ExecRecord, err error) error {
	switch {
	case errors.Is(err, sandbox.NotFound):
		m.forgetShell(e.ID)
		_, failed := m.shellOver(ctx, b, e)
		return joinErr(m.noShell(ctx, e.Session, e.Shell.Name), failed)
	case errors.Is(err, sandbox.Conflict):
		return sandbox.Errorf(sandbox.Conflict, "shell %s: %w", e.Shell.Name, err).WithHint("wait for what runs in it, or open another")
	}
	return err
}

// resolveShell makes the question about a text in a shell.
func (m *Manager) resolveShell(ctx context.Context, v sandbox.SessionView, e sandbox.ExecRecord, held client.Held, run sandbox.ShellRun, streams sandbox.Streams) (*resolved, error) {
	lang, err := m.cfg.Images.Language(e.Shell.Kind.Language())
	if err != nil {
		return nil, err
	}
	r, err := m.resolve(ctx, sandbox.Run{
		Session: v.Name, Language: lang.Name, Code: run.Text, Dir: held.Dir, Labels: run.Labels, ExecLimits: run.ExecLimits, Track: run.Track, Approve: run.Approve,
	}, lang, v.Limits, streams, false)
	if err != nil {
		return nil, err
	}
	r.question.User, r.question.Network = userOf(v), v.Network.WithDefaults()
	r.question.Argv = []string{string(e.Shell.Kind), run.Text}
	r.question.Shell = &ShellQuestion{Name: e.Shell.Name, Texts: held.Texts, Forgot: held.Forgot, Env: e.Shell.Env || len(v.Env) > 0}
	r.shell = &inShell{record: e, held: held, state: sandbox.ShellState{Name: e.Shell.Name, Dir: held.Dir}}
	return r, nil
}

// heldBy is what a shell is known to hold. The first time the agent tells.
func (m *Manager) heldBy(ctx context.Context, b *box.Box, e sandbox.ExecRecord) (client.Held, error) {
	m.mu.Lock()
	h, ok := m.shells[e.ID]
	m.mu.Unlock()
	if ok {
		return h, nil
	}
	h, err := b.Client.Held(ctx, e.ID)
	if err == nil {
		m.holds(e.ID, h)
	}
	return h, err
}

func (m *Manager) holds(id sandbox.ID, h client.Held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shells[id] = h
}

// ranIn remembers a text that has run in a shell behind so many others. Where something
// else is known by now, the agent is going to tell.
func (m *Manager) ranIn(id sandbox.ID, runs int, text, dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, ok := m.shells[id]; ok && h.Runs == runs {
		m.shells[id] = h.Remember(text, dir)
	}
}

func (m *Manager) forgetShell(id sandbox.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.shells, id)
	delete(m.prompts, id)
}
