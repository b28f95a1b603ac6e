// Command policy measures how fast the policy judges:
//
//	go run ./bench/policy            tables, and exit code 1 where a bar does not hold
//	go run ./bench/policy -json      one object a line
//	go run ./bench/policy -smoke     a few samples, to see that all of it works
//
// A decision is what a run waits for: facts by a locked-down caisson-scan and
// the rules over them. The scanner is found as caisson finds it: beside this
// program, in libexec, or by CAISSON_SCAN.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/scanner"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/sandbox"
)

// sample is a program of 200 lines.
//
//go:embed sample.py.txt
var sample string

// role is the environment variable that makes this program one of the fresh
// processes that it measures: "decide" once, or "start" and end.
const role = "CAISSON_BENCH_POLICY"

// kept is the one that names the folder for what outlives a process.
const kept = "CAISSON_BENCH_KEPT"

// programs is how many a batch has.
const programs = 1000

func main() {
	switch os.Getenv(role) {
	case "decide":
		os.Exit(first())
	case "start":
		os.Exit(0)
	}
	os.Exit(measure.Main("policy", run))
}

// first makes one decision, as a fresh process does.
func first() int {
	p, done, err := open(true)
	if err == nil {
		// A text that no process has judged before.
		code := fmt.Appendf(nil, "print(%d)\n", time.Now().UnixNano())
		d := p.Judge(context.Background(), policy.Request{Language: "python", Code: code})
		if d.Verdict != sandbox.Allow {
			err = fmt.Errorf("first decision: %+v", d)
		}
		err = errors.Join(err, done())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	return 0
}

// open makes a policy and its scanners, both at once as caisson does; one that
// judges once reads the rules only as far as it needs them, and keeps what they
// were made into where kept names a folder.
func open(once bool) (*policy.Policy, func() error, error) {
	cfg := policy.Config{Rules: policies.FS, CacheSize: -1, Lazy: once}
	closers := []func() error{}
	if dir := os.Getenv(kept); dir != "" && once {
		folder := policy.NewFolder(dir)
		closers = append(closers, folder.Close)
		cfg.Keeper = folder
	}
	c := cfg
	pool := scanner.Start(context.Background(), func() (scanner.Config, error) {
		tb, err := policy.EncodedTables(c, func() (*facts.Tables, error) { return tables.Load(policies.FS) })
		return scanner.Config{Encoded: tb}, err
	})
	closers = append(closers, pool.Close)
	done := func() (err error) {
		for _, f := range closers {
			err = errors.Join(err, f())
		}
		return err
	}
	cfg.Scanner = pool
	p, err := policy.Load(context.Background(), cfg)
	if err == nil {
		_, err = pool.Ready(context.Background())
	}
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return p, done, nil
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	p, done, err := open(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	for _, set := range []func(context.Context, *measure.Suite, *policy.Policy) error{decision, batch, costly} {
		if err := set(ctx, s, p); err != nil {
			return err
		}
	}
	return fresh(ctx, s)
}

// The bars are milliseconds on a machine on which the yardstick takes paced.
const (
	yardstick = "python3 -c pass"
	paced     = 8.4
)

// pace is the yardstick as a subject, which takes turns with what is measured:
// how fast a machine is changes within minutes where others share it. Every is
// as for [measure.Subject]. It is none where there is no Python; the bars then
// stand as they are.
func pace(every int) []measure.Subject {
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		return nil
	}
	return []measure.Subject{{Name: yardstick, CPUs: float64(runtime.NumCPU()), Every: every, Sample: measure.Millis(func(ctx context.Context) error {
		return exec.CommandContext(ctx, python, "-c", "pass").Run()
	})}}
}

// below is a bar on the p50, and on the p99 where that is not 0, in milliseconds.
// On a slower machine than theirs both are as much higher as it is slower; on a
// faster one they stay.
func below(p50, p99 float64) *measure.Bar {
	asked := fmt.Sprintf("p50 <= %g ms", p50)
	if p99 > 0 {
		asked += fmt.Sprintf(", p99 <= %g ms", p99)
	}
	return &measure.Bar{Asked: fmt.Sprintf("%s where it takes %g", asked, paced), Holds: func(own, peer measure.Stats) bool {
		slower := max(1, peer.P50/paced)
		return own.P50 <= p50*slower && (p99 == 0 || own.P99 <= p99*slower)
	}}
}

// decision measures one decision, and what of it the rules take.
func decision(ctx context.Context, s *measure.Suite, p *policy.Policy) error {
	whole := policy.Request{Language: "python", Code: []byte(sample)}
	doc := document(200)
	return s.Measure(ctx, measure.Set{
		Name: "decision", Unit: "ms", Rounds: 600, Warmup: 20,
		Subjects: append([]measure.Subject{
			{Name: "200 lines of Python", CPUs: 1, Sample: measure.Millis(func(ctx context.Context) error {
				if d := p.Judge(ctx, whole); d.Verdict == sandbox.Deny {
					return fmt.Errorf("the sample was denied: %+v", d.Findings)
				}
				return nil
			})},
			{Name: "rules over 200 facts", CPUs: 1, Sample: measure.Millis(func(ctx context.Context) error {
				if d := p.Decide(ctx, doc, policy.Request{}); len(d.Findings) == 0 {
					return errors.New("nothing was found")
				}
				return nil
			})},
		}, pace(10)...),
		Rows: []measure.Row{
			{Name: "decision_200_lines", Own: "200 lines of Python", Peer: yardstick, Bar: below(3, 10)},
			{Name: "rules_200_facts", Own: "rules over 200 facts", Peer: yardstick, Bar: below(1, 0)},
		},
	})
}

// batch measures how many small programs a second all cores judge.
func batch(ctx context.Context, s *measure.Suite, p *policy.Policy) error {
	round := 0
	return s.Measure(ctx, measure.Set{
		Name: "batch", Unit: "/s", Rounds: 10, Warmup: 1,
		Subjects: []measure.Subject{{Name: "small programs", CPUs: float64(runtime.NumCPU()), Sample: func(ctx context.Context) (float64, error) {
			round++
			start := time.Now()
			err := judgeAll(ctx, p, round)
			return programs / time.Since(start).Seconds(), err
		}}},
		Rows: []measure.Row{{Name: "batch_1000", Own: "small programs", Bar: &measure.Bar{
			Asked: "p50 >= 500 a second", Holds: func(own, _ measure.Stats) bool { return own.P50 >= 500 },
		}}},
	})
}

// judgeAll judges as many programs as a batch has, no two of which are alike.
func judgeAll(ctx context.Context, p *policy.Policy, round int) error {
	var wg sync.WaitGroup
	work := make(chan int)
	wrong := make(chan error, programs)
	for range runtime.NumCPU() {
		wg.Go(func() {
			for i := range work {
				code := fmt.Sprintf("import json\nx = json.loads('[%d, %d]')\nprint(sum(x))\nopen('out.txt', 'w').write(str(x))\n", i, round)
				if d := p.Judge(ctx, policy.Request{Language: "python", Code: []byte(code)}); d.Verdict != sandbox.Allow {
					wrong <- fmt.Errorf("program %d: %+v", i, d.Findings)
				}
			}
		})
	}
	for i := range programs {
		work <- i
	}
	close(work)
	wg.Wait()
	close(wrong)
	return <-wrong
}

// fresh measures the first decision of a process, from its start to its end:
// one that finds what another has made of the rules, as `caisson policy check`
// does, and one that finds nothing; beside them the same process without the
// decision.
func fresh(ctx context.Context, s *measure.Suite) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "caisson-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	spawn := func(as, dir string) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error {
			c := exec.CommandContext(ctx, self)
			c.Env = append(os.Environ(), role+"="+as, kept+"="+dir)
			if out, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	cpus := float64(runtime.NumCPU())
	const own, bare = "first decision", "the same, nothing kept"
	return s.Measure(ctx, measure.Set{
		Name: "fresh process", Unit: "ms", Rounds: 40, Warmup: 2,
		Subjects: append([]measure.Subject{
			{Name: own, CPUs: cpus, Sample: spawn("decide", dir)}, {Name: bare, CPUs: cpus, Sample: spawn("decide", "")},
			{Name: "no decision", CPUs: cpus, Sample: spawn("start", "")},
		}, pace(1)...),
		Rows: []measure.Row{
			{Name: "first_decision", Own: own, Peer: yardstick, Bar: below(60, 0)},
			{Name: "first_decision_bare", Own: bare, Peer: yardstick, Bar: below(60, 0)},
		},
	})
}

// document has n facts of the usual kinds.
func document(n int) *facts.Document {
	d := &facts.Document{Meta: facts.Meta{Lang: facts.Python, SHA256: "0", Bytes: 1}}
	for i := range n {
		at := facts.At{Lang: facts.Python, Pos: facts.Pos{Line: i + 1, Col: 1, EndLine: i + 1, EndCol: 20}}
		switch i % 10 {
		case 0:
			d.Files = append(d.Files, facts.File{At: at, Op: facts.OpRead, Path: "/workspace/a.csv", Class: "workspace", Folded: true, By: "open"})
		case 1:
			d.Imports = append(d.Imports, facts.Import{At: at, Module: fmt.Sprintf("m%d", i)})
		case 2:
			d.Commands = append(d.Commands, facts.Command{At: at, Name: "git", Argv: []string{"git", "status"}, Operands: []string{"status"}})
		case 3:
			d.Net = append(d.Net, facts.Net{At: at, Op: facts.OpRequest, Host: "x.test", Class: "public", Folded: true, By: "requests.get"})
		default:
			d.Calls = append(d.Calls, facts.Call{At: at, Name: fmt.Sprintf("f%d", i%40), Args: []facts.Value{facts.Text("a"), facts.Opaque()}})
		}
	}
	return d
}
