package manager

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// Question is what a gate is asked. Exactly one of its fields is set.
type Question struct {
	Exec  *ExecQuestion
	Plan  *PlanQuestion
	Host  *HostQuestion
	Tool  *ToolQuestion
	Start *StartQuestion
}

// HostQuestion is a host that an exec, which runs, wants to connect to. No list
// denies it.
type HostQuestion struct {
	Exec *ExecQuestion // as it was judged; its asker may be nil
	Host string        // a name in lower case, or an address
	Port int
	// Listed says that the list of its network has it. What it has not is reached by
	// an approval alone, whatever the verdict.
	Listed bool
}

// PlanQuestion is a sandbox that is to be made.
type PlanQuestion struct {
	Plan *runtimes.Plan
	// Starts says that what programs start in it is to be seen, and can be.
	Starts  bool
	Approve sandbox.ApproveMode
	Ask     sandbox.Asker // of the run that needs it; may be nil
}

// ExecQuestion is an exec that is to be run, fully resolved: what is judged is
// what runs.
type ExecQuestion struct {
	ID       sandbox.ID
	Run      sandbox.Run   // as it was asked for
	Ask      sandbox.Asker // beside it; may be nil
	Language sandbox.Language
	Argv     []string
	Env      []string // the language's, then the run's own, without the sandbox's base
	Dir      string
	Role     sandbox.Role
	Limits   sandbox.Limits // of the sandbox
	sandbox.ExecLimits
	// User names whom it runs as: a session's user, or "one-shot" for one that
	// is made for it.
	User    string
	Network sandbox.Network
	// Stage is the code that the argv's file will hold, where there is one.
	Stage []byte
	// Staged are the files of [sandbox.Run].Stage, by their names there.
	Staged []StageFile
	// Stdin is the standard input, nil without one. Nobody has read of it.
	Stdin io.Reader
	// Making says that a sandbox is made for it meanwhile, which will be asked
	// about too.
	Making bool
	// Shell is the shell that it runs in, nil of others. Then Dir is where that is.
	Shell *ShellQuestion
	// Background says that nobody waits for it: what it starts lives on.
	Background bool
	// Terminal says that it has a terminal, where anything may be typed later.
	Terminal bool
	// Tools are those of the host that it may call; each call is asked about then.
	Tools []sandbox.Tool
	// Workspace is what it will find.
	Workspace Workspace
	// Plan waits for the sandbox that it runs in, and says what that was made as:
	// its image, and the walls that it has. The caller alters nothing of it.
	Plan func(ctx context.Context) (runtimes.Plan, error)
	// JudgesStarts waits as Plan does, and reports whether what it starts is asked
	// about when that happens. Where it says so and that cannot be, the exec does not
	// run. nil is that nothing is.
	JudgesStarts func(ctx context.Context) (bool, error)
}

// ShellQuestion is what is known of the shell that a text is to run in.
type ShellQuestion struct {
	Name   string
	Texts  []string // that have run in it, the oldest first
	Forgot bool     // there were more
	Env    bool     // it was started with variables of its caller's
}

// Answer is what a gate says.
type Answer struct {
	Decision sandbox.Decision
	// Program stands for what was asked about, with the bytes that were judged.
	// nil runs it as it was asked for.
	Program *Program
	// Of a start that may happen: Same lets the same one happen again unasked in its
	// sandbox, Any the same program of the image with whatever arguments.
	Same, Any bool
}

// Program is what runs once it was judged.
type Program struct {
	Argv  []string
	Env   []string
	Stage []StageFile
	// Stdin replaces the standard input.
	Stdin io.Reader
	// Watched are files of the workspace that were judged and that are read
	// again later, by the program itself, with their digests. A run ends once
	// one of them is another.
	Watched map[string][sha256.Size]byte
}

// StageFile is a file that an exec finds at [StagePath], which its user cannot
// write, and that goes with it.
type StageFile = client.StageFile

// StagePath is where the staged file name of an exec lies.
func StagePath(exec sandbox.ID, name string) string { return client.StagePath(exec, name) }

// Gate judges. An error refuses, as does every verdict that does not permit.
// A gate may take long, since a person may be asked, and obeys ctx. It is
// called from many goroutines.
type Gate func(ctx context.Context, q Question) (Answer, error)

// Unjudged is the gate that judges nothing and lets everything pass. It is for
// tests and for measuring what a gate costs: archtest holds it there.
func Unjudged(context.Context, Question) (Answer, error) {
	return Answer{Decision: sandbox.Decision{Verdict: sandbox.Unjudged, Findings: []sandbox.Finding{}}}, nil
}

// judge asks the gate and turns a refusal into a [sandbox.DeniedError].
func (m *Manager) judge(ctx context.Context, q Question) (sandbox.Decision, *Program, error) {
	a, err := m.cfg.Gate(ctx, q)
	if err != nil {
		a.Decision.Verdict = sandbox.Deny
		return a.Decision, nil, err
	}
	if !a.Decision.Permits() {
		return a.Decision, nil, &sandbox.DeniedError{Decision: a.Decision}
	}
	return a.Decision, a.Program, nil
}

// asker is whom a sandbox that has to be made is asked about with.
type asker struct {
	approve sandbox.ApproveMode
	ask     sandbox.Asker // may be nil
}

// judgePlan asks about a sandbox that is planned.
func (m *Manager) judgePlan(who asker) func(context.Context, *runtimes.Plan) error {
	return func(ctx context.Context, plan *runtimes.Plan) error {
		ctx, done := telemetry.Start(ctx, "gate", slog.String("judged", "sandbox"))
		seen, err := m.seesStarts(ctx, plan)
		if err == nil {
			_, _, err = m.judge(ctx, Question{Plan: &PlanQuestion{Plan: plan, Starts: seen, Approve: who.approve, Ask: who.ask}})
		}
		done(err)
		return err
	}
}

// judgeExec asks about an exec. What the gate puts in its place is what runs.
func (m *Manager) judgeExec(ctx context.Context, r *resolved) (sandbox.Decision, error) {
	begun := time.Now()
	ctx, done := telemetry.Start(ctx, "gate", slog.String("judged", "exec"))
	if m.cfg.Starts.Mode == sandbox.StartsJudge {
		r.question.JudgesStarts = func(ctx context.Context) (bool, error) {
			plan, err := r.question.Plan(ctx)
			if err != nil {
				return false, err
			}
			judged, err := m.seesStarts(ctx, &plan)
			if judged {
				r.counted.Store(true)
			}
			return judged, err
		}
	}
	d, p, err := m.judge(ctx, Question{Exec: &r.question})
	r.judging = time.Since(begun)
	telemetry.Note(ctx, slog.String("verdict", string(d.Verdict)), slog.String("level", d.Level.String()))
	done(err)
	if p != nil && err == nil {
		r.program = p
	}
	return d, err
}
