package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSummarize(t *testing.T) {
	t.Parallel()
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	for _, tt := range []struct {
		name    string
		samples []float64
		want    Stats
	}{
		{"none", nil, Stats{}},
		{"one", []float64{3}, Stats{N: 1, P50: 3, Mean: 3, P99: 3}},
		{"two", []float64{4, 2}, Stats{N: 2, P50: 2, Mean: 3, P99: 4}},
		{"hundred", hundred, Stats{N: 100, P50: 50, Mean: 50.5, P99: 99}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(tt.samples)
			if diff := cmp.Diff(tt.want, Summarize(tt.samples)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tt.samples); diff != "" {
				t.Errorf("the samples were changed: %s", diff)
			}
		})
	}
}

// newSuite returns a suite that writes to a buffer.
func newSuite(t *testing.T, opts Options) (*Suite, *bytes.Buffer) {
	t.Helper()
	opts.Results = filepath.Join(t.TempDir(), "raw")
	var out bytes.Buffer
	s := &Suite{Options: opts, Out: &out, Progress: io.Discard, program: "test", only: regexp.MustCompile(opts.Only)}
	t.Cleanup(func() { _ = s.close() })
	return s, &out
}

func constant(v float64, order *[]string, name string) func(context.Context) (float64, error) {
	return func(context.Context) (float64, error) {
		*order = append(*order, name)
		return v, nil
	}
}

func TestSamplesAreTakenInTurn(t *testing.T) {
	t.Parallel()
	var order []string
	s, _ := newSuite(t, Options{})
	set := Set{Name: "x", Unit: "ms", Rounds: 4, Warmup: 1, Subjects: []Subject{
		{Name: "a", Sample: constant(1, &order, "a")},
		{Name: "b", Sample: constant(2, &order, "b")},
		{Name: "slow", Every: 2, Sample: constant(3, &order, "S")},
	}}
	if err := s.Measure(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(order, ""), "abS"+"abS"+"ba"+"Sab"+"ab"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

func TestJSONHasTheDocumentedFields(t *testing.T) {
	t.Parallel()
	var order []string
	s, out := newSuite(t, Options{JSON: true})
	set := Set{Name: "x", Unit: "ms", Rounds: 2, Subjects: []Subject{
		{Name: "own", CPUs: 0.5, Sample: constant(3, &order, "")}, {Name: "peer", Sample: constant(2, &order, "")},
	}, Rows: []Row{{Name: "own/peer", Own: "own", Peer: "peer", Bar: AtMost("p50 <= peer", 1)}}}
	if err := s.Measure(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "own/peer", "unit": "ms", "n": 2.0, "cpus": 0.5, "p50": 3.0, "mean": 3.0, "p99": 3.0, "peer": "peer",
		"peer_p50": 2.0, "peer_mean": 2.0, "peer_p99": 2.0, "ratio": 1.5, "bar": "p50 <= peer", "ok": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if code := s.verdict(); code != 1 {
		t.Errorf("exit code %d for a bar that does not hold, want 1", code)
	}
	s.Smoke = true
	if code := s.verdict(); code != 0 {
		t.Errorf("exit code %d in a smoke run, want 0", code)
	}
}

func TestEverySampleIsKept(t *testing.T) {
	t.Parallel()
	var order []string
	s, _ := newSuite(t, Options{})
	set := Set{Name: "x", Unit: "ms", Rounds: 3, Subjects: []Subject{{Name: "a", CPUs: 2, Sample: constant(7, &order, "")}}}
	if err := s.Measure(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(s.raw.Name())
	if err != nil {
		t.Fatal(err)
	}
	var got rawLine
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rawLine{Set: "x", Subject: "a", Unit: "ms", CPUs: 2, Samples: []float64{7, 7, 7}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSmokeAndFilter(t *testing.T) {
	t.Parallel()
	var order []string
	s, out := newSuite(t, Options{Smoke: true, Only: "^x$"})
	subjects := []Subject{{Name: "a", Sample: constant(1, &order, "a")}}
	for _, name := range []string{"x", "other"} {
		if err := s.Measure(t.Context(), Set{Name: name, Unit: "ms", Rounds: 500, Warmup: 50, Subjects: subjects}); err != nil {
			t.Fatal(err)
		}
	}
	if len(order) != smokeRounds+smokeWarmup {
		t.Errorf("%d samples, want %d", len(order), smokeRounds+smokeWarmup)
	}
	if strings.Contains(out.String(), "other") {
		t.Errorf("a set that was not asked for: %s", out)
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	tick := func(context.Context, int) error { time.Sleep(time.Millisecond); return nil }
	got, err := Rate(4, 50*time.Millisecond, tick)(t.Context())
	if err != nil || got < 100 || got > 4100 {
		t.Errorf("rate %v (%v) of 4 workers with a millisecond each", got, err)
	}
	broken := errors.New("broken")
	if _, err := Rate(2, time.Second, func(context.Context, int) error { return broken })(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the work", err)
	}
}

func TestAFailureNamesItsSubject(t *testing.T) {
	t.Parallel()
	s, _ := newSuite(t, Options{})
	bad := func(context.Context) (float64, error) { return 0, errors.New("no engine") }
	err := s.Measure(t.Context(), Set{Name: "x", Rounds: 1, Subjects: []Subject{{Name: "own", Sample: bad}}})
	if err == nil || err.Error() != "x: own: no engine" {
		t.Errorf("error %v", err)
	}
}
