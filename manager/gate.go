package manager

import (
	"context"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Question is what a gate is asked. Exactly one of Exec and Plan is set.
type Question struct {
	Exec *ExecQuestion
	Plan *runtimes.Plan // a sandbox is to be made
}

// ExecQuestion is an exec that is to be run, fully resolved: what is judged is
// what runs.
type ExecQuestion struct {
	Run      sandbox.Run // as it was asked for
	Language sandbox.Language
	Argv     []string
	Env      []string // the run's own, without the sandbox's base
	Dir      string
	Role     sandbox.Role
	// Stage is the code that the argv's file will hold, where there is one.
	Stage []byte
	// Stdin says that standard input will follow, whose bytes nobody knows yet.
	Stdin bool
}

// Gate judges. An error refuses, as does every verdict that does not permit.
// A gate may take long, since a person may be asked, and obeys ctx. It is
// called from many goroutines.
type Gate func(ctx context.Context, q Question) (sandbox.Decision, error)

// Unjudged is the gate that judges nothing and lets everything pass. It stands
// in for policy until there is one.
func Unjudged(context.Context, Question) (sandbox.Decision, error) {
	return sandbox.Decision{Verdict: sandbox.Unjudged, Findings: []sandbox.Finding{}}, nil
}

// judge asks the gate and turns a refusal into a [sandbox.DeniedError].
func (m *Manager) judge(ctx context.Context, q Question) (sandbox.Decision, error) {
	d, err := m.cfg.Gate(ctx, q)
	if err != nil {
		return sandbox.Decision{Verdict: sandbox.Deny, Findings: d.Findings}, err
	}
	if !d.Verdict.Permits() {
		return d, &sandbox.DeniedError{Decision: d}
	}
	return d, nil
}
