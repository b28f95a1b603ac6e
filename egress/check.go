package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/caisson-dev/caisson/sandbox"
)

// check returns the addresses at which a target may be reached. Its errors are
// those of the resolver, and refusals.
func (w *Way) check(ctx context.Context, t target) ([]netip.Addr, error) {
	if t.port < 1 || t.port > 65535 {
		return nil, refuse("port %d", t.port)
	}
	if denied(w.deny, t.name, t.addr, t.port) {
		return nil, refuse("the list denies it")
	}
	if !allowed(w.allow, t.name, t.addr, t.port) {
		return nil, refuse("it is not on the list")
	}
	if t.name == "" {
		return []netip.Addr{t.addr}, nil
	}
	found, err := w.cfg.Resolve(ctx, t.name)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", t.name, err)
	}
	var why error
	var addrs []netip.Addr
	for _, addr := range found {
		addr = addr.Unmap().WithZone("")
		switch {
		case denied(w.deny, "", addr, t.port):
			why = refuse("the list denies its address %s", addr)
		case !sandbox.PublicAddress(addr) && !allowed(w.allow, "", addr, t.port):
			why = refuse("its address %s is not a public one, and not listed itself", addr)
		case !slices.Contains(addrs, addr):
			addrs = append(addrs, addr)
		}
	}
	switch {
	case len(addrs) > 0:
		return addrs, nil
	case why != nil:
		return nil, why
	}
	return nil, fmt.Errorf("resolve %s: no address", t.name)
}

func allowed(list []sandbox.HostPattern, name string, addr netip.Addr, port int) bool {
	return slices.ContainsFunc(list, func(p sandbox.HostPattern) bool { return p.Allows(name, addr, port) })
}

func denied(list []sandbox.HostPattern, name string, addr netip.Addr, port int) bool {
	return slices.ContainsFunc(list, func(p sandbox.HostPattern) bool { return p.Denies(name, addr, port) })
}

// same reports whether a name that a program gave inside its connection is the
// host that it asked for.
func (t target) same(host string) bool {
	if t.name == "" {
		addr, err := netip.ParseAddr(host)
		return err == nil && addr.Unmap() == t.addr
	}
	name, ok := sandbox.HostName(host)
	return ok && name == t.name
}
