//go:build linux

// Command shell measures shells that last, beside execs of their own, and how soon a
// key is echoed in a terminal:
//
//	go run ./bench/shell            tables, and exit code 1 where a bar does not hold
//	go run ./bench/shell -json      one object a line
//	go run ./bench/shell -smoke     a few samples, to see that all of it works
//
// It needs a Docker Engine on this host and Go to build caisson. Its session and
// containers are removed at its end.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/client"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() { os.Exit(measure.Main("shell", run)) }

// session is the one that all is measured in.
const session = "shells"

// fixture is caisson in this process, and a server of it on loopback.
type fixture struct {
	*rig.Rig
	own, remote api.Service
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := r.Image(ctx, "shell"); err != nil {
		return err
	}
	f := &fixture{Rig: r}
	if err := f.open(ctx); err != nil {
		return err
	}
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{warm, opened, echoed} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}

// open opens caisson, serves it, and makes the session.
func (f *fixture) open(ctx context.Context) error {
	settings := map[string]string{
		"CAISSON_STATE_DIR": filepath.Join(f.Dir, "own"), "CAISSON_RUNTIME_DIR": filepath.Join(f.Dir, "own", "r"),
		"CAISSON_AGENT": f.Program("caisson-agent"), "CAISSON_SCAN": f.Program("caisson-scan"),
	}
	door, err := caisson.Open(ctx, caisson.Config{Getenv: func(name string) string {
		if v, ok := settings[name]; ok {
			return v
		}
		return os.Getenv(name)
	}})
	if err != nil {
		return err
	}
	f.Defer(door.Close)
	f.own = door
	h, err := server.New(server.Config{Service: door})
	if err != nil {
		return err
	}
	ts := httptest.NewServer(h)
	f.Defer(func() error { ts.Close(); return nil })
	c, err := client.New(client.Config{Host: ts.URL})
	if err != nil {
		return err
	}
	f.Defer(c.Close)
	f.remote = c
	_, err = door.CreateSession(ctx, sandbox.SessionOptions{Name: session, Language: "shell", Limits: sandbox.Limits{CPUs: float64(runtime.NumCPU())}}, sandbox.Local{})
	if err != nil {
		return err
	}
	f.Defer(func() error { return door.RemoveSession(context.WithoutCancel(ctx), session, true) })
	return nil
}

// warm measures a text in a shell beside an exec of its own, and beside one byte that
// the same agent takes.
func warm(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, inShell, alone, byteTaken = "true, warm", "in a shell", "an exec", "one byte of input"
	if !s.Wants(name) {
		return nil
	}
	if _, err := f.own.OpenShell(ctx, session, "warm", sandbox.ShellOptions{}); err != nil {
		return err
	}
	reader, err := f.own.StartExec(ctx, session, sandbox.Run{Command: []string{"sh", "-c", "cat >/dev/null"}, Input: true}, sandbox.Local{})
	if err != nil {
		return err
	}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 500, Warmup: 20,
		Subjects: []measure.Subject{
			{Name: inShell, Sample: measure.Millis(func(ctx context.Context) error {
				return rig.Succeeded(f.own.RunShell(ctx, session, "warm", sandbox.ShellRun{Text: "true"}, sandbox.Streams{}))
			})},
			{Name: alone, Sample: measure.Millis(func(ctx context.Context) error {
				return rig.Succeeded(f.own.Exec(ctx, session, sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}))
			})},
			{Name: byteTaken, Sample: measure.Millis(func(ctx context.Context) error {
				_, err := f.own.InputExec(ctx, session, reader.ID, []byte("x"), false)
				return err
			})},
		},
		Rows: []measure.Row{
			{Name: "shell/true/exec", Own: inShell, Peer: alone, Bar: measure.AtMost("p50 <= peer", 1)},
			{Name: "shell/true/byte", Own: inShell, Peer: byteTaken, Bar: &measure.Bar{
				Asked: "p50 <= peer + 1 ms", Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+1 },
			}},
		},
	})
}

// opened measures a shell from nothing, beside bash on this host.
func opened(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, own, native = "open a shell", "caisson", "bash on this host"
	if !s.Wants(name) {
		return nil
	}
	n := 0
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 50, Warmup: 3,
		Subjects: []measure.Subject{
			{Name: own, Sample: func(ctx context.Context) (float64, error) {
				n++
				shell := fmt.Sprintf("opened%d", n)
				took, err := measure.Millis(func(ctx context.Context) error {
					_, err := f.own.OpenShell(ctx, session, shell, sandbox.ShellOptions{Kind: sandbox.ShellBash})
					return err
				})(ctx)
				if err != nil {
					return took, err
				}
				return took, f.own.CloseShell(ctx, session, shell)
			}},
			{Name: native, Sample: measure.Millis(func(ctx context.Context) error {
				return exec.CommandContext(ctx, "bash", "--norc", "-c", "true").Run()
			})},
		},
		Rows: []measure.Row{{Name: "shell/open/native", Own: own, Peer: native, Bar: &measure.Bar{
			Asked: "p50 <= peer + 3 ms", Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+3 },
		}}},
	})
}
