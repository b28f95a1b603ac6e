package cli

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// mostRefused is how many hosts that were refused are told, a line each.
const mostRefused = 5

// reportRefused tells which hosts a program asked for and did not reach: what a client
// makes of a refusal by its proxy seldom says why.
func (o *runOptions) reportRefused(cfg Config, res sandbox.Result) {
	var lines []string
	for _, c := range res.Connections {
		if c.Verdict != sandbox.Deny {
			continue
		}
		to := net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
		line := visible(to) + " was not reached: " + visible(c.Why)
		if strings.HasPrefix(c.Why, sandbox.NotListed) {
			line += "; list it with " + o.allowing() + visible(to)
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if more := len(lines) - mostRefused; more > 0 {
		lines = append(lines[:mostRefused], plural(more, "more host was", "more hosts were")+" not reached; --json lists all")
	}
	for _, line := range lines {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: "+line) // as in printError
	}
}

// allowing is what a host is written behind to be put on the list.
func (o *runOptions) allowing() string {
	if o.session != "" {
		return "caisson session network " + o.session + " --allow "
	}
	return "--allow "
}
