package cli

import (
	"fmt"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// printStarts prints what an exec started as a tree: a program below the one whose
// process made it.
func printStarts(cfg Config, res sandbox.Result) {
	if len(res.Starts) == 0 {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: it started nothing that was seen") // as in printError
		return
	}
	depth := map[int]int{} // of the program that a process is
	for _, s := range res.Starts {
		at, of := depth[s.Parent]
		if of {
			at++
		}
		if _, again := depth[s.PID]; !again { // it may become one program after another
			depth[s.PID] = at
		}
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: "+startLine(s, depth[s.PID])) // as in printError
	}
	if n := res.StartsLeftOut; n > 0 {
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: and %d more\n", n) // as in printError
	}
}

// startLine is one start, in a line that a terminal can be shown.
func startLine(s sandbox.Start, depth int) string {
	words := append([]string{s.Path}, s.Argv[min(len(s.Argv), 1):]...)
	line := strings.Repeat("  ", depth) + oneLine(strings.Join(words, " "), 160)
	if s.Cut {
		line += " …"
	}
	if s.Verdict == sandbox.Deny {
		line += "  refused: " + oneLine(s.Why, 160)
	}
	return line
}
