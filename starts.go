package caisson

import (
	"cmp"
	"context"
	"errors"

	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/sandbox"
)

// Outlast waits until nothing runs any more in the background whose starts this process
// sees, or ctx is done.
func (c *Caisson) Outlast(ctx context.Context) {
	c.mu.Lock()
	svc := c.opened
	c.mu.Unlock()
	if svc != nil {
		svc.Outlast(ctx)
	}
}

// JudgeOn has this process judge what an exec in the background starts, as soon as who
// does so goes, until it ends: [Caisson.Outlast] waits for that. One that has ended, or
// whose starts are not seen, needs nobody.
func (c *Caisson) JudgeOn(ctx context.Context, session string, id sandbox.ID) error {
	if _, err := c.Open(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	svc := c.opened
	c.mu.Unlock()
	if err := svc.JudgeOn(ctx, session, id); !errors.Is(err, sandbox.NotFound) {
		return err
	}
	return nil
}

// Starts is what the settings say of what execs start while they run. Errors: Invalid.
func (c *Caisson) Starts() (sandbox.StartsRule, error) {
	rule := sandbox.StartsRule{Mode: sandbox.StartsMode(cmp.Or(c.getenv("CAISSON_STARTS"), string(sandbox.StartsJudge))), Required: c.getenv("CAISSON_STARTS_REQUIRED") != ""}
	switch on := c.getenv("CAISSON_ON_DENIED_START"); on {
	case "", "end":
	case "fail":
		rule.Goes = true
	default:
		return rule, sandbox.Errorf(sandbox.Invalid, "CAISSON_ON_DENIED_START is %q", on).WithHint("make it end, which ends the exec, or fail")
	}
	if err := rule.Check(); err != nil {
		return rule, sandbox.Errorf(sandbox.Invalid, "CAISSON_STARTS: %w", err).WithHint("make it judge, tell or off")
	}
	return rule, nil
}

// plainPrograms tells which programs the rules' tables know nothing of. Where there
// are rules or data of others, these may speak of any.
func (c *Caisson) plainPrograms(state string) func(context.Context) (func(string) bool, error) {
	return func(context.Context) (func(string) bool, error) {
		cfg, err := c.keptConfig(state)
		if err != nil {
			return nil, err
		}
		if cfg.Data != nil || len(cfg.User) > 0 {
			return func(string) bool { return false }, nil
		}
		_, from, err := c.policyConfig()
		if err != nil {
			return nil, err
		}
		b, err := policy.EncodedTables(cfg, func() (*facts.Tables, error) { return tables.Load(from) })
		if err != nil {
			return nil, err
		}
		var t facts.Tables
		if err := t.UnmarshalBinary(b); err != nil {
			return nil, err
		}
		return func(name string) bool { return policy.Plain(&t, name) }, nil
	}
}
