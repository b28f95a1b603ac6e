package manager_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestEgressAsks has the gate judge each new host of an exec, while the connection
// waits, and writes down who let it pass.
func TestEgressAsks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	kit := enginetest.New(t)
	enginetest.Bubblewrap(t)
	var mu sync.Mutex
	var asked []string
	gate := func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		if q.Host == nil {
			return manager.Unjudged(ctx, q)
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, fmt.Sprintf("%s %v %s", q.Host.Host, q.Host.Listed, q.Host.Exec.Run.Language))
		d := sandbox.Decision{Verdict: sandbox.Ask, Findings: []sandbox.Finding{}}
		switch q.Host.Host {
		case "yes.test":
			ans, err := q.Host.Exec.Ask(ctx, sandbox.Approval{})
			if err != nil {
				return manager.Answer{}, err
			}
			d.Approval = &sandbox.ApprovedBy{By: ans.By, Always: true}
		case "good.test":
			d.Verdict = sandbox.Allow
		default:
			d.Refused = "Ann said no"
		}
		return manager.Answer{Decision: d}, nil
	}
	m, err := manager.New(manager.Config{
		Runtimes: runtimes.Only(bubblewrap.Name, kit.Jail(t)), Images: kit.Images, Gate: gate, Holder: kit.Holder, Patience: enginetest.Patience, Egress: s.config(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	program := fmt.Sprintf(`
import urllib.request, urllib.error
for host in ("good", "yes", "no", "yes", "no"):
    try: print(urllib.request.urlopen("http://%%s.test:%[1]s/a" %% host).read().decode().strip())
    except urllib.error.HTTPError as e: print(e.code, e.read().decode().strip())
`, s.port)
	network := s.network()
	ask := func(context.Context, sandbox.Approval) (sandbox.ApprovalAnswer, error) {
		return sandbox.ApprovalAnswer{By: "Ann"}, nil
	}
	res, err := m.Run(t.Context(), sandbox.Run{Language: "python", Code: program, Network: network}, sandbox.Streams{Local: sandbox.Local{Ask: ask}})
	if err != nil || res.Code != 0 {
		t.Fatalf("%v: %s%s", err, res.Stdout, res.Stderr)
	}
	want := fmt.Sprintf("good.test:%[1]s /a\nyes.test:%[1]s /a\n", s.port)
	no := fmt.Sprintf("403 caisson: no.test:%s: the sandbox may not reach it: it is not on the list, and Ann said no\n", s.port)
	if got := string(res.Stdout); got != want+no+strings.SplitAfter(want, "\n")[1]+no && got != want {
		t.Errorf("got\n%s", got)
	}
	if got := strings.Join(asked, "; "); got != "good.test true python; yes.test false python; no.test false python" {
		t.Errorf("asked %s", got)
	}
	for _, c := range res.Connections {
		if (c.Approval != nil && c.Approval.By == "Ann") != (c.Host == "yes.test") {
			t.Errorf("told %+v", c)
		}
	}
}

// TestChangeNetwork changes what a session reaches while it runs, by another process.
func TestChangeNetwork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newPlace(t, "python")
	ctx := t.Context()
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python", Network: sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"python-packages"}}})
	v, err := p.Session(ctx, "work")
	if err != nil || strings.Join(v.Network.Allow, " ") != "pypi.org files.pythonhosted.org" {
		t.Fatalf("a list by its name: %v, %v", v.Network, err)
	}
	other := p.manager(t)
	change := func(c sandbox.NetworkChange) {
		t.Helper()
		if _, err := other.ChangeNetwork(ctx, "work", c); err != nil {
			t.Error(err)
		}
	}
	listed := "127.0.0.1:" + s.port
	steps := []func(){
		func() { change(sandbox.NetworkChange{Allow: []string{listed}}) },
		func() { change(sandbox.NetworkChange{Deny: []string{"127.0.0.0/8"}}) },
		func() { change(sandbox.NetworkChange{Drop: []string{"127.0.0.0/8"}}) },
		func() {
			change(sandbox.NetworkChange{Drop: []string{listed, "python-packages"}, Allow: []string{"a.test"}})
		},
	}
	out := &stepper{steps: steps}
	program := asks(s, "/0") + `
for n in range(1, 5):
    input()
    print(ask("/%d" % n), flush=True)
`
	res, err := p.ExecIn(ctx, "work", sandbox.Run{Code: program}, sandbox.Streams{Stdout: out, Stdin: out.input()})
	if err != nil || res.Code != 0 {
		t.Fatalf("%v: %s%s", err, res.Stdout, res.Stderr)
	}
	no := func(why string) string { return "caisson: " + listed + ": the sandbox may not reach it: " + why + "\n" }
	want := no("it is not on the list") + listed + " /1\n" + no("the list denies it") + listed + " /3\n" + no("it is not on the list")
	if string(res.Stdout) != want {
		t.Errorf("got\n%s\nwant\n%s", res.Stdout, want)
	}
	n, err := p.ChangeNetwork(ctx, "work", sandbox.NetworkChange{Unlisted: sandbox.Deny})
	if err != nil || n.String() != "allow, only a.test, others: deny" {
		t.Errorf("at last %v, %v", n, err)
	}
	for _, bad := range []sandbox.NetworkChange{{Drop: []string{"b.test"}}, {Drop: []string{"a.test"}}, {Allow: []string{"*"}}, {Unlisted: "maybe"}} {
		if _, err := p.ChangeNetwork(ctx, "work", bad); err == nil || sandbox.HintOf(err) == "" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	p.create(t, sandbox.SessionOptions{Name: "none"})
	if _, err := p.ChangeNetwork(ctx, "none", sandbox.NetworkChange{Allow: []string{"a.test"}}); sandbox.KindOf(err) != sandbox.Conflict {
		t.Errorf("a network without a list: %v", err)
	}
	changed := 0
	for e, err := range p.store.Events(ctx, sandbox.EventFilter{Kinds: []string{sandbox.EventSessionChanged}}) {
		if err != nil || !strings.Contains(string(e.Data), `"network"`) {
			t.Errorf("%s, %v", e.Data, err)
		}
		changed++
	}
	if changed != len(steps)+1 {
		t.Errorf("the audit has %d changes", changed)
	}
}

// stepper takes each line of a program's output as the end of a step: it takes the next
// one, and lets the program go on by a line of input.
type stepper struct {
	steps []func()
	in    *io.PipeWriter
}

func (s *stepper) input() io.Reader {
	r, w := io.Pipe()
	s.in = w
	return r
}

func (s *stepper) Write(b []byte) (int, error) {
	for range bytes.Count(b, []byte("\n")) {
		if len(s.steps) == 0 {
			_ = s.in.Close()
			continue
		}
		s.steps[0]()
		s.steps = s.steps[1:]
		go func() { _, _ = io.WriteString(s.in, "\n") }()
	}
	return len(b), nil
}
