package caisson

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/scanner"
	"github.com/caisson-dev/caisson/policy/tables"
)

// rules is the policy of this process: loaded once, by whoever needs it first,
// and closed with the process.
type rules struct {
	mu     sync.Mutex
	loaded bool
	closed bool
	policy *policy.Policy
	err    error
	pool   *scanner.Starting

	programs string
	kept     *policy.Folder // nil keeps no decisions
}

// keep has decisions, and what they are made with, kept in a folder of the
// state; programs are the builds they are of. It gives the same folder each time.
func (r *rules) keep(programs, state string) *policy.Folder {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.programs, r.kept = programs, policy.NewFolder(filepath.Join(state, "decisions"))
	}
	return r.kept
}

// load reads the rules while the first scanner starts. A scanner that is not
// there, or does not start, is an error: nothing is ever judged without one.
func (r *rules) load(ctx context.Context, c *Caisson) (*policy.Policy, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("the policy is closed")
	}
	if !r.loaded {
		r.loaded = true
		r.policy, r.err = r.open(ctx, c)
	}
	return r.policy, r.err
}

func (r *rules) open(ctx context.Context, c *Caisson) (*policy.Policy, error) {
	scan, err := c.helper("caisson-scan", "CAISSON_SCAN")
	if err != nil {
		return nil, err
	}
	cfg, from, err := c.policyConfig()
	if err != nil {
		return nil, err
	}
	cfg.Programs = r.programs
	if r.kept != nil {
		cfg.Keeper = r.kept
	}
	kept := cfg
	r.pool = scanner.Start(ctx, func() (scanner.Config, error) {
		t, err := policy.EncodedTables(kept, func() (*facts.Tables, error) { return tables.Load(from) })
		return scanner.Config{Path: scan, Encoded: t}, err
	})
	cfg.Scanner = r.pool
	p, err := policy.Load(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := r.pool.Ready(ctx); err != nil {
		return nil, fmt.Errorf("start the scanner %s: %w", filepath.Base(scan), err)
	}
	return p, nil
}

// close ends the scanners. It is idempotent.
func (r *rules) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.kept != nil {
		_ = r.kept.Close() // it never fails
	}
	if r.pool == nil {
		return nil
	}
	return r.pool.Close()
}

// Policy is the policy for who judges without running. What its rules were made
// into is kept for the next process, where there is a state folder to keep it in.
// Errors: Invalid for rules that do not load, Unavailable where no scanner is.
func (c *Caisson) Policy(ctx context.Context) (*policy.Policy, error) {
	if state, err := c.stateDir(); err == nil {
		programs, err := c.builds()
		if err != nil {
			return nil, err
		}
		c.rules.keep(programs, state)
	}
	return c.rules.load(ctx, c)
}

// policyConfig is what the rules are made of; from has the scanner's tables.
func (c *Caisson) policyConfig() (cfg policy.Config, from fs.FS, err error) {
	cfg, from = policy.Config{Rules: policies.FS, Lazy: true}, policies.FS
	if dir := c.getenv("CAISSON_POLICY_DATA"); dir != "" {
		if err := isFolder("CAISSON_POLICY_DATA", dir); err != nil {
			return cfg, nil, err
		}
		cfg.Data, cfg.Lazy = os.DirFS(dir), false // all of it is checked
		from = overlay{policies.FS, cfg.Data}
	}
	cfg.User, err = c.userRules()
	return cfg, from, err
}
