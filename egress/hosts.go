package egress

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/caisson-dev/caisson/internal/onedoc"
	"github.com/caisson-dev/caisson/sandbox"
)

//go:embed hosts.yaml
var hosts []byte

var ownLists = sync.OnceValue(func() map[string][]string {
	lists := map[string][]string{}
	if err := onedoc.Decode(hosts, &lists); err != nil {
		panic(fmt.Sprintf("egress: hosts.yaml: %v", err)) // a test reads it
	}
	return lists
})

// Named puts what lists by name hold into the place of their names. A host that is
// called like a list is written with its port.
func (c Config) Named(n sandbox.Network) sandbox.Network {
	n.Allow, n.Deny = c.named(n.Allow), c.named(n.Deny)
	return n
}

func (c Config) named(patterns []string) []string {
	var all []string
	for _, p := range patterns {
		list, ok := c.Hosts[p]
		if !ok {
			list, ok = ownLists()[p]
		}
		if !ok {
			list = []string{p}
		}
		all = append(all, list...)
	}
	return all
}
