package manager

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/sandbox"
)

// inlineMost is how much code an argv may carry. The kernel takes 128 KiB in
// one argument.
const inlineMost = 96 << 10

// resolved is a run, ready to be judged and started.
type resolved struct {
	run      sandbox.Run
	id       sandbox.ID
	limits   sandbox.Limits
	question ExecQuestion
	stage    []client.StageFile
	space    *space
	program  *Program // what the gate puts in its place; nil is as asked for
}

// resolve turns a run into an argv. Errors: Invalid.
func resolve(run sandbox.Run, lang sandbox.Language, limits sandbox.Limits, streams sandbox.Streams) (*resolved, error) {
	r := &resolved{run: run, id: sandbox.NewID(), limits: limits.WithDefaults()}
	if run.Timeout != 0 {
		r.limits.Timeout = run.Timeout
	}
	if err := r.limits.Check(); err != nil {
		return nil, err
	}
	if err := checkRun(run); err != nil {
		return nil, err
	}
	r.space = newSpace(run)
	q := ExecQuestion{
		ID: r.id, Run: run, Language: lang, Env: slices.Concat(lang.Env, run.Env), Dir: run.Dir, Role: run.Role, Limits: r.limits,
		User: "one-shot", Network: run.Network.Or(), Stdin: streams.Stdin, Workspace: r.space,
	}
	switch {
	case len(run.Command) > 0:
		q.Argv = slices.Concat(run.Command, run.Args)
	case lang.Name == "":
		return nil, sandbox.Errorf(sandbox.Invalid, "code without a language").WithHint("name its language with -l")
	case run.File != "":
		q.Argv = lang.Argv(lang.RunFile, "", path.Join(sandbox.WorkspaceDir, run.File), run.Args)
	case lang.Inline() && len(run.Code) <= inlineMost && strings.IndexByte(run.Code, 0) < 0:
		q.Argv = lang.Argv(lang.RunCode, run.Code, "", run.Args)
	default:
		if sandbox.Bytes(len(run.Code)) > client.MaxStage {
			return nil, sandbox.Errorf(sandbox.Invalid, "code of %s; at most %s", sandbox.Bytes(len(run.Code)).Human(), client.MaxStage).
				WithHint("put it into a file and run that")
		}
		name := "main" + lang.Suffixes[0]
		template := lang.RunCode
		if lang.Inline() {
			template = lang.RunFile
		}
		q.Stage = []byte(run.Code)
		r.stage = []client.StageFile{{Name: name, Data: q.Stage}}
		q.Argv = lang.Argv(template, "", client.StagePath(r.id, name), run.Args)
	}
	r.question = q
	return r, nil
}

func checkRun(run sandbox.Run) error {
	given := 0
	for _, is := range []bool{run.Code != "", run.File != "", len(run.Command) > 0} {
		if is {
			given++
		}
	}
	if given != 1 {
		return sandbox.Errorf(sandbox.Invalid, "%d of code, file and command; exactly one is needed", given).
			WithHint("give -c CODE, a FILE, or -- COMMAND")
	}
	if run.Role != "" && run.Role != sandbox.RoleUser && run.Role != sandbox.RoleRunner {
		return sandbox.Errorf(sandbox.Invalid, "unknown role %q", run.Role).WithHint("roles are user and runner")
	}
	if err := run.Approve.Check(); err != nil {
		return err
	}
	for _, kv := range run.Env {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" || strings.IndexByte(kv, 0) >= 0 {
			return sandbox.Errorf(sandbox.Invalid, "%q is not a variable", kv).WithHint("write KEY=VALUE")
		}
	}
	for _, a := range slices.Concat(run.Command, run.Args) {
		if strings.IndexByte(a, 0) >= 0 {
			return sandbox.Errorf(sandbox.Invalid, "an argument has a NUL byte").WithHint("pass such data on standard input or as a file")
		}
	}
	for _, p := range run.Artifacts {
		if err := checkPattern(p); err != nil {
			return err
		}
	}
	if run.File != "" {
		if err := checkFiles([]sandbox.File{{Path: run.File}}); err != nil {
			return err
		}
	}
	return checkFiles(run.Files)
}

// Exec judges a run and runs it in this sandbox. Of the run, what concerns the
// sandbox itself (image, network, workspace) is that of [OpenOptions].
//
// Errors: Invalid, a [sandbox.DeniedError] with a Result that says so, and
// those of a sandbox that cannot be used. Whatever becomes of a program that
// was started is a Result and no error.
func (s *Sandbox) Exec(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	r, err := resolve(run, s.language, s.opts.Limits, streams)
	if err != nil {
		return sandbox.Result{}, err
	}
	r.space.connect = s.agent
	r.question.Image = s.imageID
	decision, err := s.m.judgeExec(ctx, r)
	if err != nil {
		return s.m.refused(ctx, r, err)
	}
	return s.exec(ctx, r, decision, streams)
}

// agent returns the agent of the sandbox as it is now.
func (s *Sandbox) agent(context.Context) (*client.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		return nil, sandbox.Errorf(sandbox.Unavailable, "the sandbox is not there")
	}
	return s.live.client, nil
}

// imageID returns the digest of the image that the sandbox was made from.
func (s *Sandbox) imageID(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		return "", sandbox.Errorf(sandbox.Unavailable, "the sandbox is not there")
	}
	return s.live.plan.Spec.Image.ID, nil
}

// refused is the Result of a run that never started, once that is written down.
// What was decided about the exec may permit it: then its sandbox was refused.
func (m *Manager) refused(ctx context.Context, r *resolved, why error) (sandbox.Result, error) {
	denied, ok := errors.AsType[*sandbox.DeniedError](why)
	if !ok {
		return sandbox.Result{}, why
	}
	d := denied.Decision
	if err := m.recordLate(ctx, sandbox.Change{Events: []sandbox.Event{deniedEvent(r, d, r.run.Session)}}); err != nil {
		why = errors.Join(why, err)
	}
	return sandbox.Result{
		ExecID: r.id, Session: r.run.Session, Language: r.question.Language.Name, Decision: d,
		Exit: sandbox.Exit{Code: 126, Reason: sandbox.ReasonDenied},
	}, why
}

// exec runs what was judged in this sandbox.
func (s *Sandbox) exec(ctx context.Context, r *resolved, d sandbox.Decision, streams sandbox.Streams) (sandbox.Result, error) {
	l, replaced, err := s.acquire(ctx)
	if err != nil {
		return sandbox.Result{}, err
	}
	res, broken, err := s.m.runIn(ctx, l, r, d, streams, true)
	s.release(broken, err != nil || res.Code != 0)
	res.Replaced = replaced
	return res, err
}

// runIn runs what was judged in a live sandbox. Its start is written down
// before it starts and its end before it is told. reap ends, with the process,
// what it started. broken says that the sandbox must not be used again.
func (m *Manager) runIn(ctx context.Context, l *live, r *resolved, d sandbox.Decision, streams sandbox.Streams, reap bool) (_ sandbox.Result, broken bool, err error) {
	if len(r.run.Files) > 0 {
		if err := l.client.Put(ctx, r.run.Role, r.space.put()); err != nil {
			return sandbox.Result{}, errors.Is(err, sandbox.Unavailable), err
		}
	}
	ctx, guard, err := m.watch(ctx, l, r)
	if err != nil {
		return sandbox.Result{}, false, err
	}
	defer guard.stop()
	if err := m.begin(ctx, l, r, d, false); err != nil {
		return sandbox.Result{}, false, err
	}
	stdout, stderr := newCapture(streams.Stdout, int64(r.limits.Keep)), newCapture(streams.Stderr, int64(r.limits.Keep))
	cmd := r.command()
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Reap = r.stdin(streams), stdout, stderr, reap
	out, changes, err := m.runTracked(ctx, l, r, cmd)
	guard.explain(&out)
	if err != nil {
		broken = errors.Is(err, sandbox.Unavailable)
		if broken {
			err = sandbox.Errorf(sandbox.Unavailable, "%w (%s)", err, explain(ctx, l))
		}
		return sandbox.Result{}, broken, errors.Join(err, m.neverBegan(ctx, l, r, err))
	}
	if out.Message != "" {
		// A shell would say it on standard error, and so do we.
		_, _ = io.WriteString(stderr, "caisson: "+out.Message+"\n") // a writer that fails has nothing to lose here
	}
	if out.Reason == sandbox.ReasonInfra {
		out.Cause += "; " + explain(ctx, l)
	}
	res := sandbox.Result{
		ExecID: r.id, Session: r.run.Session, Language: r.question.Language.Name, Exit: out.Exit, Duration: out.Usage.Wall, Usage: out.Usage,
		Decision: d, Sandbox: l.id(), Image: l.plan.Spec.Image.ID,
	}
	res.Stdout, res.Truncated.Stdout = stdout.bytes()
	res.Stderr, res.Truncated.Stderr = stderr.bytes()
	res.Truncated.Stdout += out.Lost.Stdout
	res.Truncated.Stderr += out.Lost.Stderr
	res.Changes = changes
	if !out.Broken && out.Reason != sandbox.ReasonInfra {
		m.collect(ctx, l, r, streams.Artifact, &res)
	}
	return res, out.Broken, m.finishWith(ctx, l, r, out, changes)
}

// command is what the agent is asked to run.
func (r *resolved) command() client.Command {
	c := client.Command{
		ID: r.id, Argv: r.question.Argv, Env: r.question.Env, Dir: r.question.Dir, Role: r.question.Role, Timeout: r.limits.Timeout,
		MaxOutput: r.limits.MaxOutput, Stage: r.stage,
	}
	if p := r.program; p != nil {
		c.Argv, c.Env, c.Stage = p.Argv, p.Env, p.Stage
	}
	return c
}

// stdin is what the process reads: the gate may have read it already.
func (r *resolved) stdin(streams sandbox.Streams) io.Reader {
	if r.program != nil && r.program.Stdin != nil {
		return r.program.Stdin
	}
	return streams.Stdin
}

// begin writes down that an exec is about to start, and drops the records of
// those to forget.
func (m *Manager) begin(ctx context.Context, l *live, r *resolved, d sandbox.Decision, background bool, forget ...sandbox.ID) error {
	return m.record(ctx, sandbox.Change{
		DeleteExecs: forget,
		PutExecs: []sandbox.ExecRecord{{
			ID: r.id, Session: r.run.Session, Sandbox: l.id(), Argv: r.question.Argv, Owner: m.cfg.Owner, Background: background,
			Started: m.cfg.Now().UTC(),
		}},
		Events: []sandbox.Event{m.startedEvent(r, l, d, r.run.Session)},
	})
}

// finish writes down how an exec ended.
func (m *Manager) finish(ctx context.Context, l *live, r *resolved, out client.Outcome) error {
	return m.finishWith(ctx, l, r, out, nil)
}

// finishWith writes down what it changed too.
func (m *Manager) finishWith(ctx context.Context, l *live, r *resolved, out client.Outcome, changes []sandbox.FileChange) error {
	return m.closeExecWith(ctx, sandbox.ExecRecord{ID: r.id, Session: r.run.Session, Sandbox: l.id()}, out, changes)
}

// neverBegan writes down that an exec that was announced did not begin.
func (m *Manager) neverBegan(ctx context.Context, l *live, r *resolved, why error) error {
	exit := sandbox.Exit{Code: 125, Reason: sandbox.ReasonInfra, Cause: "it never began: " + why.Error()}
	return m.finish(ctx, l, r, client.Outcome{Exit: exit})
}

// explainPatience bounds the search for why a sandbox went away.
const explainPatience = 10 * time.Second

// explain asks the runtime what became of a sandbox whose agent is gone.
func explain(ctx context.Context, l *live) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainPatience)
	defer cancel()
	exit, err := l.instance.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return "the container runs on"
	case err != nil:
		return "the engine cannot say why: " + err.Error()
	}
	return exit.Cause
}
