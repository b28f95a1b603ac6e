package monitor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/monitor"
)

// promtool is Prometheus's own checker.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), enginetest.Tool(t, "promtool", "prometheus"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// rulesFile has the rules for Prometheus.
func rulesFile(t *testing.T) string {
	t.Helper()
	name, err := filepath.Abs("../docker/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPromtool has Prometheus's own checker read the metrics and the rules, and
// make each rule fire.
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool(t, written(t, recorded(t)), "check", "metrics")
	promtool(t, "", "check", "rules", rulesFile(t))
	test := filepath.Join(t.TempDir(), "test.yml")
	if err := os.WriteFile(test, fmt.Appendf(nil, fires, rulesFile(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "test", "rules", test)
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

// TestPrometheus has a real Prometheus scrape the metrics: it takes all of them,
// each query of the dashboard has an answer, and what fires here fires there.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	p := startPrometheus(t, recorded(t))
	p.until(t, "it has scraped twice", func() bool {
		var got struct {
			ActiveTargets []struct{ Health, LastError string }
		}
		p.get(t, "targets", nil, &got)
		for _, a := range got.ActiveTargets {
			if a.LastError != "" {
				t.Fatalf("it cannot read the metrics: %s", a.LastError)
			}
		}
		return p.answers(t, "count_over_time(caisson_build_info[1m]) >= 2") > 0
	})
	for title, query := range dashboard(t) {
		p.until(t, title, func() bool { return p.answers(t, strings.ReplaceAll(query, "$__rate_interval", "1m")) > 0 })
	}
	p.until(t, "the alert about alerts fires", func() bool {
		var got struct {
			Alerts []struct {
				State       string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
		p.get(t, "alerts", nil, &got)
		for _, a := range got.Alerts {
			if a.Labels["alertname"] == "CaissonAlertFires" && a.Labels["rule"] == "oom" && a.State == "firing" {
				return strings.Contains(a.Annotations["summary"], "1 sandboxes have an alert of rule oom")
			}
		}
		return false
	})
	var got struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	p.get(t, "rules", nil, &got)
	if len(got.Groups) != 1 || len(got.Groups[0].Rules) < 5 {
		t.Fatalf("rules: %+v", got)
	}
	for _, r := range got.Groups[0].Rules {
		if r.Health != "ok" {
			t.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}
}

// prometheus is one that runs for a test, on loopback.
type prometheus struct{ url string }

// startPrometheus starts one that scrapes metrics every second.
func startPrometheus(t *testing.T, m *monitor.Metrics) *prometheus {
	t.Helper()
	program := enginetest.Tool(t, "prometheus", "prometheus")
	scraped := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		if err := m.Write(r.Context(), &b); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError) // a scrape that fails is told by Prometheus
			return
		}
		_, _ = w.Write(b.Bytes()) // as above
	}))
	t.Cleanup(scraped.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: caisson
    static_configs: [{targets: [%q]}]
`, rulesFile(t), strings.TrimPrefix(scraped.URL, "http://")), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, program, "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", "127.0.0.1:0")
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, time.Minute
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	said := func() string {
		b, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was interrupted
		if t.Failed() {
			t.Logf("prometheus said:\n%s", said())
		}
	})
	p := &prometheus{}
	p.until(t, "it answers", func() bool {
		listens := regexp.MustCompile(`msg="Listening on" address=(\S+)`).FindStringSubmatch(said())
		if listens == nil {
			return false
		}
		p.url = "http://" + listens[1]
		res, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		return res.Body.Close() == nil && res.StatusCode == http.StatusOK
	})
	return p
}

// until waits for a minute.
func (p *prometheus) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// get asks its API.
func (p *prometheus) get(t *testing.T, what string, query url.Values, into any) {
	t.Helper()
	res, err := http.Get(p.url + "/api/v1/" + what + "?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s %v: %v, %s", what, query, err, answer.Error)
	}
}

// answers counts the series that a query has now.
func (p *prometheus) answers(t *testing.T, query string) int {
	t.Helper()
	var got struct{ Result []any }
	p.get(t, "query", url.Values{"query": {query}}, &got)
	return len(got.Result)
}

// dashboard is every query of it, by its panel. Their metrics are those that there
// are.
func dashboard(t *testing.T) map[string]string {
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
	queries, known := map[string]string{}, written(t, recorded(t))
	for _, p := range d.Panels {
		for i, q := range p.Targets {
			for _, name := range regexp.MustCompile(`caisson_[a-z_]+`).FindAllString(q.Expr, -1) {
				if !strings.Contains(known, "\n"+name+"{") {
					t.Errorf("%s: there is no %s", p.Title, name)
				}
			}
			queries[fmt.Sprint(p.Title, " ", i)] = q.Expr
		}
	}
	if len(queries) < 10 {
		t.Errorf("%d queries", len(queries))
	}
	return queries
}
