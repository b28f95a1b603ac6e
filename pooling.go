package caisson

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/manager/pool"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
)

// kept is the pool that this process takes from, and what keeps it.
type kept struct {
	pool  manager.Pool
	start func() error // once the manager is there
}

// manager makes a manager, with the pool that it takes from. fill begins to fill that,
// if it is this process's own.
func (c *Caisson) manager(ctx context.Context, state string, cfg manager.Config) (mgr *manager.Manager, fill func() error, err error) {
	if cfg.Tools, err = c.tools(); err != nil {
		return nil, nil, err
	}
	if cfg.Starts, err = c.Starts(); err != nil {
		return nil, nil, err
	}
	cfg.StartVariables = gate.StartVariables()
	ready, err := c.keep(ctx, state, cfg, func(ctx context.Context, k pool.Kind) (runtimes.Instance, sandbox.Image, error) {
		return mgr.Prepare(ctx, k.Runtime, k.Named, k.Spec())
	})
	if err != nil {
		return nil, nil, err
	}
	cfg.Pool = ready.pool
	mgr, err = manager.New(cfg)
	return mgr, ready.start, err
}

// keep makes the pool of the settings, where this process keeps one and no other of
// its state folder does. Else it is that of the other process. make makes a sandbox
// for it.
func (c *Caisson) keep(ctx context.Context, state string, cfg manager.Config, make func(context.Context, pool.Kind) (runtimes.Instance, sandbox.Image, error)) (kept, error) {
	path := filepath.Join(c.runtimeDir(state), "pool-"+cfg.StateID+".sock")
	k := kept{pool: &pool.Shared{Path: path}, start: func() error { return nil }}
	if len(c.cfg.File.Pool) == 0 || !c.cfg.Serve && !c.cfg.KeepPool {
		return k, nil
	}
	wants, err := c.wants(ctx, cfg)
	if err != nil {
		return k, err
	}
	unlock, ok, err := filelock.Try(filepath.Join(state, "locks", "pool"))
	if err != nil || !ok {
		return k, err
	}
	c.atEnd(func() error { unlock(); return nil })
	own, err := pool.New(pool.Config{Wants: wants, Log: c.cfg.Log, Make: make})
	if err != nil {
		return k, err
	}
	c.keepsPool = true
	return kept{own, func() error { return c.fill(own, path) }}, nil
}

// wants are the sandboxes of the settings, with their runtimes' names.
func (c *Caisson) wants(ctx context.Context, cfg manager.Config) ([]sandbox.PoolWant, error) {
	wants := slices.Clone(c.cfg.File.Pool)
	for i := range wants {
		w := &wants[i]
		lang, err := cfg.Images.Language(w.Language)
		if err == nil {
			w.Language = lang.Name
			w.Runtime, err = manager.Choose(ctx, cfg.Runtimes, cfg.Runtime, w.Runtime)
		}
		if err != nil {
			return nil, c.cfg.File.Bad(0, sandbox.Errorf(sandbox.KindOf(err), "pool: %w", err))
		}
	}
	return wants, nil
}

// fill keeps a pool filled, and shares it, until Close.
func (c *Caisson) fill(p *pool.Pool, path string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		// Who has the lock is the only one: what is there is a dead process's.
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return sandbox.Errorf(sandbox.Denied, "share the pool: %w", err).WithHint("set CAISSON_RUNTIME_DIR to a short path of your own")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ln, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		cancel()
		return sandbox.Errorf(sandbox.Denied, "share the pool: %w", err).WithHint("set CAISSON_RUNTIME_DIR to a short path of your own")
	}
	shared := make(chan error, 1)
	filled := make(chan struct{})
	go func() { shared <- p.Share(ctx, ln) }()
	go func() { defer close(filled); p.Run(ctx) }()
	c.atEnd(func() error {
		cancel()
		<-filled
		return <-shared
	})
	return nil
}

// KeepsPool reports whether this process keeps a pool: its settings have one, and no
// other process of the state folder does. It is known once caisson is open.
func (c *Caisson) KeepsPool() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keepsPool
}
