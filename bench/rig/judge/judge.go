//go:build linux

// Package judge has the gate of the benchmark programs: caisson's own, which
// can be switched off.
package judge

import (
	"context"
	"path/filepath"
	"sync/atomic"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/approval"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/scanner"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/service/gate"
	"github.com/caisson-dev/caisson/testloop"
)

// Lazy is a gate as caisson makes it: it loads what it needs of its rules while
// the sandbox is made, and keeps decisions and rules in the state folder dir.
// scan is the path of caisson-scan. What has to be closed goes to later.
func Lazy(dir, scan string, store approval.Store, later func(func() error)) (*gate.Gate, error) {
	desk, err := approval.New(approval.Config{Store: store, Actor: "bench"})
	if err != nil {
		return nil, err
	}
	folder := policy.NewFolder(filepath.Join(dir, "decisions"))
	later(folder.Close)
	cfg := policy.Config{Rules: policies.FS, Lazy: true, Keeper: folder, Programs: "bench"}
	plans := cfg
	plans.Rules = policies.Plans
	all := func(ctx context.Context) (*policy.Policy, error) {
		pool := scanner.Start(ctx, func() (scanner.Config, error) {
			t, err := policy.EncodedTables(cfg, func() (*facts.Tables, error) { return tables.Load(policies.FS) })
			return scanner.Config{Path: scan, Encoded: t}, err
		})
		later(pool.Close)
		c := cfg
		c.Scanner = pool
		p, err := policy.Load(ctx, c)
		if err == nil {
			_, err = pool.Ready(ctx)
		}
		return p, err
	}
	return gate.New(gate.Config{
		Policy: func(context.Context) (gate.Policy, error) { return policy.Defer(cfg, all) },
		Plans: func(context.Context) (gate.Policy, error) {
			return policy.Defer(plans, func(ctx context.Context) (*policy.Policy, error) { return policy.Load(ctx, plans) })
		},
		Desk: desk, Actor: "bench", Own: testloop.Own(),
	})
}

// Switch is a gate that judges as g does while it is on, and nothing while it
// is off, as at first. It is safe for concurrent use.
type Switch struct {
	on atomic.Bool
	g  *gate.Gate
}

// NewSwitch makes one.
func NewSwitch(g *gate.Gate) *Switch { return &Switch{g: g} }

// Set turns it on or off, for the questions that come after.
func (s *Switch) Set(on bool) { s.on.Store(on) }

// Judge is a [manager.Gate].
func (s *Switch) Judge(ctx context.Context, q manager.Question) (manager.Answer, error) {
	if s.on.Load() {
		return s.g.Judge(ctx, q)
	}
	return manager.Unjudged(ctx, q)
}
