package monitor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

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
			event(t, sandbox.EventExecConnected, one, map[string]any{"connections": []any{}, "allowed": 3, "refused": 2, "sent_bytes": 10, "received_bytes": 500}),
			event(t, sandbox.EventExecConnected, two, map[string]any{"allowed": 1, "refused": -7, "sent_bytes": 1}),
			event(t, sandbox.EventExecution, "", map[string]any{"state": "queued"}),
			event(t, sandbox.EventExecution, "", map[string]any{"state": "running", "queue_ms": 250}),
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
		`caisson_exec_duration_seconds_sum{phase="queue"} 0.25`, `caisson_exec_duration_seconds_count{phase="queue"} 1`,
		`caisson_sandboxes{state="ready"} 1`, `caisson_sandboxes{state="live"} 1`,
		`caisson_used{resource="cpu_cores"} 0.5`, `caisson_used{resource="memory_bytes"} 1024`, `caisson_used{resource="processes"} 3`, `caisson_used{resource="execs"} 1`,
		`caisson_alerts_total{rule="oom",severity="high"} 1`, `caisson_alerts_firing{rule="oom",severity="high"} 1`,
		`caisson_connections_total{verdict="allow"} 4`, `caisson_connections_total{verdict="deny"} 2`,
		`caisson_traffic_bytes_total{direction="sent"} 11`, `caisson_traffic_bytes_total{direction="received"} 500`,
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
