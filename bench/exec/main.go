//go:build linux

// Command exec measures how fast caisson runs code, beside a native spawn of
// the same program, `docker exec` and `docker run`, in one run:
//
//	go run ./bench/exec            tables, and exit code 1 where a bar does not hold
//	go run ./bench/exec -json      one object a line
//	go run ./bench/exec -smoke     a few samples, to see that all of it works
//
// It needs a Docker Engine on this host, Go to build caisson, and as root it
// spawns its native peers from the very files of the images. Its containers
// are removed at its end.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/caisson-dev/caisson/bench/measure"
)

func main() { os.Exit(measure.Main("exec", run)) }

// run measures every set.
func run(ctx context.Context, s *measure.Suite) (err error) {
	f, err := newFixture(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, set := range []func(context.Context, *measure.Suite, *fixture) error{
		warmTrue, warmPython, hardening, sideBySide, create, output, ends, agentSize,
	} {
		if err := set(ctx, s, f); err != nil {
			return err
		}
	}
	return nil
}
