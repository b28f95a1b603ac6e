package manager

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/internal/known"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
	"github.com/caisson-dev/caisson/tools"
)

// inlineMost is how much code an argv may carry. The kernel takes 128 KiB in
// one argument.
const inlineMost = 96 << 10

// resolved is a run, ready to be judged and started.
type resolved struct {
	run      sandbox.Run
	id       sandbox.ID
	limits   sandbox.ExecLimits
	question ExecQuestion
	stage    []client.StageFile
	space    *space
	record   sandbox.ExecRecord   // as it was announced
	asked    time.Time            // for it
	judging  time.Duration        // that it took to judge it
	compile  *compile             // what is done before it; nil is nothing
	program  *Program             // what the gate puts in its place; nil is as asked for
	opens    *sandbox.ShellRecord // the shell that it is; nil of others
	shell    *inShell             // that it runs in; nil of others
	tools    *tools.Set           // that it may call
	free     chan struct{}        // of one in the background: closed once this process lives for it no more; nil of others
	counted  atomic.Bool          // the gate was told that its starts will be judged
	over     func()               // called once nothing more is asked of its sandbox; nil of one that stays
}

// resolve turns a run into an argv, and into the question about it: what it is
// bound by is settled here, so that nothing else is judged than holds. Errors:
// Invalid, and NotFound for a tool.
func (m *Manager) resolve(ctx context.Context, run sandbox.Run, lang sandbox.Language, limits sandbox.Limits, streams sandbox.Streams, background bool) (*resolved, error) {
	asked := run.ExecLimits
	r := &resolved{run: run, id: sandbox.NewID(), asked: time.Now(), limits: asked.WithDefaults()}
	if err := r.limits.Check(); err != nil {
		return nil, err
	}
	if err := checkRun(run); err != nil {
		return nil, err
	}
	if (run.Input || run.Hold) && !background {
		return nil, sandbox.Errorf(sandbox.Invalid, "an input to be written to later, and output that is held, are for an exec in the background").
			WithHint("start it with --detach, or give its input with --stdin")
	}
	if run.Terminal != nil && (!background || run.Input) {
		return nil, sandbox.Errorf(sandbox.Invalid, "a terminal is for an exec in the background, and has its own input").
			WithHint("start it with: caisson exec -it SESSION -- COMMAND")
	}
	if background {
		// It has as long as it takes, unless the run says how long; what is kept of
		// its output is bounded, what passes is not.
		r.limits.Timeout, r.limits.MaxOutput = run.Timeout, 0
	}
	if run.Answer < 0 || run.Answer > 0 && background {
		return nil, sandbox.Errorf(sandbox.Invalid, "an answer of %d bytes, or of an exec in the background", run.Answer).WithHint("wait for the run that is to hand something back")
	}
	if run.Program && background {
		return nil, sandbox.Errorf(sandbox.Invalid, "nobody waits for what an exec in the background returns").WithHint("wait for it, or have it write a file")
	}
	if run.Warm && lang.Warm == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "there are no warm interpreters of this language").WithHint("leave --warm out, or name the language with -l python")
	}
	callable, err := m.toolsOf(ctx, run, streams.Local)
	if err != nil {
		return nil, err
	}
	r.tools = callable
	r.space = newSpace(run, streams.Local)
	q := ExecQuestion{
		ID: r.id, Run: run, Ask: streams.Ask, Language: lang, Env: slices.Concat(lang.Env, run.Env), Dir: run.Dir, Role: run.Role, Limits: limits.WithDefaults(), ExecLimits: r.limits,
		User: "one-shot", Network: run.Network.WithDefaults(), Stdin: streams.Stdin, Workspace: r.space,
		Background: background, Terminal: run.Terminal != nil, Tools: callable.Tools(),
	}
	switch {
	case len(run.Command) > 0:
		q.Argv = slices.Concat(run.Command, run.Args)
	case lang.Name == "":
		return nil, sandbox.Errorf(sandbox.Invalid, "code without a language").WithHint("name its language with -l")
	case run.File != "":
		q.Argv = lang.Argv(lang.RunFile, "", path.Join(sandbox.WorkspaceDir, run.File), run.Args)
		r.compileOf(&q, lang, func(sandbox.ID) string { return path.Join(sandbox.WorkspaceDir, run.File) })
	case lang.Inline() && !run.Program && len(run.Stage) == 0 && len(run.Code) <= inlineMost && strings.IndexByte(run.Code, 0) < 0:
		q.Argv = lang.Argv(lang.RunCode, run.Code, "", run.Args)
	default:
		if sandbox.Bytes(len(run.Code)) > client.MaxStage {
			return nil, sandbox.Errorf(sandbox.Invalid, "code of %s; at most %s", sandbox.Bytes(len(run.Code)).Human(), client.MaxStage).
				WithHint("put it into a file and run that")
		}
		name := lang.FileName()
		template := lang.RunCode
		if lang.Inline() {
			template = lang.RunFile
		}
		q.Stage = []byte(run.Code)
		if q.Staged, err = stagedFiles(run.Stage, streams.Local, name); err != nil {
			return nil, err
		}
		r.stage = append([]client.StageFile{{Name: name, Data: q.Stage}}, q.Staged...)
		q.Argv = lang.Argv(template, "", client.StagePath(r.id, name), run.Args)
		if run.Program {
			driver, err := tools.Driver(lang.Name)
			if err != nil {
				return nil, err
			}
			q.Argv = slices.Insert(q.Argv, len(q.Argv)-len(run.Args)-1, client.StagePath(r.id, path.Join(client.ToolsLib, driver)))
		}
		r.compileOf(&q, lang, func(id sandbox.ID) string { return client.StagePath(id, name) })
	}
	r.question = q
	return r, r.checkCompile(background)
}

// stagedFiles reads the files that are staged beside the code, whose name none of
// them may have.
func stagedFiles(files []sandbox.File, local sandbox.Local, code string) ([]StageFile, error) {
	var staged []StageFile
	left := client.MaxStage
	for _, f := range files {
		if f.Dir || f.Link != "" || f.Path == code || path.Clean(f.Path) != f.Path || !utf8.ValidString(f.Path) {
			return nil, sandbox.Errorf(sandbox.Invalid, "%s cannot be staged", f.Path).WithHint("stage files alone, by clean names other than %s", code)
		}
		if f.Ref != "" {
			if f.Data = known.Text(f.Ref); f.Data == nil {
				var err error
				if f.Data, err = readContent(f, local); err != nil {
					return nil, err
				}
			}
		}
		if left -= sandbox.Bytes(len(f.Data)); left < 0 {
			return nil, sandbox.Errorf(sandbox.Invalid, "more than %s are to be staged", client.MaxStage.Human()).WithHint("put large data into the workspace")
		}
		staged = append(staged, StageFile{Name: f.Path, Data: f.Data})
	}
	return staged, nil
}

func checkEnv(env []string) error {
	for _, kv := range env {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" || strings.IndexByte(kv, 0) >= 0 {
			return sandbox.Errorf(sandbox.Invalid, "%q is not a variable", kv).WithHint("write KEY=VALUE")
		}
	}
	return nil
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
	if err := run.Labels.Check(); err != nil {
		return err
	}
	if err := run.Approve.Check(); err != nil {
		return err
	}
	if run.Program && run.Code == "" {
		return sandbox.Errorf(sandbox.Invalid, "a program that returns a value, and no code").WithHint("give its text as the code")
	}
	if len(run.Stage) > 0 && run.Code == "" {
		return sandbox.Errorf(sandbox.Invalid, "files to stage, and no code").WithHint("give them with code; put them into the workspace otherwise")
	}
	if err := checkFiles(run.Stage); err != nil {
		return err
	}
	if err := checkEnv(run.Env); err != nil {
		return err
	}
	for _, a := range slices.Concat(run.Command, run.Args) {
		if strings.IndexByte(a, 0) >= 0 {
			return sandbox.Errorf(sandbox.Invalid, "an argument has a NUL byte").WithHint("pass such data on standard input or as a file")
		}
	}
	for _, p := range run.Artifacts {
		if _, err := sandbox.ParseArtifactPattern(p); err != nil {
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
// was started is a Result; an error beside it says that its end could not be
// written down.
func (s *Sandbox) Exec(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	run.Network = s.opts.Network
	r, err := s.m.resolve(ctx, run, s.language, s.opts.Limits, streams, false)
	if err != nil {
		return sandbox.Result{}, err
	}
	r.space.connect = s.agent
	r.question.Plan = s.planNow
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
	if s.box == nil {
		return nil, sandbox.Errorf(sandbox.Unavailable, "the sandbox is not there")
	}
	return s.box.Client, nil
}

// planNow returns what the sandbox was made as.
func (s *Sandbox) planNow(context.Context) (runtimes.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box == nil {
		return runtimes.Plan{}, sandbox.Errorf(sandbox.Unavailable, "the sandbox is not there")
	}
	return s.box.Plan, nil
}

// refused is the Result of a run that never started, once that is written down.
// What was decided about the exec may permit it: then its sandbox was refused.
func (m *Manager) refused(ctx context.Context, r *resolved, why error) (sandbox.Result, error) {
	denied, ok := errors.AsType[*sandbox.DeniedError](why)
	if !ok {
		return sandbox.Result{}, why
	}
	d := denied.Decision
	if err := m.recordLate(ctx, sandbox.Transaction{Events: []sandbox.Event{deniedEvent(r, d, r.run.Session)}}); err != nil {
		why = errors.Join(why, err)
	}
	return sandbox.Result{
		ExecID: r.id, Session: r.run.Session, Language: r.question.Language.Name, Decision: d,
		Exit: sandbox.Exit{Reason: sandbox.ReasonDenied}.Coded(),
	}, why
}

// exec runs what was judged in this sandbox.
func (s *Sandbox) exec(ctx context.Context, r *resolved, d sandbox.Decision, streams sandbox.Streams) (sandbox.Result, error) {
	b, replaced, err := s.acquire(ctx)
	if err != nil {
		return sandbox.Result{}, err
	}
	res, broken, err := s.m.runIn(ctx, b, r, d, streams, true)
	s.release(broken != nil, err != nil || res.Code != 0)
	res.Replaced = replaced
	return res, err
}

// runIn runs what was judged in a box. Its start is written down
// before it starts and its end before it is told. reap ends, with the process,
// what it started. broken says why the sandbox must not be used again, where
// that is so: see [brokenBy].
func (m *Manager) runIn(ctx context.Context, b *box.Box, r *resolved, d sandbox.Decision, streams sandbox.Streams, reap bool) (_ sandbox.Result, broken, err error) {
	if err := r.put(ctx, b); err != nil {
		return sandbox.Result{}, brokenByCall(err), err
	}
	ctx, over := b.Begin(ctx, sandbox.LiveExec{ID: r.id, Started: m.cfg.Now(), Timeout: r.patience()})
	defer over()
	ctx, guard, err := m.watch(ctx, b, r)
	if err != nil {
		return sandbox.Result{}, forgedBy(err), err
	}
	defer guard.stop()
	ways, err := m.openWays(ctx, b, r, d, streams.Started)
	if err != nil {
		return sandbox.Result{}, brokenByCall(err), err
	}
	defer func() { err = joinErr(err, ways.close(ctx)) }()
	if err := m.begin(ctx, b, r, d, false); err != nil {
		return sandbox.Result{}, nil, err
	}
	stdout, stderr := newCapture(streams.Stdout, int64(r.limits.KeepOutput)), newCapture(streams.Stderr, int64(r.limits.KeepOutput))
	cmd := r.command()
	ways.into(ctx, &cmd)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Reap = r.stdin(streams), stdout, stderr, reap || r.run.Reap
	seen := b.Witness(ctx, r.patience())
	running, done := telemetry.Start(ctx, "exec")
	out, compiled, err := m.runCompiled(running, b, r, ways, cmd)
	seen.Tell(&out)
	guard.explain(&out)
	box.ExplainStop(ctx, &out)
	out.Exit = out.Coded()
	telemetry.Note(running, slog.String("exit_reason", string(out.Reason)), slog.Int("exit_code", out.Code))
	done(err)
	if err != nil {
		if broken = brokenByCall(err); broken != nil {
			err = sandbox.Errorf(sandbox.Unavailable, "%w (%s)", err, b.Explain(ctx))
		}
		return sandbox.Result{}, broken, errors.Join(err, m.neverBegan(ctx, b, r, err))
	}
	if out.Message != "" {
		// A shell would say it on standard error, and so do we.
		_, _ = io.WriteString(stderr, "caisson: "+out.Message+"\n") // a writer that fails has nothing to lose here
	}
	if out.Reason == sandbox.ReasonInfra {
		out.Cause += "; " + b.Explain(ctx)
	}
	res := sandbox.Result{
		ExecID: r.id, Session: r.run.Session, Language: r.question.Language.Name, Exit: out.Exit, Duration: out.Usage.Wall, Usage: out.Usage,
		Decision: d, Sandbox: b.ID, Image: b.Plan.Spec.Image.ID, Runtime: b.Plan.Runtime, NotEnforced: slices.Concat(b.Plan.NotEnforced, m.unseen(b)), Warm: out.Warm, Compiled: compiled,
	}
	untold := ways.tell(ctx, &res, out)
	if s := r.shell; s != nil {
		s.state.Dir, s.state.Ended = cmp.Or(out.Dir, s.state.Dir), out.ShellEnded
		res.Shell = &s.state
	}
	res.Stdout, res.Truncated.Stdout = stdout.bytes()
	res.Stderr, res.Truncated.Stderr = stderr.bytes()
	res.Truncated.Stdout += out.Lost.Stdout
	res.Truncated.Stderr += out.Lost.Stderr
	broken = brokenBy(out)
	recording, done := telemetry.Start(ctx, "record", slog.String("recorded", "changes"))
	res.Changes, err = m.recordRun(recording, b, r, out)
	done(err)
	if err != nil {
		res.ChangesError, broken = err.Error(), errors.Join(broken, forgedBy(err))
	}
	if !out.Broken && out.Reason != sandbox.ReasonInfra {
		m.collect(ctx, b, r, streams, out, &res)
	}
	if r.over != nil {
		r.over()
	}
	return res, broken, joinErr(m.finish(ctx, b, r, out, res.Changes, err), untold)
}

// note tells the span of ctx what it is about.
func (r *resolved) note(ctx context.Context) {
	telemetry.Note(ctx, telemetry.ID("exec", r.id), slog.String("session", r.run.Session), slog.String("language", r.question.Language.Name))
}

// put puts the files of a run into the workspace.
func (r *resolved) put(ctx context.Context, b *box.Box) error {
	if len(r.run.Files) == 0 {
		return r.space.put(ctx, b.Client)
	}
	ctx, done := telemetry.Start(ctx, "put", slog.Int("files", len(r.run.Files)))
	err := r.space.put(ctx, b.Client)
	done(err)
	return err
}

// command is what the agent is asked to run.
func (r *resolved) command() client.Command {
	c := client.Command{
		ID: r.id, Argv: r.question.Argv, Env: r.question.Env, Dir: r.question.Dir, Role: r.question.Role, Timeout: time.Duration(r.limits.Timeout),
		MaxOutput: r.limits.MaxOutput, Stage: r.stage, Terminal: r.run.Terminal, Hold: r.run.Hold, Answer: r.run.Answer,
	}
	if r.run.Warm {
		c.Warm = &client.Warm{Modules: slices.Concat(r.question.Language.Warm, r.run.WarmWith)}
	}
	if s := r.shell; s != nil { // which has been handed what was judged
		c.In, c.Stage = &client.ShellText{Shell: s.record.ID, Text: r.run.Code, Runs: s.held.Runs}, nil
		return c
	}
	if r.opens != nil {
		c.Shell, c.Argv = r.opens.Kind, nil
		return c
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

// begin writes down that an exec is about to start. In the background it takes the
// place of the oldest that has ended, where too many have.
func (m *Manager) begin(ctx context.Context, b *box.Box, r *resolved, d sandbox.Decision, background bool) error {
	r.record = sandbox.ExecRecord{
		ID: r.id, Session: r.run.Session, Sandbox: b.ID, Argv: r.question.Argv, Holder: m.cfg.Holder, Background: background,
		Owner: sandbox.CallerFrom(ctx).Owner, Labels: r.run.Labels, Shell: r.opens, Terminal: r.run.Terminal != nil,
		Started: m.cfg.Now().UTC(),
	}
	if background {
		r.record.Decision, r.record.NotEnforced = &d, m.unseen(b)
		r.record.Approve, r.record.Role, r.record.Env = r.run.Approve, r.run.Role, len(r.run.Env) > 0
	}
	ctx, done := telemetry.Start(ctx, "record", slog.String("recorded", "start"))
	change := sandbox.Transaction{PutExecs: []sandbox.ExecRecord{r.record}, Events: []sandbox.Event{m.startedEvent(r, b, d, r.run.Session)}}
	if background {
		change.KeepEnded = keepEnded - 1
	}
	err := m.record(ctx, change)
	done(err)
	return err
}

// finish writes down how an exec ended and what it changed; unrecorded says why
// not all of that is known.
func (m *Manager) finish(ctx context.Context, b *box.Box, r *resolved, out client.Outcome, changes []sandbox.FileChange, unrecorded error) error {
	ctx, done := telemetry.Start(ctx, "record", slog.String("recorded", "end"))
	err := m.closeExecWith(ctx, sandbox.ExecRecord{ID: r.id, Session: r.run.Session, Sandbox: b.ID, Labels: r.run.Labels}, out, changes, unrecorded)
	done(err)
	return err
}

// neverBegan writes down that an exec that was announced did not begin, or that
// an agent that went away did not say whether.
func (m *Manager) neverBegan(ctx context.Context, b *box.Box, r *resolved, why error) error {
	exit := sandbox.Exit{Reason: sandbox.ReasonInfra, Cause: "it never began: " + why.Error()}
	if errors.Is(why, sandbox.Unavailable) {
		exit.Cause = "whether it began is not known: " + why.Error()
	}
	return m.finish(ctx, b, r, client.Outcome{Exit: exit}, nil, nil)
}
