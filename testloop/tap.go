package testloop

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// mostReported bounds the tests that one report may tell of.
const mostReported = 100_000

var (
	tapPoint = lazyregexp.New(`^(not )?ok\b *(\d+)? *(?:- )?(.*)$`)
	tapPlan  = lazyregexp.New(`^1\.\.(\d+)\b *(?:# *(.*))?$`)
	tapSaid  = lazyregexp.New(`(?i)^(.*?)(?:^|\s)# *(skip|todo)\S*(?: +(.*))?$`)
)

// tapLevel is one depth of a report: its plan, and the tests of it so far.
type tapLevel struct {
	points int
	plan   int // -1: none yet
	tests  []Test
}

// tapReader reads one report.
type tapReader struct {
	levels   []*tapLevel
	last     *Test // whose diagnostics may follow
	yaml     bool
	key      string // whose text goes on over lines that are further in
	keyAt    int
	text     []string
	problems []Problem
	count    int
}

// ReadTAP reads what a program reports in the Test Anything Protocol, version 13
// or 14, with subtests. It never fails: what cannot be meant, such as a plan that
// is not kept or a bail out, is a problem in the Result, and it did not pass.
func ReadTAP(report []byte) Result {
	r := &tapReader{levels: []*tapLevel{{plan: -1}}}
	lines := bufio.NewScanner(bytes.NewReader(bytes.ToValidUTF8(report, []byte("\uFFFD"))))
	lines.Buffer(nil, mostLine)
	for lines.Scan() && r.count < mostReported {
		if !r.line(strings.TrimRight(lines.Text(), "\r")) {
			break
		}
	}
	if err := lines.Err(); err != nil {
		r.problem("the report could not be read: %v", err)
	} else if r.count >= mostReported {
		r.problem("it reports more than %d tests", mostReported)
	}
	for len(r.levels) > 1 {
		r.problem("a subtest has no test point of its own")
		r.fold(&Test{ID: "subtest"})
	}
	top := r.levels[0]
	if top.plan < 0 {
		r.problem("it reported no plan")
	}
	r.kept(top, "its tests")
	out := Result{Trust: TrustSelf, Tests: top.tests, Problems: r.problems}
	out.settle()
	return out
}

func (r *tapReader) problem(format string, args ...any) {
	if len(r.problems) < 100 {
		r.problems = append(r.problems, Problem{Message: fmt.Sprintf(format, args...)})
	}
}

// line takes one line, and reports whether more are of interest.
func (r *tapReader) line(text string) bool {
	body := strings.TrimLeft(text, " ")
	indent := len(text) - len(body)
	if r.diagnostic(text, body, indent) {
		return true
	}
	if strings.HasPrefix(body, "Bail out!") {
		r.problem("it bailed out: %s", shorten(strings.TrimSpace(strings.TrimPrefix(body, "Bail out!"))))
		return false
	}
	depth := indent / 4
	if indent%4 != 0 || depth > len(r.levels) || depth > 32 {
		return true
	}
	if m := tapPlan().FindStringSubmatch(body); m != nil {
		r.planned(depth, m)
	} else if m := tapPoint().FindStringSubmatch(body); m != nil {
		r.point(depth, m)
	}
	return true
}

// diagnostic takes a line of a YAML block: text, without its indentation body.
func (r *tapReader) diagnostic(text, body string, indent int) bool {
	switch {
	case !r.yaml && body == "---" && r.last != nil:
		r.yaml = true
	case r.yaml && r.key != "" && (indent > r.keyAt || body == ""):
		if len(r.text) < 1000 {
			r.text = append(r.text, text[min(len(text), r.keyAt+2):])
		}
	case r.yaml && (body == "..." || tapPoint().MatchString(body)):
		r.put()
		r.yaml = false
		return body == "..."
	case r.yaml:
		r.put()
		r.detail(body, indent)
	default:
		return false
	}
	return true
}

// detail notes one key of what people put into diagnostics. A value that goes on
// over several lines is put once all are there.
func (r *tapReader) detail(line string, indent int) {
	key, value, ok := strings.Cut(line, ":")
	if !ok {
		return
	}
	value = strings.TrimSpace(value)
	if value == "" || value[0] == '|' || value[0] == '>' {
		r.key, r.keyAt, r.text = key, indent, nil
		return
	}
	r.said(key, strings.Trim(value, `'"`))
}

// put takes a value of several lines.
func (r *tapReader) put() {
	if key := r.key; key != "" {
		r.key = ""
		r.said(key, strings.Trim(strings.Join(r.text, "\n"), "\n"))
	}
}

// tapPlace is a place as Node writes it: 'file:line:column'.
var tapPlace = lazyregexp.New(`^(?:file://)?(?:/workspace/)?(.+?):(\d+):\d+$`)

func (r *tapReader) said(key, value string) {
	if value == "" {
		return
	}
	t := r.last
	side := func() *Assertion {
		if t.Assertion == nil {
			t.Assertion = &Assertion{Op: "=="}
		}
		return t.Assertion
	}
	switch key {
	case "message", "error":
		t.Message = shorten(value)
	case "duration_ms":
		if ms, err := strconv.ParseFloat(value, 64); err == nil && ms >= 0 && ms < 1e9 {
			t.Duration = time.Duration(ms * 1e6)
		}
	case "actual", "got", "found":
		side().Left = shorten(value)
	case "expected", "wanted", "want":
		side().Right = shorten(value)
	case "operator":
		side().Op = shorten(value)
	case "name":
		t.Type = shorten(value)
	case "location":
		if m := tapPlace().FindStringSubmatch(value); m != nil {
			t.File = shorten(m[1])
			t.Line, _ = strconv.Atoi(m[2]) // digits, or none that fits
		}
	case "stack":
		t.Traceback = tapStack(value)
	}
}

// tapFrame is a line of a stack of Node's: "function (file:line:column)".
var tapFrame = lazyregexp.New(`^(?:at )?(?:(.*) \()?(?:file://)?(?:/workspace/)?([^()]+?):(\d+):\d+\)?$`)

// tapStack reads a stack, outermost first, without Node's own frames.
func tapStack(text string) []Frame {
	var frames []Frame
	for line := range strings.Lines(text) {
		m := tapFrame().FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || strings.HasPrefix(m[2], "node:") || len(frames) >= 24 {
			continue
		}
		n, _ := strconv.Atoi(m[3]) // as above
		frames = append(frames, Frame{File: shorten(m[2]), Line: n, Function: shorten(m[1])})
	}
	slices.Reverse(frames)
	return frames
}

func (r *tapReader) level(depth int) *tapLevel {
	for len(r.levels) <= depth {
		r.levels = append(r.levels, &tapLevel{plan: -1})
	}
	return r.levels[depth]
}

func (r *tapReader) planned(depth int, m []string) {
	n, err := strconv.Atoi(m[1])
	l := r.level(depth)
	if err != nil || l.plan >= 0 {
		r.problem("a second plan, or one that cannot be meant: %s", shorten(m[0]))
		return
	}
	l.plan = n
}

// point takes a test point. What was said deeper since the last are its subtests.
func (r *tapReader) point(depth int, m []string) {
	r.count++
	name, directive, why := m[3], "", ""
	if s := tapSaid().FindStringSubmatch(name); s != nil {
		name, directive, why = s[1], strings.ToLower(s[2]), s[3]
	}
	l := r.level(depth)
	l.points++
	if m[2] != "" && m[2] != strconv.Itoa(l.points) {
		r.problem("test point %s where %d was due", shorten(m[2]), l.points)
	}
	t := Test{ID: cmp.Or(shorten(strings.TrimSpace(name)), "test "+strconv.Itoa(l.points)), Message: shorten(why), Outcome: Passed}
	bad := m[1] != ""
	switch {
	case directive == "skip":
		t.Outcome = Skipped
	case directive == "todo" && bad:
		t.Outcome = XFailed
	case directive == "todo":
		t.Outcome = XPassed
	case bad:
		t.Outcome = Failed
	}
	for len(r.levels) > depth+2 {
		r.problem("a subtest of %q has no test point of its own", t.ID)
		r.fold(&Test{ID: "subtest"})
	}
	if len(r.levels) == depth+2 && r.fold(&t) {
		r.last = &Test{} // told by its subtests
		return
	}
	l.tests = append(l.tests, t)
	r.last = &l.tests[len(l.tests)-1]
}

// fold puts the deepest level's tests into the one above, as parent's, and
// reports whether they tell all that parent does.
func (r *tapReader) fold(parent *Test) bool {
	deep := r.levels[len(r.levels)-1]
	r.levels = r.levels[:len(r.levels)-1]
	above := r.levels[len(r.levels)-1]
	r.kept(deep, "the subtests of "+parent.ID)
	bad := false
	for _, t := range deep.tests {
		if parent.Outcome == XFailed && t.Outcome.Bad() {
			t.Outcome = XFailed
		}
		bad = bad || t.Outcome.Bad()
		t.ID = parent.ID + "::" + t.ID
		above.tests = append(above.tests, t)
	}
	return len(deep.tests) > 0 && parent.Outcome.Bad() == bad
}

// kept notes where a plan was not.
func (r *tapReader) kept(l *tapLevel, what string) {
	if l.plan >= 0 && l.plan != l.points {
		r.problem("%s were to be %d and were %d", what, l.plan, l.points)
	}
}
