package monitor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/monitor"
	"github.com/caisson-dev/caisson/sandbox"
)

// event is one whose data is v.
func event(t *testing.T, kind string, exec sandbox.ID, v any) sandbox.Event {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Event{Time: time.Now(), Kind: kind, Exec: exec, Data: b}
}

// written is what metrics print.
func written(t *testing.T, m *monitor.Metrics) string {
	t.Helper()
	var b bytes.Buffer
	if err := m.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// recorded is a store in which everything that is counted has happened.
func recorded(t *testing.T) *monitor.Metrics {
	t.Helper()
	s := openStore(t, t.TempDir())
	one, two, box := sandbox.NewID(), sandbox.NewID(), sandbox.NewID()
	alert := sandbox.Alert{ID: sandbox.NewID(), Rule: "oom", Sandbox: box, Severity: sandbox.High, Fired: time.Now()}
	session := sandbox.Session{ID: sandbox.NewID(), Name: "work", Language: "python"}
	c := sandbox.Transaction{
		CreateSession: &session, FireAlert: &alert,
		PutSandboxes: []sandbox.SandboxRecord{{ID: box, Session: "work", Language: "python", State: sandbox.StateReady}},
		PutReadings: []sandbox.Reading{
			{Sandbox: box, Session: "work", Execs: []sandbox.ID{one}, Sample: sandbox.Sample{Time: time.Now(), Cores: 2}, Now: sandbox.Figures{CPUMachine: 25, MemoryBytes: 1000, ProcessCount: 3}},
			{Sandbox: sandbox.NewID(), Sample: sandbox.Sample{Time: time.Now(), Cores: 2}, Now: sandbox.Figures{MemoryBytes: 24}},
			{Sandbox: sandbox.NewID(), Sample: sandbox.Sample{Time: time.Now().Add(-time.Minute)}, Now: sandbox.Figures{MemoryBytes: 7}},
		},
		Events: []sandbox.Event{
			event(t, sandbox.EventExecStarted, one, map[string]any{"language": "python", "verdict": "allow", "rules": []string{"PY-1", "PY-1"}, "policy_ms": 3, "start_ms": 300}),
			event(t, sandbox.EventExecEnded, one, map[string]any{"exit_reason": "exited", "duration_ms": 40}),
			event(t, sandbox.EventExecStarted, two, map[string]any{"language": "node", "verdict": "ask"}),
			event(t, sandbox.EventExecEnded, two, map[string]any{"exit_reason": "timeout", "duration_ms": 30000}),
			event(t, sandbox.EventExecDenied, "", map[string]any{"language": "python", "verdict": "deny", "rules": []string{"PY-2"}}),
			event(t, sandbox.EventSandboxFailed, "", map[string]any{"error": "no room", "kind": "exhausted"}),
			event(t, sandbox.EventAlertFired, one, alert),
		},
	}
	if err := s.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return monitor.NewMetrics(s, "1.2.3")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := recorded(t)
	first := written(t, m)
	for _, line := range []string{
		`caisson_execs_total{language="python",outcome="exited"} 1`, `caisson_execs_total{language="node",outcome="timeout"} 1`,
		`caisson_execs_total{language="python",outcome="denied"} 1`,
		`caisson_decisions_total{verdict="allow"} 1`, `caisson_decisions_total{verdict="ask"} 1`, `caisson_decisions_total{verdict="deny"} 1`,
		`caisson_findings_total{rule="PY-1",verdict="allow"} 1`, `caisson_findings_total{rule="PY-2",verdict="deny"} 1`,
		`caisson_exec_duration_seconds_bucket{phase="run",le="0.05"} 1`, `caisson_exec_duration_seconds_count{phase="run"} 2`,
		`caisson_exec_duration_seconds_sum{phase="policy"} 0.003`, `caisson_exec_duration_seconds_sum{phase="start"} 0.3`,
		`caisson_sandboxes{state="ready"} 1`, `caisson_sandboxes{state="live"} 1`,
		`caisson_used{resource="cpu_cores"} 0.5`, `caisson_used{resource="memory_bytes"} 1024`, `caisson_used{resource="processes"} 3`, `caisson_used{resource="execs"} 1`,
		`caisson_alerts_total{rule="oom",severity="high"} 1`, `caisson_alerts_firing{rule="oom",severity="high"} 1`,
		`caisson_errors_total{kind="exhausted"} 1`, `caisson_build_info{go="`,
	} {
		if !strings.Contains(first, "\n"+line) {
			t.Errorf("no line %s in\n%s", line, first)
		}
	}
	if again := written(t, m); again != first {
		t.Errorf("read again, it counts again:\n%s", again)
	}
	if ids := regexp.MustCompile("[0-9a-f]{32}").FindAllString(first, -1); ids != nil {
		t.Errorf("ids in labels: %q", ids)
	}
}

// TestMetricsAreBounded names more languages and rules than anybody has.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	var c sandbox.Transaction
	for i := range 1000 {
		c.Events = append(c.Events, event(t, sandbox.EventExecDenied, "", map[string]any{
			"language": fmt.Sprint("l", i), "verdict": fmt.Sprint("v", i), "rules": []string{fmt.Sprint("r", i)},
		}))
	}
	if err := s.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	text := written(t, monitor.NewMetrics(s, ""))
	if n := strings.Count(text, "\n"); n > 700 || !strings.Contains(text, `caisson_execs_total{language="other",outcome="denied"} 950`) || !strings.Contains(text, `caisson_decisions_total{verdict="other"} 1000`) {
		t.Errorf("%d lines", n)
	}
}

// promtool is Prometheus's own checker, as Debian's package prometheus has it.
func promtool(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool (apt-get install prometheus)")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestPrometheus has the real one read the metrics, the rules, and every query of
// the dashboard.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	metrics := written(t, recorded(t))
	promtool(t, metrics, "check", "metrics")
	promtool(t, "", "check", "rules", "../docker/prometheus/rules.yml")
	test := filepath.Join(t.TempDir(), "test.yml")
	rules, err := filepath.Abs("../docker/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(test, fmt.Appendf(nil, fires, rules), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "test", "rules", test)
	queries := map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": dashboard(t)}}}
	b, err := yaml.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", name)
}

// fires is promtool's test of the rules: what goes wrong is told.
const fires = `rule_files: [%s]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'caisson_alerts_firing{rule="oom",severity="high"}', values: '0 2x30'}
      - {series: 'caisson_alerts_firing{rule="cpu",severity="low"}', values: '5x30'}
      - {series: 'caisson_execs_total{outcome="infra",language="python"}', values: '0+1x30'}
      - {series: 'caisson_execs_total{outcome="exited",language="python"}', values: '0+3x30'}
      - {series: 'caisson_decisions_total{verdict="deny"}', values: '0+1x30'}
    alert_rule_test:
      - eval_time: 20m
        alertname: CaissonAlertFires
        exp_alerts:
          - exp_labels: {rule: oom, severity: warning}
            exp_annotations: {summary: "caisson: 2 sandboxes have an alert of rule oom"}
      - eval_time: 20m
        alertname: CaissonExecsGoWrong
        exp_alerts:
          - exp_labels: {severity: critical}
            exp_annotations: {summary: "caisson: 25%% of all execs lost their sandbox"}
      - eval_time: 20m
        alertname: CaissonManyDenials
        exp_alerts: []
`

// dashboard is every query of it, as a rule. Their metrics are those that there
// are.
func dashboard(t *testing.T) (rules []any) {
	t.Helper()
	b, err := os.ReadFile("../docker/prometheus/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	known := written(t, recorded(t))
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			for _, name := range regexp.MustCompile(`caisson_[a-z_]+`).FindAllString(q.Expr, -1) {
				if !strings.Contains(known, "\n"+name+"{") {
					t.Errorf("%s: there is no %s", p.Title, name)
				}
			}
			rules = append(rules, map[string]string{"record": fmt.Sprintf("dashboard:q%d", len(rules)), "expr": strings.ReplaceAll(q.Expr, "$__rate_interval", "5m")})
		}
	}
	if len(rules) < 10 {
		t.Errorf("%d queries", len(rules))
	}
	return rules
}
