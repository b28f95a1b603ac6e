package sandbox

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Network says what a sandbox can reach. The zero value is nothing.
type Network struct {
	Mode NetworkMode `json:"mode,omitempty"`
	// Allow are the hosts that can be reached with the mode [NetworkAllow], and Deny
	// those that cannot although Allow has them: see [ParseHostPattern].
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	// Unlisted says what becomes of a host that neither list has, with the mode
	// [NetworkAllow]: [Ask], for which "" stands, or [Deny]. An address is never asked
	// about.
	Unlisted Verdict `json:"unlisted,omitempty"`
	// Limits bound what each exec moves with the mode [NetworkAllow].
	Limits NetworkLimits `json:"limits,omitzero"`
}

// NetworkLimits bound what connections move, both ways together. A zero field is no
// bound.
type NetworkLimits struct {
	// Connections are those at once; others wait. An exec has at most [MostConnections].
	Connections int   `json:"connections,omitempty"`
	Bytes       Bytes `json:"bytes,omitempty"`
	Rate        Bytes `json:"rate_bytes,omitempty"` // in a second
}

// MostConnections is how many connections of an exec are open at once.
const MostConnections = 32

// check reports what cannot be meant, as an [Invalid] error.
func (l NetworkLimits) check() error {
	if l.Connections < 0 || l.Connections > MostConnections {
		return Errorf(Invalid, "%d connections at once", l.Connections).WithHint("--max-connections takes 1 to %d", MostConnections)
	}
	if l.Bytes < 0 || l.Rate < 0 {
		return Errorf(Invalid, "a limit of the network that is negative").WithHint("--max-traffic and --max-rate take a size such as 100m")
	}
	return nil
}

// NetworkMode says what a sandbox is connected to. The zero value is
// [NetworkNone].
type NetworkMode string

// The modes. Any other value names a network of the engine.
const (
	NetworkNone   NetworkMode = "none"   // a loopback device of its own and nothing else
	NetworkBridge NetworkMode = "bridge" // the engine's default bridge: the whole internet
	// NetworkAllow is none, and a proxy on the loopback device by which the hosts of
	// a list can be reached and no others.
	NetworkAllow NetworkMode = "allow"
)

// WithDefaults returns n with the mode [NetworkNone] where it is unset.
func (n Network) WithDefaults() Network {
	fill(&n.Mode, NetworkNone)
	return n
}

// Check reports what cannot be meant, as an [Invalid] error.
func (n Network) Check() error {
	if n.Mode == "host" || strings.HasPrefix(string(n.Mode), "container:") {
		return Errorf(Invalid, "network %q would share a namespace", string(n.Mode)).WithHint("--network takes none, allow, bridge, or the name of a network of the engine's")
	}
	for _, list := range [][]string{n.Allow, n.Deny} {
		for _, pattern := range list {
			if _, err := ParseHostPattern(pattern); err != nil {
				return err
			}
		}
	}
	switch listed := len(n.Allow) > 0 || len(n.Deny) > 0 || n.Unlisted != "" || n.Limits != (NetworkLimits{}); {
	case n.Unlisted != "" && n.Unlisted != Ask && n.Unlisted != Deny:
		return Errorf(Invalid, "hosts that are not listed cannot be %q", string(n.Unlisted)).WithHint("--unlisted takes ask and deny")
	case n.Mode == NetworkAllow && len(n.Allow) == 0 && n.Unlisted != Ask:
		return Errorf(Invalid, "the network allow without a host").
			WithHint("name what may be reached: --network allow --allow pypi.org; to be asked about each host, say --unlisted ask")
	case n.Mode != NetworkAllow && listed:
		return Errorf(Invalid, "hosts are listed or bounded, and the network is %s", n.WithDefaults().Mode).WithHint("say --network allow: no other is held to hosts")
	}
	return n.Limits.check()
}

// String is the mode, and which hosts are allowed where not all are.
func (n Network) String() string {
	s := string(n.WithDefaults().Mode)
	if len(n.Allow) > 0 {
		s += ", only " + strings.Join(n.Allow, " ")
	}
	if len(n.Deny) > 0 {
		s += ", not " + strings.Join(n.Deny, " ")
	}
	if n.Unlisted != "" {
		s += ", others: " + string(n.Unlisted)
	}
	return s
}

// NetworkChange changes the lists of a network that has some.
type NetworkChange struct {
	Allow []string `json:"allow,omitempty"` // are added
	Deny  []string `json:"deny,omitempty"`
	// Drop are patterns that are taken out of both lists, as they stand there, before
	// others are added.
	Drop     []string `json:"drop,omitempty"`
	Unlisted Verdict  `json:"unlisted,omitempty"` // "" is as it was
}

// Changed returns what n is after a change. Errors: Invalid; NotFound for what is to be
// dropped.
func (n Network) Changed(c NetworkChange) (Network, error) {
	for _, p := range c.Drop {
		if !slices.Contains(n.Allow, p) && !slices.Contains(n.Deny, p) {
			return n, Errorf(NotFound, "%s is on no list", p).WithHint("drop a pattern as the session's network shows it")
		}
	}
	changed := func(list, add []string) []string {
		var all []string
		for _, p := range slices.Concat(list, add) {
			if !slices.Contains(all, p) && (!slices.Contains(c.Drop, p) || slices.Contains(add, p)) {
				all = append(all, p)
			}
		}
		return all
	}
	n.Allow, n.Deny, n.Unlisted = changed(n.Allow, c.Allow), changed(n.Deny, c.Deny), cmp.Or(c.Unlisted, n.Unlisted)
	return n, n.Check()
}

// Set makes the mode the one of that name, as a flag does. It checks nothing.
func (n *Network) Set(mode string) error {
	n.Mode = NetworkMode(mode)
	return nil
}

// Type names the flag's type in help texts.
func (n *Network) Type() string { return "network" }

// UnmarshalJSON reads an object, or a word that is its mode.
func (n *Network) UnmarshalJSON(b []byte) error {
	var mode NetworkMode
	if json.Unmarshal(b, &mode) == nil {
		*n = Network{Mode: mode}
		return nil
	}
	type plain Network // without this method
	return json.Unmarshal(b, (*plain)(n))
}
