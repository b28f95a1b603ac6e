package policycmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/cli/policycmd"
	"github.com/caisson-dev/caisson/sandbox"
)

// fake is a policy that asks about what contains "bad".
type fake struct{}

func (fake) Check(_ context.Context, _ string, code []byte, file string, _ sandbox.Surroundings) sandbox.Decision {
	d := sandbox.Decision{Verdict: sandbox.Allow, Level: sandbox.Safe, Findings: []sandbox.Finding{}, PolicyRevision: "r1"}
	if i := strings.Index(string(code), "bad"); i >= 0 {
		line := 1 + strings.Count(string(code[:i]), "\n")
		col := i - strings.LastIndex(string(code[:i]), "\n")
		d.Verdict, d.Level = sandbox.Ask, sandbox.High
		d.Findings = []sandbox.Finding{{ID: "X-1", Title: "is bad", Severity: sandbox.High, Category: "test", File: file,
			Line: line, Column: col, EndLine: line, EndColumn: col + 3, Message: "bad \x1b[31m", Remediation: "be good", Via: []string{"sh -c"}}}
	}
	return d
}

func (fake) Rules() []sandbox.Rule {
	return []sandbox.Rule{{ID: "X-1", Title: "is bad", Severity: sandbox.High, Category: "test", Remediation: "be good", CWE: []string{"CWE-1"},
		Match: []sandbox.RuleExample{{Language: "bash", Code: "bad"}}}}
}

func (fake) Test(_ context.Context, dir string) (int, []string, error) {
	if dir == "none" {
		return 0, nil, errors.New("no such folder")
	}
	return 2, []string{"t1"}, nil
}

func run(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	return runWith(t, fake{}, stdin, args...)
}

func runWith(t *testing.T, p policycmd.Policy, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := policycmd.NewCmd(policycmd.Streams{In: strings.NewReader(stdin), Out: &o, Err: &e}, func(context.Context) (policycmd.Policy, error) { return p, nil })
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	var exit policycmd.Exit
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case errors.Is(err, sandbox.Invalid), errors.Is(err, sandbox.NotFound):
		code = map[sandbox.Kind]int{sandbox.Invalid: 2, sandbox.NotFound: 123}[sandbox.KindOf(err)] // as package cli does
		e.WriteString(err.Error())
	case err != nil:
		t.Fatal(err)
	}
	return o.String(), e.String(), code
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "a.py"), filepath.Join(dir, "b.sh")
	if err := errors.Join(os.WriteFile(good, []byte("x = 1\n"), 0o600), os.WriteFile(bad, []byte("bad\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want int
	}{
		{[]string{"check", "-l", "python", "-c", "x"}, 0}, {[]string{"check", "-l", "python", "-c", "bad"}, 1},
		{[]string{"check", good}, 0}, {[]string{"check", good, bad}, 1}, {[]string{"check", "-c", "x"}, 2},
		{[]string{"check", filepath.Join(dir, "none.py")}, 2}, {[]string{"check", "-l", "cobol", "-c", "x"}, 2},
		{[]string{"check", "--json", "--sarif", good}, 2}, {[]string{"check", "-c", "x", "-l", "sh", good}, 2},
		{[]string{"explain", "X-1"}, 0}, {[]string{"explain", "X-2"}, 123}, {[]string{"rules"}, 0},
		{[]string{"test", "x"}, 1}, {[]string{"test", "none"}, 2}, {[]string{"test"}, 2},
	} {
		if _, errs, got := run(t, "", tc.args...); got != tc.want {
			t.Errorf("%q: exit %d, want %d (%s)", tc.args, got, tc.want, errs)
		}
	}
}

func TestTextHasCaretAndEscapes(t *testing.T) {
	out, _, _ := run(t, "", "check", "-l", "sh", "-c", "echo 1\n\techo \u202e bad")
	if !strings.Contains(out, "2 | →   echo \\u202e bad\n") || !strings.Contains(out, "\n      |                 ^~~\n") {
		t.Errorf("no caret below the line:\n%s", out)
	}
	if strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("control characters reach the terminal:\n%q", out)
	}
}

func TestJSON(t *testing.T) {
	out, _, _ := run(t, "", "check", "--json", "-l", "sh", "-c", "bad")
	var d map[string]any
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	f := d["findings"].([]any)[0].(map[string]any)
	if d["verdict"] != "ask" || d["level"] != "high" || d["policy_revision"] != "r1" || f["line"] != 1.0 || f["column"] != 1.0 || f["category"] != "test" {
		t.Fatalf("%s", out)
	}
}

func TestSARIF(t *testing.T) {
	out, _, code := run(t, "bad", "check", "--sarif", "-l", "sh")
	var d struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID, Level string
				Locations     []struct {
					PhysicalLocation struct{ Region struct{ StartLine int } }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if code != 1 || d.Version != "2.1.0" || d.Runs[0].Results[0].RuleID != "X-1" || d.Runs[0].Results[0].Level != "error" || d.Runs[0].Results[0].Locations[0].PhysicalLocation.Region.StartLine != 1 || d.Runs[0].Tool.Driver.Rules[0].ID != "X-1" {
		t.Fatalf("%s", out)
	}
}

func TestBatchKeepsOrder(t *testing.T) {
	var in strings.Builder
	for i := range 300 {
		fmt.Fprintf(&in, "{\"id\":%d,\"language\":\"bash\",\"code\":\"%s\"}\n", i, strings.Repeat("x", i%7)+map[bool]string{true: "bad", false: ""}[i%3 == 0])
	}
	out, _, code := run(t, in.String(), "check", "--batch")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 1 || len(lines) != 300 {
		t.Fatalf("exit %d, %d lines", code, len(lines))
	}
	for i, l := range lines {
		var a struct {
			ID      int
			Verdict string
		}
		if err := json.Unmarshal([]byte(l), &a); err != nil || a.ID != i || (a.Verdict == "ask") != (i%3 == 0) {
			t.Fatalf("line %d: %s %v", i, l, err)
		}
	}
	if _, errs, code := run(t, "{\"id\":1,\n", "check", "--batch"); code != 2 || errs == "" {
		t.Errorf("broken line: exit %d %q", code, errs)
	}
}

// TestBatchLines answers every line, also those that hold no program, and goes
// on behind them.
func TestBatchLines(t *testing.T) {
	long := `{"id":"long","language":"bash","code":"` + strings.Repeat("x", 8<<20) + `"}`
	in := "\xef\xbb\xbf" + `{"id":1,"language":"bash","code":"ok"}` + "\r\n\n{broken\n[1]\n" + `{"id":2,"language":"bash"}` + "\n" + `{"id":"x","language":"cobol","code":"x"}` + "\n" + long + "\n" + `{"id":3,"language":"bash","code":""}`
	out, errs, code := run(t, in, "check", "--batch")
	want := []string{`1 allow`, `null ask`, `null ask`, `2 ask`, `"x" ask`, `"long" ask`, `3 allow`}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 2 || !strings.Contains(errs, "line 3") || len(lines) != len(want) {
		t.Fatalf("exit %d, %q, %d lines:\n%s", code, errs, len(lines), out)
	}
	for i, l := range lines {
		var a struct {
			ID      json.RawMessage
			Verdict string
		}
		if err := json.Unmarshal([]byte(l), &a); err != nil || string(a.ID)+" "+a.Verdict != want[i] {
			t.Errorf("line %d: %s %v; want %s", i, l, err, want[i])
		}
	}
}

// together is a policy whose every answer waits until as many are asked at
// once as there are cores.
type together struct {
	fake
	asked chan struct{}
	all   chan struct{}
}

func (p *together) Check(ctx context.Context, lang string, code []byte, file string, in sandbox.Surroundings) sandbox.Decision {
	p.asked <- struct{}{}
	select {
	case <-p.all:
	case <-time.After(20 * time.Second):
		return sandbox.Decision{Verdict: sandbox.Deny, PolicyRevision: "alone"}
	}
	return p.fake.Check(ctx, lang, code, file, in)
}

// TestBatchUsesAllCores: as many programs are judged at once as there are
// cores, and the answers come in the order of the lines.
func TestBatchUsesAllCores(t *testing.T) {
	n := runtime.NumCPU()
	p := &together{asked: make(chan struct{}), all: make(chan struct{})}
	go func() { // ends when the batch has asked for everything
		for i := range 3 * n {
			<-p.asked
			if i+1 == n {
				close(p.all)
			}
		}
	}()
	var in strings.Builder
	for i := range 3 * n {
		fmt.Fprintf(&in, "{\"id\":%d,\"language\":\"bash\",\"code\":\"ls\"}\n", i)
	}
	out, _, code := runWith(t, p, in.String(), "check", "--batch")
	if code != 0 {
		t.Errorf("exit %d: programs were judged one after the other", code)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3*n {
		t.Fatalf("%d answers to %d lines", len(lines), 3*n)
	}
	for i, l := range lines {
		if !strings.HasPrefix(l, fmt.Sprintf("{\"id\":%d,", i)) {
			t.Errorf("answer %d is %s", i, l)
		}
	}
}
