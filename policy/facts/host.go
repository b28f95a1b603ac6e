package facts

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Target is a destination taken apart.
type Target struct {
	Scheme string
	Host   string // canonical: lower case, an address in its usual form
	Port   int
}

// ParseTarget takes a URL, "host:port", "user@host:path", or a host apart, as
// lenient as programs are: user info, backslashes, addresses in decimal, octal
// and hexadecimal, Unicode digits and dots.
func ParseTarget(s string) Target {
	s = strings.TrimSpace(norm.NFKC.String(strings.ReplaceAll(s, "。", ".")))
	var t Target
	rest := s
	if i := strings.Index(s, "://"); i > 0 && schemeLike(s[:i]) {
		t.Scheme, rest = strings.ToLower(s[:i]), strings.TrimLeft(s[i+3:], "/\\")
	} else if strings.HasPrefix(s, "//") {
		rest = s[2:]
	}
	if i := strings.IndexAny(rest, "/\\?#"); i >= 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	rest, t.Port = splitPort(rest)
	t.Host = CanonicalHost(rest)
	return t
}

func schemeLike(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

func splitPort(s string) (string, int) {
	if strings.HasPrefix(s, "[") {
		if i := strings.IndexByte(s, ']'); i > 0 {
			port, _ := strconv.Atoi(strings.TrimPrefix(s[i+1:], ":"))
			return s[1:i], port
		}
	}
	if strings.Count(s, ":") == 1 {
		i := strings.IndexByte(s, ':')
		port, err := strconv.Atoi(s[i+1:])
		if err != nil {
			return s[:i], 0
		}
		return s[:i], port
	}
	return s, 0
}

// CanonicalHost gives one spelling to all spellings of a host.
func CanonicalHost(h string) string {
	h = strings.ToLower(strings.TrimRight(strings.Trim(percentDecode(h), "[] "), "."))
	if a, ok := parseAddr(h); ok {
		return a.String()
	}
	return h
}

func percentDecode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// parseAddr reads an address as inet_aton and netip do, and unwraps IPv4 that
// is mapped into IPv6.
func parseAddr(h string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(h); err == nil {
		return unwrap6(a.WithZone("")), true
	}
	parts := strings.Split(h, ".")
	if len(parts) > 4 || h == "" {
		return netip.Addr{}, false
	}
	var v uint64
	for i, p := range parts {
		n, err := strconv.ParseUint(cNumber(p), 0, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			room := uint(8 * (5 - len(parts)))
			if n >= 1<<room {
				return netip.Addr{}, false
			}
			v = v<<room | n
			continue
		}
		if n > 255 {
			return netip.Addr{}, false
		}
		v = v<<8 | n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

// cNumber makes C's octal (017) Go's, and keeps underscores and the like from
// being read as numbers.
func cNumber(s string) string {
	if strings.ContainsAny(s, "_+-") || s == "" {
		return "x"
	}
	if len(s) > 1 && s[0] == '0' && s[1] != 'x' && s[1] != 'X' {
		return "0o" + s[1:]
	}
	return s
}

// unwrap6 takes IPv4 out of mapped and NAT64 addresses.
func unwrap6(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	b := a.As16()
	if [4]byte(b[:4]) == [4]byte{0, 0x64, 0xff, 0x9b} {
		return netip.AddrFrom4([4]byte(b[12:16]))
	}
	return a
}

// dnsOfAddresses are zones in which a name contains the address it has.
var dnsOfAddresses = []string{".nip.io", ".sslip.io", ".xip.io"}

// HostClass classes a canonical host: what the table says of its name, else
// its range, else public; "unknown" for "".
func (t *Tables) HostClass(h string) string {
	if h == "" {
		return "unknown"
	}
	for _, r := range t.Hosts {
		for _, n := range r.Names {
			if n == h || strings.HasPrefix(n, "*.") && (h == n[2:] || strings.HasSuffix(h, n[1:])) {
				return r.Class
			}
		}
	}
	for _, z := range dnsOfAddresses {
		if rest, ok := strings.CutSuffix(h, z); ok {
			return t.embedded(rest)
		}
	}
	a, err := netip.ParseAddr(h)
	if err != nil {
		return "public"
	}
	switch {
	case a.IsLoopback():
		return "loopback"
	case a.IsUnspecified():
		return "any"
	case a.IsLinkLocalUnicast():
		return "link_local"
	case a.IsPrivate():
		return "private"
	case a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "broadcast"
	}
	return "public"
}

func (t *Tables) embedded(rest string) string {
	parts := strings.FieldsFunc(rest, func(r rune) bool { return r == '.' || r == '-' })
	if len(parts) >= 4 {
		if a, ok := parseAddr(strings.Join(parts[len(parts)-4:], ".")); ok {
			return t.HostClass(a.String())
		}
	}
	return "public"
}

// Net records the use of a destination: one fact for each alternative.
func (b *Builder) Net(u Use) {
	if len(u.What.Items) > 0 && len(u.What.Alts) == 0 {
		for _, it := range u.What.Items {
			one := u
			one.What = it
			b.Net(one)
		}
		return
	}
	n := Net{Op: u.Op, Method: u.Method, Scheme: u.Scheme, By: u.By, Carries: slices.DeleteFunc(slices.Clone(u.Data.From), func(f string) bool { return f == FromFiltered || f == FromChosen })}
	if p, ok := u.Port.One(); ok {
		n.Port, _ = strconv.Atoi(p)
	}
	if s, ok := u.Data.One(); ok && len(s) > 4096 {
		n.Size = len(s)
	}
	if strings.HasPrefix(u.Scheme, "unix") {
		n.Class = "unix"
	}
	alts := u.What.Alts
	if !u.What.Known() && len(alts) == 0 {
		if h, ok := authority(u.What); ok {
			alts = []string{h}
			u.What.Open = false
		}
	}
	for _, a := range alts {
		b.net(n, a, u.Pos)
	}
	if len(alts) > 0 && !u.What.Open || !b.room() {
		return
	}
	n.At = b.at(u.Pos)
	if n.Class == "" {
		n.Class = "unknown"
	}
	n.URL = short(u.What.Head())
	b.s.doc.Net = append(b.s.doc.Net, n)
}

// FromOwnAddress is the origin of what a program is told of its own sockets: an
// address of this machine, and a port.
const FromOwnAddress = "own_address"

// authority is a destination that is known in part, but all of its host: the rest
// stands behind that, or is what the program's own sockets are called.
func authority(v Value) (string, bool) {
	h := v.Head()
	i := strings.Index(h, "://")
	if i > 0 && strings.ContainsAny(h[i+3:], "/?#") {
		return h, true
	}
	if len(v.From) != 1 || v.From[0] != FromOwnAddress {
		return "", false
	}
	if h == "" || i > 0 && i+3 == len(h) {
		return h + "localhost", true
	}
	return h + "0", true
}

func (b *Builder) net(n Net, dest string, pos Pos) {
	if !b.room() {
		return
	}
	n.At = b.at(pos)
	t := ParseTarget(dest)
	n.Host, n.Folded = t.Host, true
	if t.Scheme != "" {
		n.Scheme, n.URL = t.Scheme, short(dest)
	}
	if t.Port != 0 {
		n.Port = t.Port
	}
	switch {
	case n.Class == "unix" || strings.HasPrefix(dest, "/"):
		n.Class, n.Host, n.URL = "unix", "", short(dest)
	case n.Op == OpListen && n.Host == "":
		n.Class = "any"
	default:
		n.Class = b.s.tables.HostClass(n.Host)
	}
	b.s.doc.Net = append(b.s.doc.Net, n)
}
