package sandbox

import (
	"encoding/json"
	"strings"
)

// Network says what a sandbox can reach. The zero value is nothing.
type Network struct {
	Mode NetworkMode `json:"mode,omitempty"`
	// Allow are the hosts that can be reached with the mode [NetworkAllow], and Deny
	// those that cannot although Allow has them: see [ParseHostPattern].
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
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
	switch listed := len(n.Allow) > 0 || len(n.Deny) > 0; {
	case n.Mode == NetworkAllow && len(n.Allow) == 0:
		return Errorf(Invalid, "the network allow without a host").WithHint("name what may be reached: --network allow --allow pypi.org")
	case n.Mode != NetworkAllow && listed:
		return Errorf(Invalid, "hosts are listed, and the network is %s", n.WithDefaults().Mode).WithHint("say --network allow: no other is held to hosts")
	}
	return nil
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
	return s
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
