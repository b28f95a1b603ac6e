package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/e2b"
	"github.com/caisson-dev/caisson/api/fusion"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/api/swerex"
	"github.com/caisson-dev/caisson/sandbox"
)

// wireParts are what a wire is made of.
type wireParts struct {
	svc   api.Service
	state string           // the folder for what outlives a process
	kept  sandbox.Duration // snapshots of E2B's clients
	log   *slog.Logger
}

// wireMakers make the APIs of other products that a server can answer by.
var wireMakers = map[string]func(wireParts) (server.Wire, error){
	"e2b": func(p wireParts) (server.Wire, error) {
		key, err := keyIn(filepath.Join(p.state, "e2b.key"))
		if err != nil {
			return nil, err
		}
		return e2b.New(e2b.Config{Service: p.svc, Key: key, Snapshots: p.kept, Log: p.log})
	},
	"fusion": func(p wireParts) (server.Wire, error) { return fusion.New(fusion.Config{Service: p.svc}) },
	"swerex": func(p wireParts) (server.Wire, error) { return swerex.New(swerex.Config{Service: p.svc}) },
}

// wires makes those that were asked for, and has those work that have work of their
// own, until stop has returned. Errors: Invalid.
func wires(ctx context.Context, names []string, parts wireParts) (made []server.Wire, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	stop = func() { cancel(); working.Wait() }
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		wire, ok := wireMakers[name]
		if !ok {
			stop()
			known := slices.Sorted(maps.Keys(wireMakers))
			return nil, nil, sandbox.Errorf(sandbox.Invalid, "no wire is called %q", name).WithHint("--wire takes one of %s, and may be given for each", strings.Join(known, ", "))
		}
		w, err := wire(parts)
		if err != nil {
			stop()
			return nil, nil, err
		}
		if worker, ok := w.(interface{ Run(ctx context.Context) }); ok {
			working.Go(func() { worker.Run(ctx) })
		}
		made = append(made, w)
	}
	return made, stop, nil
}

// keyIn reads a secret key, or makes one where there is none.
func keyIn(file string) ([]byte, error) {
	key, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // crypto/rand.Read never fails: it ends the process instead
		err = os.WriteFile(file, key, 0o600)
	}
	if err == nil && len(key) != 32 {
		err = errors.New("it is not 32 bytes long")
	}
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "the key %s: %w", file, err).WithHint("remove the file: the next server makes another, and who has a sandbox connects again")
	}
	return key, nil
}

// letIn says who asks: as a wire has it whose request it is, else as all are let in.
func letIn(made []server.Wire, all func(*http.Request) (sandbox.Caller, error)) func(*http.Request) (sandbox.Caller, error) {
	return func(r *http.Request) (sandbox.Caller, error) {
		for _, w := range made {
			if own, ok := w.(interface {
				Caller(r *http.Request) (who sandbox.Caller, knows bool, err error)
			}); ok {
				if who, knows, err := own.Caller(r); knows {
					return who, err
				}
			}
		}
		return all(r)
	}
}
