//go:build linux

// Command egress measures what it costs to go out by a list of hosts, beside the same
// client in a container of the host's network:
//
//	go run ./bench/egress          tables, and exit code 1 where a bar does not hold
//	go run ./bench/egress -json    one object a line
//	go run ./bench/egress -smoke   a few samples, to see that all of it works
//
// It needs a Docker Engine on this host, its command, and Go to build caisson. The
// server is this program, on the loopback device.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() { os.Exit(measure.Main("egress", run)) }

//go:embed client.py
var program string

// size is what is downloaded at once, and smokeSize in a smoke run.
const (
	size      = 1 << 30
	smokeSize = 16 << 20
)

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	large := size
	if s.Smoke {
		large = smokeSize
	}
	srv, err := serve(large)
	if err != nil {
		return err
	}
	r.Defer(func() error { srv.Close(); return nil })
	code := fmt.Sprintf("AUTHORITY, PORT, SIZE = %q, %d, %d\n%s", srv.authority, srv.port, large, program)
	listed, err := listed(ctx, r, srv, code)
	if err != nil {
		return err
	}
	direct, err := direct(ctx, r, code)
	if err != nil {
		return err
	}
	return measureAll(ctx, s, float64(large), listed, direct, r)
}

// measureAll takes all samples of both clients.
func measureAll(ctx context.Context, s *measure.Suite, large float64, listed, direct *client, r *rig.Rig) error {
	const own, peer = "by a list", "host's network"
	subjects := func(op string, of func(seconds float64) float64) []measure.Subject {
		sample := func(c *client) func(context.Context) (float64, error) {
			return func(context.Context) (float64, error) {
				seconds, err := c.do(op)
				return of(seconds), err
			}
		}
		cpus := float64(runtime.NumCPU())
		return []measure.Subject{{Name: own, CPUs: cpus, Sample: sample(listed)}, {Name: peer, CPUs: cpus, Sample: sample(direct)}}
	}
	ms := func(seconds float64) float64 { return seconds * 1000 }
	within := func(more float64) *measure.Bar {
		return &measure.Bar{Asked: fmt.Sprintf("p50 <= peer + %g ms", more), Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+more }}
	}
	half := &measure.Bar{Asked: "p50 >= 0.5 x peer", Holds: func(own, peer measure.Stats) bool { return own.P50 >= peer.P50/2 }}
	return errors.Join(
		s.Measure(ctx, measure.Set{Name: "small request, kept connection", Unit: "ms", Rounds: 500, Warmup: 20, Subjects: subjects("kept", ms),
			Rows: []measure.Row{{Name: "egress/kept", Own: own, Peer: peer, Bar: within(0.5)}}}),
		s.Measure(ctx, measure.Set{Name: "small request, new connection", Unit: "ms", Rounds: 200, Warmup: 10, Subjects: subjects("new", ms),
			Rows: []measure.Row{{Name: "egress/new", Own: own, Peer: peer, Bar: within(2)}}}),
		s.Measure(ctx, measure.Set{Name: "download", Unit: "MB/s", Rounds: 5, Warmup: 1, Subjects: subjects("large", func(seconds float64) float64 { return large / 1e6 / seconds }),
			Rows: []measure.Row{{Name: "egress/down", Own: own, Peer: peer, Bar: half}}}),
		noCost(ctx, s, r),
	)
}

// noCost measures an exec whose network is a list, beside one without a network.
func noCost(ctx context.Context, s *measure.Suite, r *rig.Rig) error {
	m, err := r.Manager(r.Config())
	if err != nil {
		return err
	}
	exec := func(n sandbox.Network) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error {
			return rig.Succeeded(m.Run(ctx, sandbox.Run{Command: []string{"true"}, Network: n}, sandbox.Streams{}))
		})
	}
	const none, list = "network none", "network allow"
	return s.Measure(ctx, measure.Set{Name: "a run of true", Unit: "ms", Rounds: 20, Warmup: 2,
		Subjects: []measure.Subject{{Name: none, Sample: exec(sandbox.Network{})}, {Name: list, Sample: exec(sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"bench.test"}})}},
		Rows:     []measure.Row{{Name: "egress/run", Own: list, Peer: none}}})
}

// client is a program that does what its input says, and answers how long it took.
type client struct {
	in   io.Writer
	out  *bufio.Reader
	fail func() error // why it ended
}

func (c *client) do(op string) (seconds float64, err error) {
	if _, err := io.WriteString(c.in, op+"\n"); err != nil {
		return 0, errors.Join(err, c.fail())
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, errors.Join(err, c.fail())
	}
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}

// listed starts the client in a sandbox whose list has the server.
func listed(ctx context.Context, r *rig.Rig, srv *server, code string) (*client, error) {
	if _, err := r.Image(ctx, "python"); err != nil {
		return nil, err
	}
	cfg := r.Config()
	cfg.Egress.Resolve = srv.resolve
	m, err := r.Manager(cfg)
	if err != nil {
		return nil, err
	}
	in, out := pipes()
	ended := make(chan error, 1)
	go func() {
		ended <- rig.Succeeded(m.Run(ctx, sandbox.Run{
			Language: "python", Code: code, Limits: sandbox.Limits{CPUs: float64(runtime.NumCPU())}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(maxTime), MaxOutput: 1 << 30}, Network: srv.network(),
		}, sandbox.Streams{Stdin: in.r, Stdout: out.w}))
		_ = out.w.Close()
	}()
	r.Defer(func() error { _ = in.w.Close(); return <-ended })
	return &client{in: in.w, out: bufio.NewReader(out.r), fail: func() error { err := <-ended; ended <- err; return err }}, nil
}

// direct starts it in a container with the host's network.
func direct(ctx context.Context, r *rig.Rig, code string) (*client, error) {
	image, err := r.Image(ctx, "python")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "docker", "run", "-i", "--rm", "--network", "host", image, "python3", "-c", code)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r.Defer(func() error { _ = in.Close(); return cmd.Wait() })
	return &client{in: in, out: bufio.NewReader(out), fail: func() error { return errors.New("the container ended") }}, nil
}
