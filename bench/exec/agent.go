//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// agentSize measures what the agent costs: on disk, and resident after many
// execs and while output floods through it.
func agentSize(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "agent"
	if !s.Wants(name) {
		return nil
	}
	const binary, after, during = "binary", "resident after 1000 execs", "resident while 256 MiB are printed"
	st, err := os.Stat(f.Program("caisson-agent"))
	if err != nil {
		return err
	}
	box, err := f.sandbox(ctx, "shell", f.cores)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	execs := 1000
	if s.Smoke {
		execs = 20
	}
	for range execs {
		if err := execIn(ctx, box, "true"); err != nil {
			return err
		}
	}
	resident, err := residentOf(ctx, box)
	if err != nil {
		return err
	}
	flooded, err := floodedResident(ctx, box)
	if err != nil {
		return err
	}
	set := measure.Set{
		Name: name, Unit: "MiB",
		Subjects: []measure.Subject{{Name: binary, CPUs: f.cores}, {Name: after, CPUs: f.cores}, {Name: during, CPUs: f.cores}},
		Rows: []measure.Row{
			{Name: "agent/binary", Own: binary, Bar: measure.Below("<= 5 MiB", 5)},
			{Name: "agent/resident/execs", Own: after, Bar: measure.Below("<= 10 MiB", 10)},
			{Name: "agent/resident/output", Own: during, Bar: measure.Below("<= 10 MiB", 10)},
		},
	}
	return s.Report(set, map[string][]float64{
		binary: {mib(sandbox.Bytes(st.Size()))}, after: {resident}, during: flooded,
	})
}

func mib(b sandbox.Bytes) float64 { return float64(b) / float64(sandbox.MiB) }

func residentOf(ctx context.Context, s *manager.Sandbox) (float64, error) {
	st, err := s.Sample(ctx)
	return mib(st.AgentMemory), err
}

// floodedResident looks at the agent while it moves output.
func floodedResident(ctx context.Context, s *manager.Sandbox) ([]float64, error) {
	done := make(chan error, 1)
	go func() { done <- printIn(ctx, s) }()
	var samples []float64
	for {
		v, err := residentOf(ctx, s)
		if err != nil {
			return nil, errors.Join(err, <-done)
		}
		samples = append(samples, v)
		select {
		case err := <-done:
			return samples, err
		case <-time.After(5 * time.Millisecond):
		}
	}
}
