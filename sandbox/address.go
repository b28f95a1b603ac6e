package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
)

// ShownAddress is what may be shown of an address: its scheme and its host. The
// user, the path and the query of many are secrets.
func ShownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return "an address without scheme or host"
	}
	return u.Scheme + "://" + u.Host
}

// ShownError is err with the address of a request that failed as
// [ShownAddress] has it: net/http puts all of it into what it says.
func ShownError(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", ShownAddress(failed.URL), failed.Err)
	}
	return err
}

// reserved are ranges beside those that netip names which are nobody's server,
// or which hide another address.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("fec0::/10"),
}

// PublicAddress reports whether an address is a server's of the internet: none of a
// private network, of this host, its link or its metadata, of a group or of no use.
func PublicAddress(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
