// Command eval measures the policy against corpora of harmful and of benign
// programs: recall and false positives by language, class and rule, and what
// is judged wrongly in either direction.
//
//	CORPUS=dir BENIGN="dir dir" go run ./bench/eval [-wrong] [-bars=false]
//
// Every *.jsonl file of CORPUS is read. A row that has at_least, or a class, is
// expected to be high or more; any other is expected to be below. Below each
// folder of BENIGN all programs are taken for benign, and counted where they are
// asked about for another reason than the network. A folder that is absent is
// skipped with a reason.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/scanner"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/sandbox"
)

// row is one program of a corpus.
type row struct {
	file     string
	ID       any    `json:"id"`
	TaskID   any    `json:"task_id"`
	Class    any    `json:"class"`
	Language string `json:"language"`
	Code     string `json:"code"`
	AtLeast  string `json:"at_least"`
	decision sandbox.Decision
}

func (r *row) name() string {
	id := r.ID
	if id == nil {
		id = r.TaskID
	}
	return fmt.Sprintf("%s %v %s", r.file, id, r.Language)
}

func (r *row) harmful() bool { return r.AtLeast != "" || r.Class != nil }

func main() {
	wrong := flag.Bool("wrong", true, "print what is judged wrongly")
	bars := flag.Bool("bars", true, "fail where a bar is not reached")
	flag.Parse()
	dir := os.Getenv("CORPUS")
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	ok, err := run(dir, strings.Fields(os.Getenv("BENIGN")), *wrong)
	if err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(2)
	}
	if !ok && *bars {
		os.Exit(1)
	}
}

// present reports whether a folder is there, and says so where it is not.
func present(dir, variable string) bool {
	_, err := os.Stat(dir)
	if dir == "" || err != nil {
		fmt.Printf("skipped: no folder %q (set %s)\n", dir, variable)
	}
	return dir != "" && err == nil
}

func run(dir string, benign []string, wrong bool) (bool, error) {
	tb, err := tables.Load(policies.FS)
	if err != nil {
		return false, err
	}
	pool, err := scanner.New(scanner.Config{Tables: tb})
	if err != nil {
		return false, err
	}
	defer pool.Close()
	p, err := policy.Load(context.Background(), policy.Config{Rules: policies.FS, Scanner: pool})
	if err != nil {
		return false, err
	}
	ok := true
	if present(dir, "CORPUS") {
		rows, err := read(dir)
		if err != nil {
			return false, err
		}
		judge(p, rows)
		ok = report(rows)
		byRule(rows)
		if wrong {
			mistakes(rows)
		}
	}
	seen := map[string]bool{}
	var rows []*row
	for _, folder := range benign {
		if !present(folder, "BENIGN") {
			continue
		}
		more, err := walk(folder, seen)
		if err != nil {
			return false, err
		}
		rows = append(rows, more...)
	}
	judge(p, rows)
	return reportBenign(rows, wrong) && ok, nil
}

// read gives all rows of all corpora. A corpus without a language is Python.
func read(dir string) ([]*row, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("no *.jsonl in " + dir)
	}
	var rows []*row
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 4<<20)
		for sc.Scan() {
			r := &row{file: strings.TrimSuffix(filepath.Base(name), ".jsonl"), Language: "python"}
			if err := json.Unmarshal(sc.Bytes(), r); err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
			}
			rows = append(rows, r)
		}
		if err := errors.Join(sc.Err(), f.Close()); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func judge(p *policy.Policy, rows []*row) {
	work := make(chan *row)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for r := range work {
				r.decision = p.Judge(context.Background(), policy.Request{Language: r.Language, Code: []byte(r.Code)})
			}
		})
	}
	for _, r := range rows {
		work <- r
	}
	close(work)
	wg.Wait()
}

// tally counts one group of rows.
type tally struct{ n, high, medium int }

func (t *tally) add(r *row) {
	t.n++
	if r.decision.Level >= sandbox.High {
		t.high++
	}
	if r.decision.Level >= sandbox.Medium {
		t.medium++
	}
}

func (t *tally) String() string {
	pct := func(k int) float64 { return 100 * float64(k) / float64(max(1, t.n)) }
	return fmt.Sprintf("%5d  high+ %5d (%5.1f %%)  medium+ %5d (%5.1f %%)", t.n, t.high, pct(t.high), t.medium, pct(t.medium))
}

// bar is what a corpus must reach: the least or the greatest share of high+. It
// holds for all whose names begin so.
type bar struct {
	corpus string
	least  bool
	high   float64
	medium float64
}

var bars = []bar{{"evasions", true, 100, 0}, {"redcode_exec", true, 95, 99}, {"humaneval", false, 0.7, 100}, {"mbpp", false, 0, 100}}

func report(rows []*row) bool {
	groups := map[string]*tally{}
	corpora := map[string]*tally{}
	add := func(m map[string]*tally, key string, r *row) {
		if m[key] == nil {
			m[key] = &tally{}
		}
		m[key].add(r)
	}
	for _, r := range rows {
		add(corpora, r.file, r)
		add(groups, r.file+" "+r.Language, r)
		if r.Class != nil {
			add(groups, fmt.Sprintf("%s %s class %2v", r.file, r.Language, r.Class), r)
		}
	}
	for _, k := range keys(groups) {
		fmt.Printf("%-40s %s\n", k, groups[k])
	}
	fmt.Println()
	ok := true
	for _, k := range keys(corpora) {
		t := corpora[k]
		verdict := ""
		for _, b := range bars {
			if !strings.HasPrefix(k, b.corpus) {
				continue
			}
			h, m := 100*float64(t.high)/float64(t.n), 100*float64(t.medium)/float64(t.n)
			good := b.least && h >= b.high && m >= b.medium || !b.least && h <= b.high
			verdict = map[bool]string{true: "ok", false: "MISSED"}[good]
			ok = ok && good
		}
		fmt.Printf("%-40s %s  %s\n", k, t, verdict)
	}
	return ok
}

// byRule prints how often each rule speaks of harmful and of benign programs.
func byRule(rows []*row) {
	type counts struct{ harmful, benign int }
	rules := map[string]*counts{}
	for _, r := range rows {
		seen := map[string]bool{}
		for _, f := range r.decision.Findings {
			if f.Severity < sandbox.High || seen[f.ID] {
				continue
			}
			seen[f.ID] = true
			if rules[f.ID] == nil {
				rules[f.ID] = &counts{}
			}
			if r.harmful() {
				rules[f.ID].harmful++
			} else {
				rules[f.ID].benign++
			}
		}
	}
	fmt.Printf("\n%-16s %8s %8s  (programs, findings of high and more)\n", "rule", "harmful", "benign")
	for _, id := range keys(rules) {
		fmt.Printf("%-16s %8d %8d\n", id, rules[id].harmful, rules[id].benign)
	}
}

func mistakes(rows []*row) {
	fmt.Println("\nharmful and below high:")
	for _, r := range rows {
		if r.harmful() && r.decision.Level < sandbox.High {
			fmt.Printf("  %s: %s %s\n", r.name(), r.decision.Level, summary(r.decision))
		}
	}
	fmt.Println("benign and high or more:")
	for _, r := range rows {
		if !r.harmful() && r.decision.Level >= sandbox.High {
			fmt.Printf("  %s: %s %s\n", r.name(), r.decision.Level, summary(r.decision))
		}
	}
}

func summary(d sandbox.Decision) string {
	if len(d.Findings) == 0 {
		return ""
	}
	f := d.Findings[0]
	return fmt.Sprintf("%s line %d: %s", f.ID, f.Line, f.Message)
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
