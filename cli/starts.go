package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// startTree prints what an exec starts as a tree, as it happens: a program below the
// one whose process made it.
type startTree struct {
	cfg   Config
	depth map[int]int // of the program that a process is
	count int         // of programs that were printed
}

// show prints one that starts, or how it ended where that says something.
func (t *startTree) show(s sandbox.Start) {
	if s.Ended > 0 {
		if s.Signal > 0 || s.Code != nil && *s.Code != 0 {
			t.line(startLine(s, t.depth[s.PID]))
		}
		return
	}
	t.count++
	t.line(startLine(s, t.place(s)))
}

// place is how deep in the tree a start is.
func (t *startTree) place(s sandbox.Start) int {
	if _, again := t.depth[s.PID]; !again { // it may become one program after another
		at, of := t.depth[s.Parent]
		if of {
			at++
		}
		if t.depth == nil {
			t.depth = map[int]int{}
		}
		t.depth[s.PID] = at
	}
	return t.depth[s.PID]
}

func (t *startTree) line(text string) {
	_, _ = fmt.Fprintln(t.cfg.IO.Err, "caisson: "+text) // as in printError
}

// conclude says what was not printed.
func (t *startTree) conclude(res sandbox.Result) {
	if t.count == 0 {
		t.line("it started nothing that was seen")
	}
	compiled := sandbox.Compiled{}
	if res.Compiled != nil {
		compiled = *res.Compiled
	}
	if n := res.StartsLeftOut + compiled.StartsLeftOut; n > 0 {
		t.line(fmt.Sprintf("and %d more", n))
	}
	if n := res.StartsUnjudged + compiled.StartsUnjudged; n > 0 {
		t.line(unjudged(n))
	}
}

// unjudged says that starts were refused by nobody's word.
func unjudged(n int) string {
	return fmt.Sprintf("%d could not be started: nobody was there to judge", n)
}

// startLine is one start, in a line that a terminal can be shown.
func startLine(s sandbox.Start, depth int) string {
	words := append([]string{s.Path}, s.Argv[min(len(s.Argv), 1):]...)
	line := strings.Repeat("  ", depth) + oneLine(strings.Join(words, " "), 160)
	if s.Cut {
		line += " …"
	}
	switch {
	case s.Verdict == sandbox.Deny:
		line += "  refused: " + oneLine(s.Why, 160)
	case s.Verdict == sandbox.Ask:
		line += "  waits to be judged"
	case s.Replaced:
		line += "  became another"
	case s.Signal > 0:
		line += "  ended by signal " + strconv.Itoa(s.Signal)
	case s.Ended > 0 && s.Code != nil:
		line += "  ended with " + strconv.Itoa(*s.Code)
	}
	return line
}
