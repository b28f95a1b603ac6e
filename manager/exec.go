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
}

// resolve turns a run into an argv. Errors: Invalid.
func (s *Sandbox) resolve(run sandbox.Run, streams sandbox.Streams) (*resolved, error) {
	r := &resolved{run: run, id: sandbox.NewID(), limits: s.opts.Limits.WithDefaults()}
	if run.Timeout != 0 {
		r.limits.Timeout = run.Timeout
	}
	if err := r.limits.Check(); err != nil {
		return nil, err
	}
	if err := checkRun(run); err != nil {
		return nil, err
	}
	q := ExecQuestion{Run: run, Language: s.language, Env: slices.Concat(s.language.Env, run.Env), Dir: run.Dir, Role: run.Role, Stdin: streams.Stdin != nil}
	lang := s.language
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
	r, err := s.resolve(run, streams)
	if err != nil {
		return sandbox.Result{}, err
	}
	decision, err := s.m.judge(ctx, Question{Exec: &r.question})
	if err != nil {
		return s.refused(r, decision), err
	}
	return s.exec(ctx, r, decision, streams)
}

// refused is the Result of a run that never started.
func (s *Sandbox) refused(r *resolved, d sandbox.Decision) sandbox.Result {
	return sandbox.Result{
		ExecID: r.id, Session: r.run.Session, Language: s.language.Name, Decision: d,
		Exit: sandbox.Exit{Code: 126, Reason: sandbox.ReasonDenied},
	}
}

// exec runs what was judged.
func (s *Sandbox) exec(ctx context.Context, r *resolved, d sandbox.Decision, streams sandbox.Streams) (_ sandbox.Result, err error) {
	l, replaced, err := s.acquire(ctx)
	if err != nil {
		return sandbox.Result{}, err
	}
	broken, failed := false, true
	defer func() { s.release(broken, failed) }()
	if len(r.run.Files) > 0 {
		if err := l.client.Put(ctx, r.run.Role, r.run.Files); err != nil {
			broken = errors.Is(err, sandbox.Unavailable)
			return sandbox.Result{}, err
		}
	}
	stdout, stderr := newCapture(streams.Stdout, int64(r.limits.Keep)), newCapture(streams.Stderr, int64(r.limits.Keep))
	out, err := l.client.Run(ctx, client.Command{
		ID: r.id, Argv: r.question.Argv, Env: r.question.Env, Dir: r.question.Dir, Role: r.question.Role, Timeout: r.limits.Timeout,
		MaxOutput: r.limits.MaxOutput, Stdin: streams.Stdin, Stdout: stdout, Stderr: stderr, Reap: true, Stage: r.stage,
	})
	if err != nil {
		broken = errors.Is(err, sandbox.Unavailable)
		if broken {
			err = sandbox.Errorf(sandbox.Unavailable, "%w (%s)", err, s.explain(ctx, l))
		}
		return sandbox.Result{}, err
	}
	if out.Message != "" {
		// A shell would say it on standard error, and so do we.
		_, _ = io.WriteString(stderr, "caisson: "+out.Message+"\n") // a writer that fails has nothing to lose here
	}
	broken = out.Broken
	if out.Reason == sandbox.ReasonInfra {
		out.Cause += "; " + s.explain(ctx, l)
	}
	res := sandbox.Result{
		ExecID: r.id, Session: r.run.Session, Language: s.language.Name, Exit: out.Exit, Duration: out.Usage.Wall, Usage: out.Usage,
		Decision: d, Replaced: replaced, Sandbox: l.instance.Handle().ID, Image: l.plan.Spec.Image.ID,
	}
	res.Stdout, res.Truncated.Stdout = stdout.bytes()
	res.Stderr, res.Truncated.Stderr = stderr.bytes()
	res.Truncated.Stdout += out.Lost.Stdout
	res.Truncated.Stderr += out.Lost.Stderr
	failed = res.Code != 0
	return res, nil
}

// explainPatience bounds the search for why a sandbox went away.
const explainPatience = 2 * time.Second

// explain asks the runtime what became of a sandbox whose agent is gone.
func (s *Sandbox) explain(ctx context.Context, l *live) string {
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
