// Command policy measures the policy: how long a decision takes, facts
// included, how long the rules alone take, how many small programs a batch
// judges in a second, and how long a fresh process needs for its first
// decision.
//
//	go run ./bench/policy [--json] [--raw FILE]
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/scanner"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/sandbox"
)

//go:embed sample.py.txt
var sample string

// result is one line of the table.
type result struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	N        int     `json:"n"`
	CPUs     int     `json:"cpus"`
	P50      float64 `json:"p50"`
	Mean     float64 `json:"mean"`
	P99      float64 `json:"p99"`
	Peer     string  `json:"peer"`
	PeerP50  float64 `json:"peer_p50"`
	PeerMean float64 `json:"peer_mean"`
	PeerP99  float64 `json:"peer_p99"`
	Ratio    float64 `json:"ratio"`
	Bar      string  `json:"bar"`
	OK       bool    `json:"ok"`
	samples  []float64
}

func main() {
	asJSON := flag.Bool("json", false, "one JSON object a line")
	raw := flag.String("raw", "", "file for all samples")
	first := flag.Bool("first", false, "make one decision and end (used by the benchmark itself)")
	flag.Parse()
	if *first {
		p, closer, err := open()
		if err != nil {
			fail(err)
		}
		d := p.Judge(context.Background(), policy.Request{Language: "python", Code: []byte("print(1)\n")})
		closer()
		if d.Verdict != sandbox.Allow {
			fail(fmt.Errorf("first decision: %+v", d))
		}
		return
	}
	results, err := measure()
	if err != nil {
		fail(err)
	}
	ok := true
	for _, r := range results {
		ok = ok && r.OK
		if *asJSON {
			line, err := json.Marshal(r)
			if err != nil {
				fail(err)
			}
			fmt.Println(string(line))
			continue
		}
		fmt.Printf("%-28s p50 %9.3f  mean %9.3f  p99 %9.3f %-4s  n %5d  bar %-24s %v\n", r.Name, r.P50, r.Mean, r.P99, r.Unit, r.N, r.Bar, r.OK)
	}
	if *raw != "" {
		all := map[string][]float64{}
		for _, r := range results {
			all[r.Name] = r.samples
		}
		body, err := json.Marshal(all)
		if err == nil {
			err = os.WriteFile(*raw, body, 0o644)
		}
		if err != nil {
			fail(err)
		}
	}
	if !ok {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench/policy:", err)
	os.Exit(2)
}

// open makes a policy with its scanners, both at once as caisson does.
func open() (*policy.Policy, func(), error) {
	pool := scanner.Start(context.Background(), func() (scanner.Config, error) {
		tb, err := tables.Load(policies.FS)
		return scanner.Config{Tables: tb}, err
	})
	p, err := policy.Load(context.Background(), policy.Config{Rules: policies.FS, Scanner: pool, CacheSize: -1})
	if err == nil {
		_, err = pool.Ready(context.Background())
	}
	if err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	return p, func() { _ = pool.Close() }, nil
}

func measure() ([]result, error) {
	p, closer, err := open()
	if err != nil {
		return nil, err
	}
	defer closer()
	ctx := context.Background()
	whole := policy.Request{Language: "python", Code: []byte(sample)}
	var out []result
	s := repeat(600, func() { p.Judge(ctx, whole) })
	r := summary("decision of 200 lines", "ms", s, "p50 <= 3 ms, p99 <= 10 ms")
	r.OK = r.P50 <= 3 && r.P99 <= 10
	out = append(out, r)

	doc := document(200)
	s = repeat(600, func() { p.Decide(ctx, doc, policy.Request{}) })
	r = summary("rules with 200 facts", "ms", s, "p50 <= 1 ms")
	r.OK = r.P50 <= 1
	out = append(out, r, batch(p))

	s = nil
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for range 20 {
		start := time.Now()
		if b, err := exec.CommandContext(ctx, self, "-first").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("fresh process: %w: %s", err, b)
		}
		s = append(s, ms(start))
	}
	r = summary("first decision, fresh process", "ms", s, "p50 <= 60 ms")
	r.OK = r.P50 <= 60
	return append(out, r), nil
}

func ms(start time.Time) float64 { return float64(time.Since(start).Microseconds()) / 1000 }

func repeat(n int, f func()) []float64 {
	for range 20 {
		f()
	}
	s := make([]float64, n)
	for i := range s {
		start := time.Now()
		f()
		s[i] = ms(start)
	}
	return s
}

// batch judges 1,000 small programs on all cores; each sample is a rate.
func batch(p *policy.Policy) result {
	var s []float64
	for round := range 5 {
		start := time.Now()
		var wg sync.WaitGroup
		work := make(chan int)
		for range runtime.NumCPU() {
			wg.Go(func() {
				for i := range work {
					code := fmt.Sprintf("import json\nx = json.loads('[%d, %d]')\nprint(sum(x))\nopen('out.txt', 'w').write(str(x))\n", i, round)
					p.Judge(context.Background(), policy.Request{Language: "python", Code: []byte(code)})
				}
			})
		}
		for i := range 1000 {
			work <- i
		}
		close(work)
		wg.Wait()
		s = append(s, 1000/time.Since(start).Seconds())
	}
	r := summary("batch of 1,000", "/s", s, "p50 >= 500 a second")
	r.OK = r.P50 >= 500
	return r
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

func summary(name, unit string, s []float64, bar string) result {
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	at := func(q float64) float64 { return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))] }
	return result{Name: name, Unit: unit, N: len(s), CPUs: runtime.NumCPU(), P50: at(0.5), Mean: sum / float64(len(s)), P99: at(0.99), Bar: bar, samples: s}
}
