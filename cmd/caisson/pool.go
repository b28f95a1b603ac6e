package main

import (
	"context"
	"fmt"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/cli"
	"github.com/caisson-dev/caisson/sandbox"
)

// servePool keeps the pool of the state folder until ctx is done.
func (a *app) servePool(ctx context.Context) error {
	switch {
	case a.remote != nil:
		return sandbox.Errorf(sandbox.Unsupported, "a server keeps its pool by itself").WithHint("unset CAISSON_HOST for a pool of this machine's")
	case a.file == nil || len(a.file.Pool) == 0:
		return sandbox.Errorf(sandbox.Invalid, "no sandboxes are to be kept ready").WithHint("write pool: with languages and numbers into caisson.yaml; docs/pool.md shows it")
	}
	a.mu.Lock()
	a.progress = cli.NewProgress(a.err)
	a.door = caisson.New(caisson.Config{Getenv: a.getenv, File: a.file, Progress: a.progress.Show, Log: a.log, KeepPool: true})
	door := a.door
	a.mu.Unlock()
	if _, err := door.Open(ctx); err != nil {
		return err
	}
	if !door.KeepsPool() {
		return sandbox.Errorf(sandbox.Conflict, "another process keeps the pool of this state folder").WithHint("see what it has with: caisson pool ls")
	}
	if _, err := fmt.Fprintln(a.out, "the pool is kept until this process ends"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
