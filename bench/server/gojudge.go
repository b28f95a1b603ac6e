//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
)

// judge is a go-judge that runs: programs of this host, in containers of its own
// that stand ready.
type judge struct {
	http *http.Client
}

// goJudge builds and starts go-judge, until the rig's end. Where that cannot be it
// is nil, and the suite says why.
func goJudge(ctx context.Context, s *measure.Suite, r *rig.Rig) (*judge, error) {
	if os.Geteuid() != 0 {
		s.Note("go-judge is left out: only root may have it make containers")
		return nil, nil
	}
	program, dir := r.Program("go-judge"), filepath.Join(r.Dir, "judge")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "github.com/criyle/go-judge/cmd/go-judge")
	build.Dir, build.Env = "bench/server/gojudge", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		s.Note("go-judge is left out: it does not build here: %v\n%s", err, out)
		return nil, nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	address, err := free(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-http-addr", address, "-dir", dir, "-silent", "-release",
		"-parallelism", strconv.Itoa(workers), "-pre-fork", strconv.Itoa(workers))
	cmd.Env = append(os.Environ(), "GIN_MODE=release")
	if _, err := start(r, cmd); err != nil {
		return nil, err
	}
	j := &judge{http: dialing(r, "tcp", address)}
	return j, j.ready(ctx)
}

// free is an address of loopback that nobody listens on.
func free(ctx context.Context) (string, error) {
	var cfg net.ListenConfig
	l, err := cfg.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// ready waits until go-judge has run something.
func (j *judge) ready(ctx context.Context) (err error) {
	for range 100 {
		if err = j.run(ctx); err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("go-judge does not answer: %w", err)
}

// run has it run true with its output taken, as a sandbox does.
func (j *judge) run(ctx context.Context) error {
	const body = `{"cmd":[{"args":["/usr/bin/true"],"env":["PATH=/usr/bin:/bin"],"cpuLimit":10000000000,"memoryLimit":536870912,"procLimit":50,` +
		`"files":[{"content":""},{"name":"stdout","max":65536},{"name":"stderr","max":65536}]}]}`
	var results []struct {
		Status string `json:"status"`
	}
	if err := post(ctx, j.http, "http://localhost/run", body, &results); err != nil {
		return err
	}
	if len(results) != 1 || results[0].Status != "Accepted" {
		return fmt.Errorf("go-judge answered %+v", results)
	}
	return nil
}
