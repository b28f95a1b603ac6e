//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// endless are programs that do not end by themselves, each with what it takes
// to get going.
var endless = []struct {
	name, script string
	timeout      time.Duration
}{
	{"one that sleeps", "exec sleep 300", 300 * time.Millisecond},
	{"escapes", "setsid sleep 300 & ( ( sleep 300 & ) & ); nohup sleep 300 >/dev/null 2>&1 & trap '' TERM INT HUP; while :; do sleep 1; done", 500 * time.Millisecond},
	{"90 busy loops", "for i in $(seq 90); do (while :; do :; done) & done; wait", 2 * time.Second},
	{"30 that fork without end", "for i in $(seq 30); do (while :; do (setsid sleep 0.05 &) ; done) & done; exec sleep 300", 2 * time.Second},
}

// ends measures how long after a timeout its answer is there, at the default
// half of a processor. Beside it is a process of the host's, killed by a timer.
func ends(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "answer after a timeout"
	if !s.Wants(name) {
		return nil
	}
	box, err := f.sandbox(ctx, "shell", 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	const killed = "native sleep, killed"
	set := measure.Set{Name: name, Unit: "ms", Rounds: 20, Warmup: 1, Subjects: []measure.Subject{{Name: killed, Sample: killedSleep}}}
	for _, p := range endless {
		set.Subjects = append(set.Subjects, measure.Subject{Name: p.name, CPUs: sandbox.DefaultLimits.CPUs, Sample: func(ctx context.Context) (float64, error) {
			return lateness(ctx, box, p.script, p.timeout)
		}})
		set.Rows = append(set.Rows, measure.Row{Name: "timeout/" + p.name, Own: p.name, Peer: killed, Bar: &measure.Bar{
			Asked: "p99 <= 250 ms", Holds: func(own, _ measure.Stats) bool { return own.P99 <= 250 },
		}})
	}
	return s.Measure(ctx, set)
}

// lateness runs a script to its timeout. Replacing a sandbox that was given up
// is not in it.
func lateness(ctx context.Context, box *manager.Sandbox, script string, timeout time.Duration) (float64, error) {
	if _, err := box.Exec(ctx, sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}); err != nil {
		return 0, err
	}
	start := time.Now()
	res, err := box.Exec(ctx, sandbox.Run{Command: []string{"bash", "-c", script}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(timeout)}}, sandbox.Streams{})
	late := time.Since(start) - timeout
	if err == nil && res.Reason != sandbox.ReasonTimeout {
		err = fmt.Errorf("ended with %s, code %d: %.300s", res.Reason, res.Code, res.Stderr)
	}
	return float64(late) / float64(time.Millisecond), err
}

func killedSleep(ctx context.Context) (float64, error) {
	const timeout = 300 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	start := time.Now()
	if err := exec.CommandContext(ctx, "sleep", "300").Run(); err == nil {
		return 0, errors.New("the native sleep ended by itself")
	}
	return float64(time.Since(start)-timeout) / float64(time.Millisecond), nil
}
