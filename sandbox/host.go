package sandbox

import (
	"net/netip"
	"strconv"
	"strings"
)

// HostPattern selects hosts and ports. [ParseHostPattern] makes one.
type HostPattern struct {
	name   string       // in lower case; "" is an address
	below  bool         // all names below name, and not itself
	prefix netip.Prefix // of addresses, where there is no name
	port   int          // 0 is none in particular, -1 is any
}

// ParseHostPattern reads HOST[:PORT], where HOST is a name, *.NAME for all names
// below it, an address, or a range of addresses such as 10.0.0.0/8. With a port,
// an IPv6 address stands in brackets. PORT is a number or * for any. Errors:
// Invalid.
func ParseHostPattern(s string) (HostPattern, error) {
	p := HostPattern{}
	host, port := s, ""
	if rest, ok := strings.CutPrefix(s, "["); ok {
		var closed bool
		if host, port, closed = strings.Cut(rest, "]"); !closed || port != "" && port[0] != ':' {
			return p, badPattern(s)
		}
	} else if i := strings.LastIndexByte(s, ':'); i >= 0 && strings.Count(s, ":") == 1 {
		host, port = s[:i], s[i:]
	}
	switch port {
	case "":
	case ":*":
		p.port = -1
	default:
		n, err := strconv.ParseUint(port[1:], 10, 16)
		if err != nil || n == 0 {
			return p, badPattern(s)
		}
		p.port = int(n)
	}
	if prefix, err := netip.ParsePrefix(host); err == nil {
		p.prefix = prefix.Masked()
		return p, nil
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		p.prefix = netip.PrefixFrom(addr, addr.BitLen())
		return p, nil
	}
	if name, ok := strings.CutPrefix(host, "*."); ok {
		host, p.below = name, true
	}
	name, ok := HostName(host)
	if !ok {
		return p, badPattern(s)
	}
	p.name = name
	return p, nil
}

func badPattern(s string) error {
	return Errorf(Invalid, "%q names no host", s).WithHint("write pypi.org, *.pythonhosted.org:443, 192.0.2.7:8080, [2001:db8::7]:443 or 10.0.0.0/8:*")
}

// HostName is a name as it is compared: in lower case and without the dot at its
// end. It reports whether it can be the name of a host, which what could be read
// as an address of four numbers, however written, cannot.
func HostName(s string) (string, bool) {
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if s == "" || len(s) > 253 {
		return "", false
	}
	label := ""
	for label = range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", false
		}
	}
	// The last label tells: no top-level domain is a number.
	hex, isHex := strings.CutPrefix(label, "0x")
	number := strings.Trim(label, "0123456789") == "" || isHex && strings.Trim(hex, "0123456789abcdef") == ""
	return s, !number
}

// usualPorts are those of a pattern that allows and names none.
var usualPorts = map[int]bool{80: true, 443: true}

// Allows reports whether the pattern lets a host be reached at a port: without one of
// its own, at 80 and 443. name is as [HostName] gives it, or "" for an address.
func (p HostPattern) Allows(name string, addr netip.Addr, port int) bool {
	return p.host(name, addr) && (p.port < 0 || p.port == port || p.port == 0 && usualPorts[port])
}

// Denies reports whether the pattern keeps a host from being reached at a port:
// without one of its own, at any.
func (p HostPattern) Denies(name string, addr netip.Addr, port int) bool {
	return p.host(name, addr) && (p.port <= 0 || p.port == port)
}

// Usual reports whether the pattern names no port of its own.
func (p HostPattern) Usual() bool { return p.port == 0 }

func (p HostPattern) host(name string, addr netip.Addr) bool {
	switch {
	case p.name == "":
		return name == "" && p.prefix.Contains(addr.Unmap().WithZone(""))
	case p.below:
		return strings.HasSuffix(name, "."+p.name)
	}
	return name == p.name
}
