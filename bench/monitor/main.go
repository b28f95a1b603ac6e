//go:build linux

// Command monitor measures what it costs to watch sandboxes:
//
//	go run ./bench/monitor            tables, and exit code 1 where a bar does not hold
//	go run ./bench/monitor -json      one object a line
//	go run ./bench/monitor -smoke     a few samples, to see that all of it works
//
// It needs a Docker Engine on this host and Go to build caisson. Its containers
// are removed at its end.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/monitor"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() { os.Exit(measure.Main("monitor", run)) }

// fixture is a manager with a memory, and what it takes to watch its sandboxes.
type fixture struct {
	*rig.Rig
	m     *manager.Manager
	store monitor.Store
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	cfg, err := r.Durable(ctx, r.Config())
	if err != nil {
		return err
	}
	f := &fixture{Rig: r, store: cfg.Store.(monitor.Store)}
	if f.m, err = r.Manager(cfg); err != nil {
		return err
	}
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{warm, told, many} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}

// watch runs a monitor until stop is called.
func (f *fixture) watch(ctx context.Context, cfg monitor.Config) (*monitor.Monitor, func(), error) {
	cfg.Sandboxes, cfg.Store = f.m, f.store
	m, err := monitor.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var task sync.WaitGroup
	task.Go(func() { m.Run(ctx) })
	return m, func() { cancel(); task.Wait() }, nil
}

// warm measures a warm exec while its sandbox is watched, and while it is not, in
// turns of the same length.
func warm(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name, with, without = "warm true, watched", "watched", "not watched"
	if !s.Wants(name) {
		return nil
	}
	box, err := f.m.Open(ctx, manager.OpenOptions{Language: "shell", Limits: sandbox.Limits{CPUs: float64(runtime.NumCPU())}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	turns, long := 12, 5*time.Second // each turn has samples in it
	if s.Smoke {
		turns, long = 2, 3*time.Second
	}
	sample := measure.Millis(func(ctx context.Context) error {
		return rig.Succeeded(box.Exec(ctx, sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}))
	})
	samples := map[string][]float64{}
	for turn := range turns {
		kind, stop := without, func() {}
		if turn%4 == 1 || turn%4 == 2 { // so that neither is always first
			kind = with
			if _, stop, err = f.watch(ctx, monitor.Config{}); err != nil {
				return err
			}
		}
		for end := time.Now().Add(long); time.Now().Before(end); {
			v, err := sample(ctx)
			if err != nil {
				stop()
				return err
			}
			samples[kind] = append(samples[kind], v)
		}
		stop()
	}
	return s.Report(measure.Set{
		Name: name, Unit: "ms", Subjects: []measure.Subject{{Name: with}, {Name: without}},
		Rows: []measure.Row{{Name: "monitor/true", Own: with, Peer: without, Bar: &measure.Bar{
			Asked: "p50 <= peer + 0.1 ms", Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+0.1 },
		}}},
	}, samples)
}

// told measures how long after the sample that completes it an alert is out.
func told(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name, own = "alert after its sample", "subscriber"
	if !s.Wants(name) {
		return nil
	}
	box, err := f.m.Open(ctx, manager.OpenOptions{Language: "shell"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	m, stop, err := f.watch(ctx, monitor.Config{Every: 100 * time.Millisecond, Rules: []sandbox.AlertRule{{Name: "runs", When: "execs > 0"}}})
	if err != nil {
		return err
	}
	defer stop()
	news := m.Subscribe(ctx)
	took := make(chan float64, 1000) // one for each episode, once it is over
	go func() {
		late := 0.0
		for n := range news {
			if n.Rule == "runs" && n.Resolved.IsZero() {
				late = float64(time.Since(n.Sample.Time)) / float64(time.Millisecond)
			} else if n.Rule == "runs" {
				took <- late
			}
		}
	}()
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 20,
		Subjects: []measure.Subject{{Name: own, Sample: func(ctx context.Context) (float64, error) {
			err := rig.Succeeded(box.Exec(ctx, sandbox.Run{Command: []string{"sleep", "0.5"}}, sandbox.Streams{}))
			if err != nil {
				return 0, err
			}
			select {
			case v := <-took:
				return v, nil
			case <-time.After(time.Minute):
				return 0, errors.New("no alert")
			}
		}}},
		Rows: []measure.Row{{Name: "monitor/alert", Own: own, Bar: measure.Below("<= 500 ms", 500)}},
	})
}

// The subjects of many.
const (
	watching = "watching them"
	whole    = "caisson and engine, watched"
	atRest   = "caisson and engine, not watched"
	alone    = "caisson alone"
	agents   = "the sandboxes' agents"
	oneShot  = "engine's one-shot statistics"
)

// many measures the CPU time that it takes to sample many sandboxes every two
// seconds, beside the engine's one-shot call for each. Engine and agents are busy
// with sandboxes that nobody watches too: what watching takes is the difference
// between two turns, one with it and one without.
func many(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "100 sandboxes, every 2 s"
	if !s.Wants(name) {
		return nil
	}
	n, rounds := 100, 5
	if s.Smoke {
		n, rounds = 3, 1
	}
	for range n {
		box, err := f.m.Open(ctx, manager.OpenOptions{Language: "shell"})
		if err != nil {
			return err
		}
		f.Defer(box.Close)
	}
	pids, err := f.agents(ctx)
	if err != nil {
		return err
	}
	const turn = 10 * time.Second
	samples := map[string][]float64{}
	note := func(name string, v float64) { samples[name] = append(samples[name], v) }
	for range rounds {
		rest, err := busy(pids, func() error { time.Sleep(turn); return nil })
		if err != nil {
			return err
		}
		_, stop, err := f.watch(ctx, monitor.Config{})
		if err != nil {
			return err
		}
		time.Sleep(5 * time.Second)
		watched, err := busy(pids, func() error { time.Sleep(turn); return nil })
		stop()
		if err != nil {
			return err
		}
		asked, err := busy(pids, func() error { return f.oneShots(ctx, turn) })
		if err != nil {
			return err
		}
		note(watching, watched.all()-rest.all())
		note(whole, watched.all())
		note(atRest, rest.all())
		note(alone, watched.ours-rest.ours)
		note(agents, watched.agents-rest.agents)
		note(oneShot, asked.all()-rest.all())
	}
	set := measure.Set{Name: name, Unit: "% of a core", Rows: []measure.Row{
		{Name: "monitor/many", Own: watching, Peer: oneShot, Bar: measure.Below("<= 5 %", 5)},
		{Name: "monitor/whole", Own: whole, Peer: atRest}, {Name: "monitor/alone", Own: alone}, {Name: "monitor/agents", Own: agents},
	}}
	for _, name := range []string{watching, whole, atRest, alone, agents, oneShot} {
		set.Subjects = append(set.Subjects, measure.Subject{Name: name})
	}
	return s.Report(set, samples)
}

// agents are the processes that are the agents of all sandboxes.
func (f *fixture) agents(ctx context.Context) (pids []int, err error) {
	for _, l := range f.m.Live() {
		c, err := f.API.ContainerInspect(ctx, "caisson-"+string(l.ID))
		if err != nil {
			return nil, err
		}
		pids = append(pids, c.State.Pid)
	}
	return pids, nil
}

// oneShots asks the engine for the statistics of every sandbox, every two seconds:
// for all at once, since it takes a second for each answer.
func (f *fixture) oneShots(ctx context.Context, long time.Duration) error {
	live := f.m.Live()
	errs := make([]error, len(live))
	for end := time.Now().Add(long); time.Now().Before(end); {
		next := time.Now().Add(monitor.DefaultEvery)
		var all sync.WaitGroup
		for i, l := range live {
			all.Go(func() {
				got, err := f.API.ContainerStatsOneShot(ctx, "caisson-"+string(l.ID))
				if err == nil {
					_, err = io.Copy(io.Discard, got.Body)
					err = errors.Join(err, got.Body.Close())
				}
				errs[i] = err
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		time.Sleep(time.Until(next))
	}
	return nil
}

// load is how much of a core is used, in percent: by this process, by the agents of
// its sandboxes, and by the engine. What others ask of the engine counts too.
type load struct{ ours, agents, engine float64 }

func (l load) all() float64 { return l.ours + l.agents + l.engine }

// busy is the load while do runs.
func busy(agents []int, do func() error) (load, error) {
	before, begun := cpuTimes(agents), time.Now()
	err := do()
	after, share := cpuTimes(agents), 100/float64(time.Since(begun))
	return load{share * (after.ours - before.ours), share * (after.agents - before.agents), share * (after.engine - before.engine)}, err
}

// cpuTimes are what has been used so far, in nanoseconds.
func cpuTimes(agents []int) load {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		panic(err) // it takes no argument that could be wrong
	}
	l := load{ours: float64(ru.Utime.Nano() + ru.Stime.Nano())}
	for _, pid := range agents {
		_, used := cpuTime(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		l.agents += used
	}
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, name := range all {
		if comm, used := cpuTime(name); comm == "dockerd" || comm == "containerd" || strings.HasPrefix(comm, "containerd-shim") {
			l.engine += used
		}
	}
	return l
}

// cpuTime is the name of a process and what it has used, in nanoseconds: nothing
// where it has just ended.
func cpuTime(stat string) (comm string, used float64) {
	b, err := os.ReadFile(stat)
	if err != nil {
		return "", 0
	}
	_, rest, _ := strings.Cut(string(b), " (")
	comm, rest, _ = strings.Cut(rest, ") ")
	fields := strings.Fields(rest)
	for _, i := range []int{11, 12} { // utime and stime, in hundredths of a second
		ticks, err := strconv.Atoi(fields[i])
		if err != nil {
			panic(fmt.Sprintf("%s: %v", stat, err))
		}
		used += float64(time.Duration(ticks) * 10 * time.Millisecond)
	}
	return comm, used
}
