//go:build linux

// Command server measures what a server costs beside caisson in the caller's own
// process, and beside go-judge:
//
//	go run ./bench/server            tables, and exit code 1 where a bar does not hold
//	go run ./bench/server -json      one object a line
//	go run ./bench/server -smoke     a few samples, to see that all of it works
//
// It needs a Docker Engine on this host and Go to build caisson. go-judge is built
// from the module in gojudge, which has its exact version; it runs as root alone.
// The server, its sessions and containers are gone at its end.
package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() { os.Exit(measure.Main("server", run)) }

// Names of subjects that several sets have.
const (
	inProcess = "in process"
	overHTTP  = "server, POST"
	byClient  = "server, api/client"
)

// workers are those of the server's executions, and clients at once elsewhere.
const workers = 8

// justTrue is a program that does nothing.
var justTrue = sandbox.Run{Command: []string{"true"}}

// fixture is a server, and caisson in this process: each with a state of its own.
type fixture struct {
	*rig.Rig
	own    api.Service
	server *served
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
	// The first of all, while nobody has asked the server for anything.
	if f.server, err = serve(ctx, r); err != nil {
		return err
	}
	if err := idle(ctx, s, f); err != nil {
		return err
	}
	if f.own, err = open(ctx, r); err != nil {
		return err
	}
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{warm, throughput, hundred} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}

// session makes a session of a service, which the rig's end removes.
func (f *fixture) session(ctx context.Context, svc api.Service, name string) error {
	_, err := svc.CreateSession(ctx, sandbox.SessionOptions{
		Name: name, Language: "shell", Limits: sandbox.Limits{CPUs: float64(runtime.NumCPU())},
	}, sandbox.Local{})
	if err != nil {
		return err
	}
	f.Defer(func() error { return svc.RemoveSession(context.WithoutCancel(ctx), name, true) })
	return nil
}

// warm measures one exec after the other in a session whose sandbox is there.
func warm(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, session = "warm true in a session", "warm"
	if !s.Wants(name) {
		return nil
	}
	for _, svc := range []api.Service{f.own, f.server.client} {
		if err := f.session(ctx, svc, session); err != nil {
			return err
		}
	}
	by := func(svc api.Service) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error {
			return rig.Succeeded(svc.Exec(ctx, session, justTrue, sandbox.Streams{}))
		})
	}
	bar := &measure.Bar{Asked: "p50 <= peer + 1 ms", Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+1 }}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 500, Warmup: 20,
		Subjects: []measure.Subject{
			{Name: inProcess, Sample: by(f.own)},
			{Name: overHTTP, Sample: measure.Millis(func(ctx context.Context) error { return f.server.exec(ctx, session) })},
			{Name: byClient, Sample: by(f.server.client)},
		},
		Rows: []measure.Row{
			{Name: "server/true/post", Own: overHTTP, Peer: inProcess, Bar: bar},
			{Name: "server/true/client", Own: byClient, Peer: inProcess, Bar: bar},
		},
	})
}

// number names one of several.
func number(name string, i int) string { return name + strconv.Itoa(i) }
