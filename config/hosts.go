package config

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/sandbox"
)

// hosts takes in lists of hosts: each has one word for a name, since hosts of the
// internet have several.
func (f *File) hosts(lists map[string]yaml.Node) error {
	for name, n := range lists {
		if _, ok := sandbox.HostName(name); !ok || strings.Contains(name, ".") {
			return f.bad(n.Line, "hosts: %q: write a name of letters, digits and dashes, and the hosts of the list", name)
		}
		var patterns []string
		if err := n.Decode(&patterns); err != nil {
			return f.bad(n.Line, "hosts: %s: write a list such as [git.example.org, 10.0.0.5:443]", name)
		}
		for _, p := range patterns {
			if _, err := sandbox.ParseHostPattern(p); err != nil {
				return f.bad(n.Line, "hosts: %s: %v", name, err)
			}
		}
		if f.Hosts == nil {
			f.Hosts = map[string][]string{}
		}
		f.Hosts[name] = patterns
	}
	return nil
}
