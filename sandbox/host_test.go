package sandbox_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

func TestHostPattern(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, host  string
		port           int
		allows, denies bool
	}{
		{"pypi.org", "pypi.org", 443, true, true},
		{"PyPI.org.", "pypi.org", 80, true, true},
		{"pypi.org", "pypi.org", 22, false, true},
		{"pypi.org:22", "pypi.org", 22, true, true},
		{"pypi.org:22", "pypi.org", 443, false, false},
		{"pypi.org:*", "pypi.org", 9, true, true},
		{"pypi.org", "x.pypi.org", 443, false, false},
		{"pypi.org", "xpypi.org", 443, false, false},
		{"*.pypi.org", "x.y.pypi.org", 443, true, true},
		{"*.pypi.org", "pypi.org", 443, false, false},
		{"*.pypi.org", "xpypi.org", 443, false, false},
		{"10.0.0.1", "10.0.0.1", 443, true, true},
		{"10.0.0.0/8:5432", "10.7.0.1", 5432, true, true},
		{"10.0.0.0/8", "11.0.0.1", 443, false, false},
		{"[2001:db8::7]:8443", "2001:db8::7", 8443, true, true},
		{"2001:db8::7", "2001:db8::7", 443, true, true},
		{"[2001:db8::/32]:*", "2001:db8:1::1", 5, true, true},
		{"::ffff:10.0.0.1", "10.0.0.1", 80, true, true},
		{"0.0.0.0/0", "pypi.org", 443, false, false},
	} {
		p, err := sandbox.ParseHostPattern(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		name, addr := tt.host, netip.Addr{}
		if a, err := netip.ParseAddr(tt.host); err == nil {
			name, addr = "", a
		}
		if got := p.Allows(name, addr, tt.port); got != tt.allows {
			t.Errorf("%s allows %s:%d: %v", tt.pattern, tt.host, tt.port, got)
		}
		if got := p.Denies(name, addr, tt.port); got != tt.denies {
			t.Errorf("%s denies %s:%d: %v", tt.pattern, tt.host, tt.port, got)
		}
	}
	for _, bad := range []string{"", "*", "*.", "a*b.test", "x.*", "a b", "a..b", "-a.test", "pypi.org:", "pypi.org:0", "pypi.org:65536", "pypi.org:https", "https://pypi.org", "pypi.org/x",
		"[::1", "[::1]x", "127.1", "0x7f.1", "1.2.3", "10.0.0.0/33", "fe80::1%lo", "käse.test"} {
		if _, err := sandbox.ParseHostPattern(bad); !errors.Is(err, sandbox.Invalid) || sandbox.HintOf(err) == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
