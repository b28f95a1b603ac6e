package python

import "github.com/caisson-dev/caisson/policy/facts"

// connects are calls that try a port, by where that stands: 1 is a word of its
// own, 0 the second part of an address.
var connects = map[string]int{
	"socket.socket.connect": 0, "socket.socket.connect_ex": 0, "socket.create_connection": 0,
	"asyncio.open_connection": 1, "telnetlib.Telnet": 1, "http.client.HTTPConnection": 1,
}

// manyPorts are more than one service has.
const manyPorts = 8

// scans notices a call that one port after the other is tried by.
func (it *interp) scans(name string, a *arguments, n *node) {
	at, ok := connects[name]
	if !ok || it.shape.turns < manyPorts && len(it.shape.endless) == 0 {
		return
	}
	host, port := a.at(0, "host"), a.at(1, "port")
	if at == 0 {
		address := a.at(0, "address")
		if address == nil || !address.isSeq() || len(address.x.items) < 2 {
			return
		}
		host, port = address.x.items[0], address.x.items[1]
	}
	if host == nil || port == nil {
		return
	}
	if port.kind == kAlt {
		for _, b := range port.x.alts {
			if b.kind == kInt {
				v := *b
				v.open = true
				port = &v
			}
		}
	}
	if port.kind != kInt {
		return
	}
	if it.ports == nil {
		it.ports = map[*node]map[string]bool{}
	}
	seen := it.ports[n]
	if seen == nil {
		seen = map[string]bool{}
		it.ports[n] = seen
	}
	before := len(seen)
	for _, p := range port.all() {
		if before < manyPorts {
			seen[p] = true
		}
	}
	if before < manyPorts && (len(seen) >= manyPorts || port.open && len(port.more) > 1) {
		for i := range manyPorts { // this is said once
			seen[string(rune('a'+i))] = true
		}
		it.b.Net(facts.Use{Pos: it.pos(n), Op: facts.OpScan, What: host.fact(), By: name})
	}
}
