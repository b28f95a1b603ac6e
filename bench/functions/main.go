//go:build linux

// Command functions measures calls of functions, beside execs:
//
//	go run ./bench/functions          tables, and exit code 1 where a bar does not hold
//	go run ./bench/functions -json    one object a line
//	go run ./bench/functions -smoke   a few samples, to see that all of it works
//
// It needs a Docker Engine on this host and Go to build caisson. Its sessions and
// containers are removed at its end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() { os.Exit(measure.Main("functions", run)) }

// sandboxes are those of a manager.
type sandboxes struct{ *manager.Manager }

func (s sandboxes) CreateSession(ctx context.Context, o sandbox.SessionOptions, _ sandbox.Local) (sandbox.Session, error) {
	return s.Manager.CreateSession(ctx, o)
}

func (s sandboxes) Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	return s.ExecIn(ctx, session, run, streams)
}

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	cfg, err := r.Durable(ctx, r.Config())
	if err != nil {
		return err
	}
	m, err := r.Manager(cfg)
	if err != nil {
		return err
	}
	limits := sandbox.Limits{CPUs: float64(runtime.NumCPU())}
	if err := r.Session(ctx, m, sandbox.SessionOptions{Name: "warm", Limits: limits}); err != nil {
		return err
	}
	store, ok := cfg.Store.(functions.Store)
	if !ok {
		return fmt.Errorf("%T keeps no functions", cfg.Store)
	}
	fs, err := functions.New(functions.Config{Sandboxes: sandboxes{m}, Store: store, LockDir: cfg.LockDir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fs.Close()) }()
	for language, code := range map[string]sandbox.File{
		"python": {Path: "main.py", Data: []byte("def handler(event, context):\n    return event\n")},
		"node":   {Path: "main.js", Data: []byte("exports.handler = async (event) => event\n")},
	} {
		if _, err := r.Image(ctx, language); err != nil {
			return err
		}
		_, err = fs.PutFunction(ctx, sandbox.FunctionOptions{Name: language, Language: language, Handler: "main.handler", Files: []sandbox.File{code}, Limits: limits}, sandbox.Local{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, fs.RemoveFunction(context.WithoutCancel(ctx), language)) }()
	}
	return warm(ctx, s, fs, m)
}

// warm measures a call in a process that is there, beside an exec in a session that
// is.
func warm(ctx context.Context, s *measure.Suite, fs *functions.Functions, m *manager.Manager) error {
	const name = "warm call"
	if !s.Wants(name) {
		return nil
	}
	call := func(function string) func(context.Context) (float64, error) {
		return measure.Millis(func(ctx context.Context) error {
			done, err := fs.InvokeFunction(ctx, sandbox.Invocation{Function: function, Event: []byte(`{"a":1}`)}, sandbox.Local{})
			if err == nil && string(done.Value) != `{"a": 1}` && string(done.Value) != `{"a":1}` {
				err = fmt.Errorf("%s answered %s, %+v", function, done.Value, done.Error)
			}
			return err
		})
	}
	const python, node, exec = "call, python", "call, node", "exec of true"
	bar := measure.AtMost("p50 <= peer", 1)
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 500, Warmup: 20,
		Subjects: []measure.Subject{
			{Name: python, Sample: call("python")},
			{Name: node, Sample: call("node")},
			{Name: exec, Sample: measure.Millis(func(ctx context.Context) error {
				return rig.Succeeded(m.ExecIn(ctx, "warm", sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}))
			})},
		},
		Rows: []measure.Row{{Name: "functions/python", Own: python, Peer: exec, Bar: bar}, {Name: "functions/node", Own: node, Peer: exec, Bar: bar}},
	})
}
