//go:build linux

// Command tools measures calls from a Python in a sandbox to a function of this
// process, beside bare lines over a socket that a plain container has:
//
//	go run ./bench/tools          tables, and exit code 1 where a bar does not hold
//	go run ./bench/tools -json    one object a line
//	go run ./bench/tools -smoke   a few samples, to see that all of it works
//
// Each call goes the whole way: schema, rules, a durable audit. It needs a Docker
// Engine on this host, its command, and Go to build caisson.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/bench/rig/judge"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
	"github.com/caisson-dev/caisson/tools"
)

func main() { os.Exit(measure.Main("tools", run)) }

var (
	//go:embed client.py
	program string
	//go:embed bare.py
	bare string
)

// atOnce is how many calls are open, and calls how many a sample makes so.
const (
	atOnce = 50
	calls  = 1000
)

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	m, err := managerOf(ctx, r)
	if err != nil {
		return err
	}
	own, err := inside(ctx, r, m)
	if err != nil {
		return err
	}
	peer, err := plain(ctx, r)
	if err != nil {
		return err
	}
	const caisson, socket = "caisson", "bare socket"
	subjects := func(op string, of func(seconds float64) float64) []measure.Subject {
		sample := func(c *client) func(context.Context) (float64, error) {
			return func(context.Context) (float64, error) {
				seconds, err := c.do(op)
				return of(seconds), err
			}
		}
		cpus := float64(runtime.NumCPU())
		return []measure.Subject{{Name: caisson, CPUs: cpus, Sample: sample(own)}, {Name: socket, CPUs: cpus, Sample: sample(peer)}}
	}
	return errors.Join(
		s.Measure(ctx, measure.Set{Name: "one call", Unit: "ms", Rounds: 500, Warmup: 50, Subjects: subjects("one", func(seconds float64) float64 { return seconds * 1000 }),
			Rows: []measure.Row{{Name: "tools/call", Own: caisson, Peer: socket, Bar: &measure.Bar{
				Asked: "p50 <= 1 ms", Holds: func(own, _ measure.Stats) bool { return own.P50 <= 1 },
			}}}}),
		s.Measure(ctx, measure.Set{Name: "calls, 50 at once", Unit: "1/s", Rounds: 10, Warmup: 1, Subjects: subjects("many", func(seconds float64) float64 { return calls / seconds }),
			Rows: []measure.Row{{Name: "tools/rate", Own: caisson, Peer: socket, Bar: &measure.Bar{
				Asked: "p50 >= 1500", Holds: func(own, _ measure.Stats) bool { return own.P50 >= 1500 },
			}}}}),
		starts(ctx, s, r, m),
	)
}

// managerOf has a tool, and all that judges and remembers its calls.
func managerOf(ctx context.Context, r *rig.Rig) (*manager.Manager, error) {
	if _, err := r.Image(ctx, "python"); err != nil {
		return nil, err
	}
	st, err := sqlite.Open(ctx, sqlite.Config{Dir: r.Dir})
	if err != nil {
		return nil, err
	}
	r.Defer(st.Close)
	cfg := r.Config()
	cfg.Store, cfg.StateID, cfg.LockDir, cfg.Actor = st, st.ID(), filepath.Join(r.Dir, "locks"), "bench"
	g, err := judge.Lazy(r.Dir, r.Program("caisson-scan"), st, r.Defer)
	if err != nil {
		return nil, err
	}
	add, err := tools.Func(sandbox.Tool{Name: "add", Description: "Adds."}, func(_ context.Context, in sum) (int, error) { return in.A + in.B, nil })
	if err != nil {
		return nil, err
	}
	cfg.Gate = g.Judge
	if cfg.Tools, err = tools.New(add); err != nil {
		return nil, err
	}
	return r.Manager(cfg)
}

// starts measures a program that may use tools, and does not, beside one that may not.
func starts(ctx context.Context, s *measure.Suite, r *rig.Rig, m *manager.Manager) error {
	const name, with, without = "start of a program", "with tools", "without"
	if !s.Wants(name) {
		return nil
	}
	cpus := float64(runtime.NumCPU()) // with less, what is measured is how long it waits for its next share
	if err := r.Session(ctx, m, sandbox.SessionOptions{Name: "starts", Language: "python", Limits: sandbox.Limits{CPUs: cpus}}); err != nil {
		return err
	}
	exec := func(names []string) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error {
			return rig.Succeeded(m.ExecIn(ctx, "starts", sandbox.Run{Language: "python", Code: "pass", Tools: names}, sandbox.Streams{}))
		})
	}
	return s.Measure(ctx, measure.Set{Name: name, Unit: "ms", Rounds: 100, Warmup: 5,
		Subjects: []measure.Subject{{Name: with, CPUs: cpus, Sample: exec(nil)}, {Name: without, CPUs: cpus, Sample: exec([]string{})}},
		Rows: []measure.Row{{Name: "tools/start", Own: with, Peer: without, Bar: &measure.Bar{
			Asked: "p50 <= peer + 5 ms", Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+5 },
		}}}})
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

func constants(text string) string {
	return fmt.Sprintf("AT_ONCE, CALLS = %d, %d\n%s", atOnce, calls, text)
}

// inside starts the client in a sandbox.
func inside(ctx context.Context, r *rig.Rig, m *manager.Manager) (*client, error) {
	read, in := io.Pipe()
	out, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- rig.Succeeded(m.Run(ctx, sandbox.Run{
			Language: "python", Code: constants(program), Limits: sandbox.Limits{CPUs: float64(runtime.NumCPU())},
			ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(time.Hour)},
		}, sandbox.Streams{Stdin: read, Stdout: write}))
		_ = write.Close() // never fails
		_ = read.Close()
	}()
	r.Defer(func() error { _ = in.Close(); return <-ended })
	return &client{in, bufio.NewReader(out), func() error { err := <-ended; ended <- err; return err }}, nil
}

// plain starts one in a container that has a socket of a server which says back each
// line, and does nothing else.
func plain(ctx context.Context, r *rig.Rig) (*client, error) {
	image, err := r.Image(ctx, "python")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.Dir, "bare")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "unix", filepath.Join(dir, "s"))
	if err != nil {
		return nil, err
	}
	r.Defer(ln.Close)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // its end
			}
			go func() {
				_, _ = io.Copy(c, c) // until the client is gone
				_ = c.Close()
			}()
		}
	}()
	cmd := exec.CommandContext(ctx, "docker", "run", "-i", "--rm", "--network", "none", "-v", dir+":/bare", image, "python3", "-c", constants(bare))
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
	return &client{in, bufio.NewReader(out), func() error { return errors.New("the container ended") }}, nil
}
