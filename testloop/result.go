package testloop

import (
	"encoding/json"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Outcome is how one test ended.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Errored Outcome = "error"   // around the test: fixtures, its import, the runner
	Skipped Outcome = "skipped" // by the tests themselves
	XFailed Outcome = "xfailed" // failed, as the tests say it would
	XPassed Outcome = "xpassed" // passed, though the tests say it would not
	Timeout Outcome = "timeout"
	Crashed Outcome = "crashed" // its process ended while it ran
)

// Trust says what a result rests on.
type Trust string

// What results rest on.
const (
	// TrustShared: tests and solution shared an interpreter. docs/testing.md says
	// what a solution could do there.
	TrustShared Trust = "shared_interpreter"
	// TrustOutside: what the solution put out was judged where it could not reach.
	TrustOutside Trust = "outside"
	// TrustSelf: the command that ran the tests reported for itself, and could
	// report anything.
	TrustSelf Trust = "self_reported"
)

// Frame is one line of a traceback. Files begin with tests/ or solution/ where
// they are those.
type Frame struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
	Source   string `json:"source"`
}

// Assertion is a comparison that did not hold, with both sides as Python shows
// them.
type Assertion struct {
	Left  string `json:"left"`
	Op    string `json:"op"`
	Right string `json:"right"`
}

// Test is one test, or one case.
type Test struct {
	ID       string        `json:"id"`
	Outcome  Outcome       `json:"outcome"`
	Duration time.Duration `json:"-"`
	Type     string        `json:"type,omitempty"` // of the error
	Message  string        `json:"message,omitempty"`
	File     string        `json:"file,omitempty"` // where it failed
	Line     int           `json:"line,omitempty"`

	Assertion  *Assertion        `json:"assertion,omitempty"`
	Traceback  []Frame           `json:"traceback,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// Output is what was printed while it ran, on both streams; of much, head and
	// tail. Lost counts the bytes between.
	Output string        `json:"output,omitempty"`
	Lost   int64         `json:"output_lost,omitempty"`
	Memory sandbox.Bytes `json:"peak_memory_bytes,omitempty"` // of a case
}

// MarshalJSON writes the duration in milliseconds.
func (t Test) MarshalJSON() ([]byte, error) {
	type plain Test // without this method
	return json.Marshal(struct {
		plain
		MS float64 `json:"duration_ms"`
	}{plain(t), milliseconds(t.Duration)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Test) UnmarshalJSON(b []byte) error {
	type plain Test // as above
	j := struct {
		*plain
		MS float64 `json:"duration_ms"`
	}{plain: (*plain)(t)}
	err := json.Unmarshal(b, &j)
	t.Duration = duration(j.MS)
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d.Round(time.Microsecond)) / 1e6 }

func duration(ms float64) time.Duration { return time.Duration(ms * 1e6) }

// Problem is what kept tests from being collected: a syntax error, an import
// that failed.
type Problem struct {
	File      string  `json:"file"` // of the tests
	Type      string  `json:"type,omitempty"`
	Message   string  `json:"message"`
	Place     string  `json:"place,omitempty"` // the file that it lies in
	Line      int     `json:"line,omitempty"`
	Traceback []Frame `json:"traceback,omitempty"`
}

// Warning is one that Python gave.
type Warning struct {
	ID      string `json:"id,omitempty"` // of the test
	Type    string `json:"type"`
	Message string `json:"message"`
	File    string `json:"file"`
	Line    int    `json:"line"`
}

// Totals counts tests by their outcome.
type Totals struct {
	Tests   int `json:"tests"`
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Errored int `json:"error"`
	Skipped int `json:"skipped"`
	XFailed int `json:"xfailed"`
	XPassed int `json:"xpassed"`
	Timeout int `json:"timeout"`
	Crashed int `json:"crashed"`
}

// Result is what came of running tests.
type Result struct {
	// AllPassed: at least one test passed, and none failed, erred, hung or crashed,
	// nor could any not be collected.
	AllPassed bool             `json:"all_passed"`
	Totals    Totals           `json:"totals"`
	Tests     []Test           `json:"tests"`
	Problems  []Problem        `json:"problems"`
	Warnings  []Warning        `json:"warnings"`
	Trust     Trust            `json:"trust"`
	Processes int              `json:"processes"` // that it took
	Usage     Usage            `json:"usage"`
	Duration  time.Duration    `json:"-"`
	Decision  sandbox.Decision `json:"decision"` // the first run's
	// Starts are the programs that its processes started, where that is seen: see
	// [sandbox.Result]. StartsLeftOut counts those above [sandbox.MaxStarts].
	Starts        []sandbox.Start `json:"starts,omitempty"`
	StartsLeftOut int             `json:"starts_left_out,omitempty"`
}

// add adds what a run used and started.
func (r *Result) add(run sandbox.Result) {
	r.Usage.add(run.Usage)
	n := min(len(run.Starts), sandbox.MaxStarts-len(r.Starts))
	r.Starts = append(r.Starts, run.Starts[:n]...)
	r.StartsLeftOut += run.StartsLeftOut + len(run.Starts) - n
}

// Usage is what all runs of a Result used: processor time together, and the most
// memory and processes of any of them.
type Usage struct {
	CPU           sandbox.Duration `json:"cpu_ms"`
	PeakMemory    sandbox.Bytes    `json:"peak_memory_bytes"`
	PeakProcesses int              `json:"processes_peak"`
}

func (u *Usage) add(run sandbox.Usage) {
	u.CPU += sandbox.Duration(run.CPU)
	u.PeakMemory, u.PeakProcesses = max(u.PeakMemory, run.PeakMemory), max(u.PeakProcesses, run.PeakProcesses)
}

// plainResult is a Result without its methods, resultJSON what is written of one.
type plainResult Result

type resultJSON struct {
	plainResult
	MS float64 `json:"duration_ms"`
}

func (r Result) json() resultJSON {
	r.Tests, r.Problems, r.Warnings = listed(r.Tests), listed(r.Problems), listed(r.Warnings)
	r.Decision.Findings = listed(r.Decision.Findings)
	return resultJSON{plainResult(r), milliseconds(r.Duration)}
}

// MarshalJSON writes the duration in milliseconds, and no list as null.
func (r Result) MarshalJSON() ([]byte, error) { return json.Marshal(r.json()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Result) UnmarshalJSON(b []byte) error {
	var j resultJSON
	err := json.Unmarshal(b, &j)
	*r = Result(j.plainResult)
	r.Duration = duration(j.MS)
	return err
}

func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// settle counts, once all tests are there.
func (r *Result) settle() {
	t := Totals{Tests: len(r.Tests)}
	for _, test := range r.Tests {
		switch test.Outcome {
		case Passed:
			t.Passed++
		case Failed:
			t.Failed++
		case Skipped:
			t.Skipped++
		case XFailed:
			t.XFailed++
		case XPassed:
			t.XPassed++
		case Timeout:
			t.Timeout++
		case Crashed:
			t.Crashed++
		default:
			t.Errored++
		}
	}
	r.Totals = t
	r.AllPassed = t.Passed > 0 && t.Failed+t.Errored+t.Timeout+t.Crashed == 0 && len(r.Problems) == 0
}

// Bad reports whether an outcome counts against the solution.
func (o Outcome) Bad() bool {
	switch o {
	case Passed, Skipped, XFailed, XPassed:
		return false
	default:
		return true
	}
}
