package manager_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestEgressBounds holds an exec to its limits and an owner to the quota, over all
// execs, and counts what is refused for whoever watches the sandbox.
func TestEgressBounds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	kit := enginetest.New(t)
	enginetest.Bubblewrap(t)
	m, err := manager.New(manager.Config{
		Runtimes: runtimes.Only(bubblewrap.Name, kit.Jail(t)), Images: kit.Images, Gate: manager.Unjudged, Holder: kit.Holder, Patience: enginetest.Patience, Egress: s.config(),
		Quotas: sandbox.Quotas{Owners: map[string]sandbox.Quota{"ann": {Traffic: 1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	refused := func(owner string, limits sandbox.NetworkLimits) string {
		t.Helper()
		network := s.network()
		network.Limits = limits
		ctx := sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: owner})
		res, err := m.Run(ctx, sandbox.Run{Language: "python", Network: network, Code: asks(s, "/a")}, sandbox.Streams{})
		if err != nil || len(res.Connections) != 1 {
			t.Fatalf("%v: %+v, %s%s", err, res.Connections, res.Stdout, res.Stderr)
		}
		return res.Connections[0].Why
	}
	if why := refused("", sandbox.NetworkLimits{}); why != "" {
		t.Errorf("without a limit: %s", why)
	}
	if why := refused("", sandbox.NetworkLimits{Bytes: 1}); !strings.HasPrefix(why, "the exec has moved all") {
		t.Errorf("an exec's limit: %q", why)
	}
	for range 2 {
		if why := refused("ann", sandbox.NetworkLimits{}); !strings.HasPrefix(why, "the owner has moved all") {
			t.Errorf("an owner's quota: %q", why)
		}
	}
	if why := refused("bob", sandbox.NetworkLimits{}); why != "" {
		t.Errorf("another owner: %s", why)
	}
	seen := 0
	code := fmt.Sprintf("%s\nfor n in range(25):\n    c = HTTPConnection(os.environ['http_proxy'].removeprefix('http://'))\n    c.request('GET', 'http://bad.test:1/')\n    c.getresponse().read()\nprint('done', flush=True)\ninput()\n", asks(s, "/b"))
	in := &stepper{}
	out := in.input()
	res, err := m.Run(t.Context(), sandbox.Run{Language: "python", Network: s.network(), Code: code}, sandbox.Streams{Stdin: out, Stdout: writer(func(b []byte) {
		if strings.Contains(string(b), "done") {
			for _, l := range m.Live() {
				seen = max(seen, l.Refused)
			}
			_ = in.in.Close()
		}
	})})
	if err != nil || seen != 25 {
		t.Errorf("%v: %d refusals are seen, %s%s", err, seen, res.Stdout, res.Stderr)
	}
}

// writer is an io.Writer that hands on what is written.
type writer func(b []byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}
