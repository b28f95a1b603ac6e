//go:build linux

// Command starts measures what it costs that everything is seen and judged that a
// program starts while it runs: beside the same program in a sandbox where that is
// not so. What may pass is known to the sandbox's agent after the first time, but for
// the starts that none is like.
//
//	go run ./bench/starts            tables, and exit code 1 where a bar does not hold
//	go run ./bench/starts -json      one object a line
//	go run ./bench/starts -smoke     a few samples, to see that all of it works
//
// It needs a Docker Engine on this host and Go to build caisson; one set root,
// bubblewrap, make and a C compiler.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() { os.Exit(measure.Main("starts", run)) }

// The subjects' names.
const judged, unseen = "starts judged", "not seen"

// letPass is a gate that lets everything pass; what it says of env is for the one
// start alone.
func letPass(_ context.Context, q manager.Question) (manager.Answer, error) {
	a := manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Allow, Findings: []sandbox.Finding{}}}
	if q.Start != nil {
		a.Same = true
		a.Any = q.Start.Start.Path != "/usr/bin/env"
	}
	return a, nil
}

// program is what is run in both kinds of sandbox.
type program struct {
	name, language string
	rounds         int
	bar            string
	holds          func(own, peer measure.Stats) bool
	run            func(round int) sandbox.Run
}

func atMost(ratio float64) (string, func(own, peer measure.Stats) bool) {
	return fmt.Sprintf("p50 <= %.2f x peer", ratio), func(own, peer measure.Stats) bool { return own.P50 <= ratio*peer.P50 }
}

func adds(ms float64) (string, func(own, peer measure.Stats) bool) {
	return fmt.Sprintf("p50 <= peer + %g ms", ms), func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+ms }
}

func programs() []program {
	code := func(text string) func(int) sandbox.Run {
		return func(int) sandbox.Run { return sandbox.Run{Code: text} }
	}
	all := []program{
		{name: "warm true", language: "shell", rounds: 500, run: func(int) sandbox.Run { return sandbox.Run{Command: []string{"true"}} }},
		{name: "1,000 starts in a shell", language: "shell", rounds: 20, run: code("i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done")},
		{name: "500 starts in Python", language: "python", rounds: 20, run: code("import subprocess\nfor _ in range(500): subprocess.run(['/bin/true'])")},
		{name: "one start, never seen", language: "shell", rounds: 300, run: func(n int) sandbox.Run {
			return sandbox.Run{Code: "/usr/bin/env -u X" + strconv.Itoa(n) + " >/dev/null"}
		}},
	}
	all[0].bar, all[0].holds = adds(0.1)
	all[1].bar, all[1].holds = atMost(1.25)
	all[2].bar, all[2].holds = atMost(1.25)
	all[3].bar, all[3].holds = adds(3)
	return all
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	boxes := map[string]map[string]*manager.Sandbox{}
	for name, rule := range map[string]sandbox.StartsRule{unseen: {}, judged: {Mode: sandbox.StartsJudge}} {
		cfg := r.Config()
		cfg.Gate, cfg.Starts = letPass, rule
		m, err := r.Manager(cfg)
		if err != nil {
			return err
		}
		boxes[name] = map[string]*manager.Sandbox{}
		for _, language := range []string{"shell", "python"} {
			box, err := m.Open(ctx, manager.OpenOptions{Language: language, Limits: sandbox.Limits{CPUs: float64(runtime.NumCPU())}})
			if err != nil {
				return err
			}
			boxes[name][language] = box // the manager closes it
		}
	}
	for _, p := range programs() {
		round := 0
		sample := func(name string) func(context.Context) (float64, error) {
			return measure.Millis(func(ctx context.Context) error {
				round++
				run := p.run(round)
				run.Language = p.language
				return rig.Succeeded(boxes[name][p.language].Exec(ctx, run, sandbox.Streams{}))
			})
		}
		err := s.Measure(ctx, measure.Set{
			Name: p.name, Unit: "ms", Rounds: p.rounds, Warmup: 3,
			Subjects: []measure.Subject{{Name: judged, Sample: sample(judged)}, {Name: unseen, Sample: sample(unseen)}},
			Rows:     []measure.Row{{Name: "starts/" + p.name, Own: judged, Peer: unseen, Bar: &measure.Bar{Asked: p.bar, Holds: p.holds}}},
		})
		if err != nil {
			return err
		}
	}
	return makes(ctx, s, r)
}
