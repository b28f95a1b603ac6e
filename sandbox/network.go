package sandbox

import (
	"encoding/json"
	"slices"
	"strings"
)

// Network says what a sandbox can reach. The zero value is nothing.
type Network struct {
	Mode NetworkMode `json:"mode,omitempty"`
	// Allow names the domains that can be reached, such as "pypi.org"; without any
	// it is all that the mode reaches. A runtime that cannot hold a sandbox to them
	// refuses: [Unsupported].
	Allow []string `json:"allow,omitempty"`
}

// NetworkMode says what a sandbox is connected to. The zero value is
// [NetworkNone].
type NetworkMode string

// The modes. Any other value names a network of the engine.
const (
	NetworkNone   NetworkMode = "none"   // a loopback device of its own and nothing else
	NetworkBridge NetworkMode = "bridge" // the engine's default bridge: the whole internet
)

// WithDefaults returns n with the mode [NetworkNone] where it is unset.
func (n Network) WithDefaults() Network {
	fill(&n.Mode, NetworkNone)
	return n
}

// Check reports what cannot be meant, as an [Invalid] error.
func (n Network) Check() error {
	if n.Mode == "host" || strings.HasPrefix(string(n.Mode), "container:") {
		return Errorf(Invalid, "network %q would share a namespace", string(n.Mode)).WithHint("--network takes none, bridge, or the name of a network of the engine's")
	}
	if slices.Contains(n.Allow, "") {
		return Errorf(Invalid, "a domain without a name").WithHint(`write {"mode": "bridge", "allow": ["pypi.org"]}`)
	}
	return nil
}

// String is the mode, and which domains are allowed where not all are.
func (n Network) String() string {
	s := string(n.WithDefaults().Mode)
	if len(n.Allow) > 0 {
		s += ", only " + strings.Join(n.Allow, " ")
	}
	return s
}

// Set makes n the mode of that name, as a flag does. It checks nothing.
func (n *Network) Set(mode string) error {
	*n = Network{Mode: NetworkMode(mode)}
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
