//go:build linux

// Command gate measures what it costs that every run is judged before it
// starts: beside the same run on the same sandbox with a gate that judges
// nothing, and beside `docker run`.
//
//	go run ./bench/gate            tables, and exit code 1 where a bar does not hold
//	go run ./bench/gate -json      one object a line
//	go run ./bench/gate -smoke     a few samples, to see that all of it works
//
// It needs a Docker Engine on this host and Go to build caisson. Its sessions
// and containers are removed at its end.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/bench/rig/judge"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == oneShotCommand {
		os.Exit(oneShot(os.Args[2:]))
	}
	os.Exit(measure.Main("gate", run))
}

//go:embed fifty.py.txt
var fifty string

// The subjects' names.
const judged, unjudged = "judged", "not judged"

// fixture is caisson with a gate that can be switched.
type fixture struct {
	*rig.Rig
	manager *manager.Manager
	judges  *judge.Switch
	round   int
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f := &fixture{Rig: r}
	cfg, g, err := open(ctx, r.Dir, r.Runtime, r.Images, r.Defer)
	if err != nil {
		return err
	}
	f.judges = judge.NewSwitch(g)
	cfg.Gate = f.judges.Judge
	if f.manager, err = r.Manager(cfg); err != nil {
		return err
	}
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{warm, cold, command} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}

// exec is a sample of a run in the session that is named as its language. Each
// run is another one.
func (f *fixture) exec(judges bool, session string, make func(round int) sandbox.Run) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		f.judges.Set(judges)
		f.round++
		run := make(f.round)
		return measure.Millis(func(ctx context.Context) error {
			return rig.Succeeded(f.manager.ExecIn(ctx, session, run, sandbox.Streams{}))
		})(ctx)
	}
}

// warm measures execs in a sandbox that is there already.
func warm(ctx context.Context, s *measure.Suite, f *fixture) error {
	sets := []struct {
		name, language string
		rounds         int
		adds           float64
		run            func(round int) sandbox.Run
	}{
		{"warm true, judged before", "shell", 500, 1.5, func(int) sandbox.Run { return sandbox.Run{Command: []string{"true"}} }},
		{"warm true, never seen", "shell", 500, 1.5, func(n int) sandbox.Run { return sandbox.Run{Command: []string{"true", strconv.Itoa(n)}} }},
		{"50 lines of Python, never seen", "python", 300, 2, func(n int) sandbox.Run {
			return sandbox.Run{Code: strings.ReplaceAll(fifty, "@ROUND@", strconv.Itoa(n))}
		}},
	}
	for _, set := range sets {
		if !s.Wants(set.name) {
			continue
		}
		session := "bench-" + set.language
		if !f.made(ctx, session) {
			o := sandbox.SessionOptions{Name: session, Language: set.language, Limits: sandbox.Limits{CPUs: float64(runtime.NumCPU())}}
			if err := f.Session(ctx, f.manager, o); err != nil {
				return err
			}
		}
		err := s.Measure(ctx, measure.Set{
			Name: set.name, Unit: "ms", Rounds: set.rounds, Warmup: 20,
			Subjects: []measure.Subject{
				{Name: judged, Sample: f.exec(true, session, set.run)},
				{Name: unjudged, Sample: f.exec(false, session, set.run)},
			},
			Rows: []measure.Row{{Name: "gate/" + set.name, Own: judged, Peer: unjudged, Bar: &measure.Bar{
				Asked: fmt.Sprintf("p50 <= peer + %g ms", set.adds), Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+set.adds },
			}}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fixture) made(ctx context.Context, session string) bool {
	_, err := f.manager.Session(ctx, session)
	return err == nil
}
