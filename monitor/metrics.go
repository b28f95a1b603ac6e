package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/caisson-dev/caisson/sandbox"
)

// Recorded is what metrics are made of: what all processes have written down.
type Recorded interface {
	Events(ctx context.Context, f sandbox.EventFilter) iter.Seq2[sandbox.Event, error]
	Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error)
	Readings(ctx context.Context, f sandbox.ReadingFilter) ([]sandbox.Reading, error)
	Alerts(ctx context.Context, f sandbox.AlertFilter) ([]sandbox.Alert, error)
}

// Metrics are for Prometheus. Counters and histograms count what the audit holds,
// of all processes: they begin anew where it was pruned. No label has an id; names
// that users choose are bounded, and beyond that are "other". It is safe for
// concurrent use.
type Metrics struct {
	from Recorded
	reg  *prometheus.Registry

	mu        sync.Mutex // held while events are read
	last      int64
	languages map[sandbox.ID]string // of execs that have not ended
	names     map[string]map[string]bool

	execs, decisions, findings, alerts, failures, connections, traffic *prometheus.CounterVec
	durations                                                          *prometheus.HistogramVec
	sandboxes, firing, used                                            *prometheus.GaugeVec
}

// Bounds of label values that users choose, and of execs whose end is awaited.
const (
	mostLanguages = 50
	mostRules     = 500
	mostRunning   = 100_000
	other         = "other"
)

// NewMetrics makes metrics of what was recorded. version is this build's.
func NewMetrics(from Recorded, version string) *Metrics {
	m := &Metrics{from: from, reg: prometheus.NewRegistry(), languages: map[sandbox.ID]string{}, names: map[string]map[string]bool{}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "caisson_" + name, Help: help}, labels)
		m.reg.MustRegister(v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "caisson_" + name, Help: help}, labels)
		m.reg.MustRegister(v)
		return v
	}
	m.execs = counter("execs_total", "Execs that ended, by how.", "outcome", "language")
	m.decisions = counter("decisions_total", "What was decided about execs.", "verdict")
	m.findings = counter("findings_total", "Execs that a rule found something in.", "verdict", "rule")
	m.alerts = counter("alerts_total", "Alerts that fired.", "rule", "severity")
	m.connections = counter("connections_total", "Connections of execs whose network is a list of hosts, by what became of them.", "verdict")
	m.traffic = counter("traffic_bytes_total", "What these moved.", "direction")
	m.failures = counter("errors_total", "Sandboxes of sessions that could not be made, by the kind of error.", "kind")
	m.durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "caisson_exec_duration_seconds", Help: "How long execs took: to have their turn (queue), to be judged (policy), until they ran (start), and to run (run).",
		Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
	}, []string{"phase"})
	m.reg.MustRegister(m.durations)
	m.sandboxes = gauge("sandboxes", "Sandboxes that there are; those of one-shots, which have no state, as live.", "state")
	m.firing = gauge("alerts_firing", "Alerts that fire.", "rule", "severity")
	m.used = gauge("used", "What the sandboxes that are sampled use together.", "resource")
	gauge("build_info", "This build.", "version", "go").WithLabelValues(version, runtime.Version()).Set(1)
	return m
}

// Write writes all metrics in Prometheus's text format.
func (m *Metrics) Write(ctx context.Context, w io.Writer) error {
	if err := m.Collect(ctx); err != nil {
		return err
	}
	families, err := m.reg.Gather()
	if err != nil {
		return sandbox.Errorf(sandbox.Internal, "gather metrics: %w", err)
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

// Collect takes in what was recorded since the last time.
func (m *Metrics) Collect(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	kinds := []string{sandbox.EventExecStarted, sandbox.EventExecEnded, sandbox.EventExecDenied, sandbox.EventAlertFired, sandbox.EventSandboxFailed, sandbox.EventExecution, sandbox.EventExecConnected}
	for e, err := range m.from.Events(ctx, sandbox.EventFilter{After: m.last, Kinds: kinds}) {
		if err != nil {
			return err
		}
		m.last = e.Seq
		m.count(e)
	}
	return m.gauge(ctx)
}

// told is what events say of an exec or of a sandbox, as far as it is counted.
type told struct {
	Language string   `json:"language"`
	Verdict  string   `json:"verdict"`
	Rules    []string `json:"rules"`
	Reason   string   `json:"exit_reason"`
	Run      float64  `json:"duration_ms"`
	Policy   *float64 `json:"policy_ms"`
	Start    *float64 `json:"start_ms"`
	Queue    *float64 `json:"queue_ms"`
	Kind     string   `json:"kind"`
	Allowed  float64  `json:"allowed"`
	Refused  float64  `json:"refused"`
	Sent     float64  `json:"sent_bytes"`
	Received float64  `json:"received_bytes"`
}

// count takes in one event. What does not decode was altered, and the audit tells.
func (m *Metrics) count(e sandbox.Event) {
	if e.Kind == sandbox.EventAlertFired {
		var a sandbox.Alert
		if json.Unmarshal(e.Data, &a) == nil {
			m.alerts.WithLabelValues(m.bounded("alert", a.Rule, mostRules), a.Severity.String()).Inc()
		}
		return
	}
	var t told
	if json.Unmarshal(e.Data, &t) != nil {
		return
	}
	switch e.Kind {
	case sandbox.EventExecConnected:
		m.connections.WithLabelValues(string(sandbox.Allow)).Add(max(0, t.Allowed))
		m.connections.WithLabelValues(string(sandbox.Deny)).Add(max(0, t.Refused))
		m.traffic.WithLabelValues("sent").Add(max(0, t.Sent))
		m.traffic.WithLabelValues("received").Add(max(0, t.Received))
	case sandbox.EventExecStarted:
		m.decided(t)
		if len(m.languages) < mostRunning {
			m.languages[e.Exec] = m.bounded("language", t.Language, mostLanguages)
		}
		for phase, ms := range map[string]*float64{"policy": t.Policy, "start": t.Start} {
			if ms != nil {
				m.durations.WithLabelValues(phase).Observe(*ms / 1000)
			}
		}
	case sandbox.EventExecEnded:
		m.execs.WithLabelValues(outcome(t.Reason), m.languages[e.Exec]).Inc()
		delete(m.languages, e.Exec)
		m.durations.WithLabelValues("run").Observe(t.Run / 1000)
	case sandbox.EventExecDenied:
		m.decided(t)
		m.execs.WithLabelValues(string(sandbox.ReasonDenied), m.bounded("language", t.Language, mostLanguages)).Inc()
	case sandbox.EventExecution:
		if t.Queue != nil {
			m.durations.WithLabelValues("queue").Observe(*t.Queue / 1000)
		}
	case sandbox.EventSandboxFailed:
		kind := other
		if k, ok := sandbox.ParseKind(t.Kind); ok {
			kind = k.String()
		}
		m.failures.WithLabelValues(kind).Inc()
	}
}

func (m *Metrics) decided(t told) {
	verdict := sandbox.Verdict(t.Verdict)
	switch verdict {
	case sandbox.Allow, sandbox.Ask, sandbox.Deny, sandbox.Unjudged:
	default:
		verdict = other
	}
	m.decisions.WithLabelValues(string(verdict)).Inc()
	seen := map[string]bool{}
	for _, id := range t.Rules {
		if !seen[id] {
			seen[id] = true
			m.findings.WithLabelValues(string(verdict), m.bounded("rule", id, mostRules)).Inc()
		}
	}
}

// outcome is a reason that there is.
func outcome(reason string) string {
	switch r := sandbox.ExitReason(reason); r {
	case sandbox.ReasonExited, sandbox.ReasonSignal, sandbox.ReasonTimeout, sandbox.ReasonCanceled, sandbox.ReasonOOM, sandbox.ReasonPIDs,
		sandbox.ReasonDisk, sandbox.ReasonOutput, sandbox.ReasonDenied, sandbox.ReasonInfra:
		return reason
	}
	return other
}

// bounded is a name, or "other" once there are too many of its sort.
func (m *Metrics) bounded(sort, name string, most int) string {
	seen := m.names[sort]
	if seen == nil {
		seen = map[string]bool{}
		m.names[sort] = seen
	}
	if !seen[name] && len(seen) >= most {
		return other
	}
	seen[name] = true
	return name
}

// stale is how old the newest sample of a sandbox may be that is counted.
const stale = 10 * time.Second

// gauge reads what there is now.
func (m *Metrics) gauge(ctx context.Context) error {
	views, err := m.from.Sessions(ctx, sandbox.SessionFilter{})
	if err != nil {
		return err
	}
	m.sandboxes.Reset()
	for _, v := range views {
		for _, b := range v.Sandboxes {
			m.sandboxes.WithLabelValues(cmp.Or(string(b.State), other)).Inc()
		}
	}
	sampled, err := m.from.Readings(ctx, sandbox.ReadingFilter{Live: true, Since: time.Now().Add(-stale)})
	if err != nil {
		return err
	}
	var cores, memory, processes, execs float64
	for _, r := range sampled {
		if r.Session == "" {
			m.sandboxes.WithLabelValues("live").Inc()
		}
		cores += r.Now.CPUMachine / 100 * float64(r.Sample.Cores)
		memory, processes, execs = memory+r.Now.MemoryBytes, processes+r.Now.ProcessCount, execs+float64(len(r.Execs))
	}
	for resource, v := range map[string]float64{"cpu_cores": cores, "memory_bytes": memory, "processes": processes, "execs": execs} {
		m.used.WithLabelValues(resource).Set(v)
	}
	firing, err := m.from.Alerts(ctx, sandbox.AlertFilter{Firing: true})
	if err != nil {
		return err
	}
	m.firing.Reset()
	for _, a := range firing {
		m.firing.WithLabelValues(m.bounded("alert", a.Rule, mostRules), a.Severity.String()).Inc()
	}
	return nil
}
