package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/caisson-dev/caisson/sandbox"
)

// lists are those of a network.
type lists struct {
	network     sandbox.Network
	allow, deny []sandbox.HostPattern
}

// newLists reads the lists of a network. Errors: Invalid.
func newLists(network sandbox.Network) (*lists, error) {
	if err := network.Check(); err != nil {
		return nil, err
	}
	l := &lists{network: network}
	for _, list := range []struct {
		from []string
		to   *[]sandbox.HostPattern
	}{{network.Allow, &l.allow}, {network.Deny, &l.deny}} {
		for _, s := range list.from {
			p, err := sandbox.ParseHostPattern(s)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, p)
		}
	}
	return l, nil
}

// lists returns those that hold now.
func (w *Way) lists(ctx context.Context) (*lists, error) {
	w.mu.Lock()
	last := w.now
	w.mu.Unlock()
	if w.cfg.Network == nil {
		return last, nil
	}
	network, err := w.cfg.Network(ctx)
	if err != nil {
		return nil, err
	}
	if slices.Equal(network.Allow, last.network.Allow) && slices.Equal(network.Deny, last.network.Deny) && network.Unlisted == last.network.Unlisted {
		return last, nil
	}
	now, err := newLists(network)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.now = now
	w.mu.Unlock()
	return now, nil
}

// addresses returns those at which a target that is permitted may be reached. Its
// errors are those of the resolver, and refusals.
func (w *Way) addresses(ctx context.Context, t target) ([]netip.Addr, error) {
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
		case denied(t.deny, "", addr, t.port):
			why = refuse("the list denies its address %s", addr)
		case !sandbox.PublicAddress(addr) && !allowed(t.allow, "", addr, t.port):
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
