package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/internal/feed"
	"github.com/caisson-dev/caisson/sandbox"
)

// serveCaisson serves caisson with the environment of a script, on a socket in
// base, and has the script's commands speak with it.
func serveCaisson(env *testscript.Env, base string) error {
	progress := &feed.Feed[sandbox.Progress]{}
	own := &testscript.Env{Vars: slices.Clone(env.Vars)} // which others set more in
	c, err := caisson.Open(context.Background(), caisson.Config{Getenv: own.Getenv, Progress: progress.Tell})
	if err != nil {
		return err
	}
	s, err := server.New(server.Config{Service: c, Progress: progress})
	if err != nil {
		return errors.Join(err, c.Close())
	}
	ln, err := net.Listen("unix", base+"/api.sock")
	if err != nil {
		return errors.Join(err, c.Close())
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(ln) }()
	env.Defer(func() {
		_ = srv.Close()
		_ = c.Close() // what it leaves behind is looked for
	})
	env.Setenv("CAISSON_HOST", "unix://"+base+"/api.sock")
	return nil
}
