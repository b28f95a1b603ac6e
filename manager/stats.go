package manager

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// SessionStats reads what a session's sandboxes use now. One that is gone is left
// out, and of one that does not answer there is no sample. Reading is no use of
// them. Errors: NotFound, and those of the engine.
func (m *Manager) SessionStats(ctx context.Context, session string) (sandbox.SessionStats, error) {
	v, err := m.Session(ctx, session)
	if err != nil {
		return sandbox.SessionStats{}, err
	}
	all := sandbox.SessionStats{Session: v.Name, Sandboxes: []sandbox.Stats{}}
	all.Execs, all.Running = countExecs(v.Execs, "")
	for _, rec := range v.Sandboxes {
		if rec.State != sandbox.StateReady && rec.State != sandbox.StatePaused {
			continue
		}
		s := sandbox.Stats{ID: rec.ID, Language: rec.Language, State: rec.State}
		s.Execs, s.Running = countExecs(v.Execs, rec.ID)
		s.Sample, s.Methods, err = m.sampleOf(ctx, v, rec)
		if errors.Is(err, box.ErrEnded) || errors.Is(err, sandbox.NotFound) {
			continue
		}
		if err != nil && !errors.Is(err, sandbox.Unavailable) {
			return all, err
		}
		all.Sandboxes = append(all.Sandboxes, s)
	}
	return all, nil
}

// sampleOf reads what one sandbox uses. Of one that is paused the engine is asked.
func (m *Manager) sampleOf(ctx context.Context, v sandbox.SessionView, rec sandbox.SandboxRecord) (sandbox.Sample, sandbox.SampleMethods, error) {
	if rec.State == sandbox.StatePaused {
		return m.sampleFrozen(ctx, rec)
	}
	b, err := m.connect(ctx, v, rec)
	if err != nil {
		return sandbox.Sample{}, sandbox.SampleMethods{}, err
	}
	s, err := b.Sample(ctx)
	if err != nil {
		return s, sandbox.SampleMethods{}, err
	}
	how := methodsBy("agent")
	if s.AgentProcesses == 0 {
		how = methodsBy("engine")
		how.Workspace, how.Tmp = "agent", "agent"
	}
	return s, how, nil
}

func (m *Manager) sampleFrozen(ctx context.Context, rec sandbox.SandboxRecord) (s sandbox.Sample, how sandbox.SampleMethods, err error) {
	h, err := handleOf(rec)
	if err != nil {
		return s, how, err
	}
	inst, err := m.attach(ctx, h)
	if err != nil {
		return s, how, err
	}
	engine, ok := inst.(runtimes.Sampler)
	if !ok {
		return s, how, nil
	}
	if s, err = engine.Sample(ctx); err != nil {
		return s, how, err
	}
	how = methodsBy("engine")
	how.Workspace, how.Tmp = "", ""
	return s, how, nil
}

func methodsBy(who string) sandbox.SampleMethods {
	return sandbox.SampleMethods{CPU: who, Memory: who, Processes: who, Network: who, Block: who, Workspace: who, Tmp: who}
}

// countExecs counts those of one sandbox, or of all where it is "".
func countExecs(execs []sandbox.ExecRecord, of sandbox.ID) (all, running int) {
	for _, e := range execs {
		if of != "" && e.Sandbox != of {
			continue
		}
		all++
		if e.Ended.IsZero() {
			running++
		}
	}
	return all, running
}
