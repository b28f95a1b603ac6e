package manager_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestSampleAgrees holds the agent's samples against the engine's own, under a
// steady load.
func TestSampleAgrees(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{CPUs: 0.3}})
	engine := b.Instance().(runtimes.Sampler)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := make(chan struct{})
	over := make(chan error, 1)
	go func() {
		_, err := b.Exec(ctx, bash(`head -c 8M /dev/zero > f; head -c 4M /dev/zero > /tmp/f; x=$(head -c 48M /dev/zero | tr '\0' x); echo ready; while :; do :; done`),
			sandbox.Streams{Stdout: &wordWriter{words: "ready", then: func() { close(ready) }}})
		over <- err
	}()
	select {
	case <-ready:
	case err := <-over:
		t.Fatalf("the load ended: %v", err)
	}
	read := func(from interface {
		Sample(ctx context.Context) (sandbox.Sample, error)
	}) sandbox.Sample {
		s, err := from.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// The engine's counters lie between those of the agent before and after, so
	// that what is made of them differs by what passes between two calls.
	first := read(b)
	var last sandbox.Sample
	for last = first; last.CPU-first.CPU < sandbox.Duration(time.Second) || last.Throttled == first.Throttled && last.CPU-first.CPU < sandbox.Duration(10*time.Second); {
		before, of, after := last, read(engine), read(b)
		if of.CPU < before.CPU || of.CPU > after.CPU+sandbox.Duration(time.Microsecond) {
			t.Errorf("the engine counts %v of CPU between the agent's %v and %v", of.CPU, before.CPU, after.CPU)
		}
		if off := math.Abs(float64(of.Memory-after.Memory)) / float64(of.Memory); off > 0.05 {
			t.Errorf("memory is %d by the engine and %d by the agent: %.2f %% apart", of.Memory, after.Memory, 100*off)
		}
		if of.MemoryLimit != after.MemoryLimit || of.Cores != after.Cores || of.ProcessLimit != after.ProcessLimit {
			t.Errorf("the engine says %+v, the agent %+v", of, after)
		}
		last = after
	}
	if last.Throttled <= first.Throttled || math.Abs(last.CPUs-0.3) > 0.001 {
		t.Errorf("a busy loop at %v cores was held back for %v", last.CPUs, last.Throttled-first.Throttled)
	}
	if last.Workspace < 8*sandbox.MiB || last.Workspace > 12*sandbox.MiB || last.WorkspaceSize < 255*sandbox.MiB || last.WorkspaceSize > 257*sandbox.MiB {
		t.Errorf("8 MiB in a workspace of 256 MiB: %d of %d", last.Workspace, last.WorkspaceSize)
	}
	if last.Tmp < 4*sandbox.MiB || last.Tmp > 8*sandbox.MiB || last.TmpSize < 128*sandbox.MiB {
		t.Errorf("4 MiB in /tmp: %d of %d", last.Tmp, last.TmpSize)
	}
	if last.MemoryLimit != 512*sandbox.MiB || last.MemoryCached < last.Memory || last.ProcessLimit < 100 || last.Processes <= last.AgentProcesses || last.NetworkReceived != 0 {
		t.Errorf("%+v", last)
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
}
