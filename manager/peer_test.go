package manager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// greeter listens and greets whoever connects. The shell's image has perl.
const greeter = `use IO::Socket::INET; $| = 1; $SIG{TERM} = sub { exit };
my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "0.0.0.0", LocalPort => 7777, ReuseAddr => 1) or die;
print "listening\n";
while (my $c = $s->accept) { print $c "hello from the peer\n"; close $c }`

// A neighbour on a network of the engine's is reached by a sandbox that was put
// on that network, and by no other: nor is anything else.
func TestNetworkNoneReachesNothing(t *testing.T) {
	b := openBox(t, manager.OpenOptions{})
	// The library's own cleaner is an image that no registry may be there for;
	// what this test makes is removed below.
	t.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	net, err := network.New(t.Context(), network.WithDriver("bridge"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := net.Remove(context.Background()); err != nil {
			t.Errorf("remove the network: %v", err)
		}
	})
	peer, err := testcontainers.Run(t.Context(), b.kit.Image(t, "shell").Ref,
		testcontainers.WithEntrypoint("perl", "-e", greeter),
		network.WithNetwork([]string{"peer"}, net),
		testcontainers.WithWaitStrategy(wait.ForLog("listening").WithStartupTimeout(time.Minute)),
	)
	testcontainers.CleanupContainer(t, peer)
	if err != nil {
		t.Fatal(err)
	}
	ip, err := peer.ContainerIP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gateway := ip[:strings.LastIndex(ip, ".")] + ".1"
	reach := func(host string, seconds int) string {
		return fmt.Sprintf(`timeout %d bash -c 'exec 3<>/dev/tcp/%s/7777 && head -n 1 <&3' 2>&1`, seconds, host)
	}

	// First the proof that the peer can be reached at all.
	on, err := b.kit.Manager(t).Open(t.Context(), manager.OpenOptions{Language: "shell", Network: sandbox.Network{Mode: sandbox.NetworkMode(net.Name)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{ip, "peer"} {
		res, err := on.Exec(t.Context(), sandbox.Run{Command: []string{"bash", "-c", reach(host, 60)}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(2 * time.Minute)}}, sandbox.Streams{})
		if err != nil || string(res.Stdout) != "hello from the peer\n" {
			t.Fatalf("on the peer's network, %s: %v, code %d, %q", host, err, res.Code, res.Stdout)
		}
	}

	// Then that nothing is, without a network.
	for _, host := range []string{ip, "peer", gateway, "172.17.0.1", "169.254.169.254", "192.0.2.1", "::1", "255.255.255.255"} {
		res := b.sh(t, reach(host, 3), time.Minute)
		if res.Code == 0 || strings.Contains(string(res.Stdout), "hello") {
			t.Errorf("without a network, %s answered: code %d, %q", host, res.Code, res.Stdout)
		}
	}
	res := b.sh(t, "cat /proc/net/route /proc/net/arp | grep -vc Iface; ls /sys/class/net; cat /proc/net/dev | tail -n +3 | cut -d: -f1", 0)
	if got := strings.Join(strings.Fields(string(res.Stdout)), " "); got != "1 lo lo" {
		t.Errorf("interfaces and routes: %q", got)
	}
	b.usable(t)
}
