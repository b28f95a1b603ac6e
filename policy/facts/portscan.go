package facts

import "slices"

// callers are programs that take a host and a port.
var callers = []string{"nc", "ncat", "netcat", "telnet"}

// calls records a program that gets its port from a loop over more numbers than
// are kept: it has no origin then, and no beginning.
func (c *command) calls(p *parsed) {
	n := len(p.operands)
	if n < 2 || !slices.Contains(c.o.In, "for") {
		return
	}
	if port := p.operands[n-1]; !port.Known() && port.Head() == "" && port.Tail() == "" && len(port.From) == 0 {
		c.b.Net(Use{Pos: c.o.Pos, Op: OpScan, What: p.operands[n-2], By: "one port after the other"})
	}
}
