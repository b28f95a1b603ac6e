package manager

import (
	"cmp"
	"context"
	"io"
	"path"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// compile is what is done before a program runs whose language is compiled. To the
// gate, to the audit and to all others it is a part of that run, and what it starts is
// judged as what that starts.
type compile struct {
	id      sandbox.ID // the agent's, since what is staged goes with an id
	argv    []string
	out     string // what it makes
	timeout sandbox.Duration
}

// compileOf has a run be compiled before, where its language is. file is where the
// text lies for the exec of an id.
func (r *resolved) compileOf(q *ExecQuestion, lang sandbox.Language, file func(sandbox.ID) string) {
	if len(lang.Compile) == 0 {
		return
	}
	c := &compile{id: sandbox.NewID(), out: path.Join("/tmp", "caisson-"+string(r.id)), timeout: cmp.Or(r.run.CompileTimeout, sandbox.DefaultExecLimits.Timeout)}
	c.argv = fillOut(lang.Argv(lang.Compile, "", file(c.id), nil), c.out)
	q.Argv = fillOut(q.Argv, c.out)
	r.compile = c
}

func fillOut(argv []string, out string) []string {
	for i, arg := range argv {
		argv[i] = strings.ReplaceAll(arg, "{out}", out)
	}
	return argv
}

// checkCompile reports what cannot be meant. Errors: Invalid, Unsupported.
func (r *resolved) checkCompile(background bool) error {
	switch c := r.compile; {
	case c == nil:
		return nil
	case background:
		return sandbox.Errorf(sandbox.Unsupported, "a program that has to be compiled first cannot run in the background").
			WithHint("compile it by a command of its own, and start what that made")
	case c.timeout < sandbox.Duration(time.Millisecond):
		return sandbox.Errorf(sandbox.Invalid, "--compile-timeout %s is out of range", c.timeout).WithHint("--compile-timeout takes at least 1ms")
	}
	return nil
}

// patience is how long a run may take by its limits.
func (r *resolved) patience() time.Duration {
	if r.compile == nil {
		return time.Duration(r.limits.Timeout)
	}
	return time.Duration(r.limits.Timeout + r.compile.timeout)
}

// runCompiled is [Manager.runTracked], once what has to be compiled is. Where that
// fails, its outcome is the run's, and what it said goes to the run's standard error.
func (m *Manager) runCompiled(ctx context.Context, b *box.Box, r *resolved, w ways, cmd client.Command) (client.Outcome, *sandbox.Compiled, error) {
	c := r.compile
	if c == nil {
		out, err := m.runTracked(ctx, b, r, cmd)
		return out, nil, err
	}
	if r.run.Session != "" { // else it goes with the sandbox
		defer func() {
			// Where this fails the sandbox has ended, or will end with what is left.
			_ = b.Client.Remove(context.WithoutCancel(ctx), cmd.Role, c.out, true)
		}()
	}
	stdout, stderr := newCapture(nil, int64(r.limits.KeepOutput)), newCapture(nil, int64(r.limits.KeepOutput))
	compiling, done := telemetry.Start(ctx, "compile")
	compiler := client.Command{
		ID: c.id, Argv: c.argv, Env: cmd.Env, Dir: cmd.Dir, Role: cmd.Role, Timeout: time.Duration(c.timeout), MaxOutput: cmd.MaxOutput, Stage: r.stage,
		Stdout: stdout, Stderr: stderr, Reap: true,
	}
	w.compiler.into(ctx, &compiler)
	out, err := b.Client.Run(compiling, compiler)
	done(err)
	if err != nil {
		return out, nil, err
	}
	var started sandbox.Result
	if err := w.compiler.tell(ctx, &started, out); err != nil {
		return out, nil, err
	}
	did := &sandbox.Compiled{
		Exit: out.Coded(), Duration: sandbox.Duration(out.Usage.Wall),
		Starts: started.Starts, StartsLeftOut: started.StartsLeftOut, StartsUnjudged: started.StartsUnjudged,
	}
	did.Stdout, did.Truncated.Stdout = stdout.text()
	did.Stderr, did.Truncated.Stderr = stderr.text()
	if did.Failed() {
		_, _ = io.WriteString(cmd.Stderr, did.Stdout+did.Stderr) // as with what the agent says of a program
		return out, did, nil
	}
	out, err = m.runTracked(ctx, b, r, cmd)
	return out, did, err
}
