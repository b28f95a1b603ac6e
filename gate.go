package caisson

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"

	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/approval"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/sdk/python"
	"github.com/caisson-dev/caisson/service/gate"
	"github.com/caisson-dev/caisson/store/sqlite"
	"github.com/caisson-dev/caisson/testloop"
)

// desk makes the desk that settles what the gate asks; posted is told of letters.
func (c *Caisson) desk(journal *sqlite.Store, posted func()) (*approval.Desk, error) {
	cfg := approval.Config{Store: journal, Posted: posted, Actor: actor(), Log: c.cfg.Log}
	var err error
	if v := c.getenv("CAISSON_APPROVE_TIMEOUT"); v != "" {
		if cfg.Patience, err = sandbox.ParseDuration(v); err != nil || cfg.Patience <= 0 {
			return nil, sandbox.Errorf(sandbox.Invalid, "CAISSON_APPROVE_TIMEOUT %q is not a time", v).WithHint("set it to a time such as 5m")
		}
	}
	command, hook := c.getenv("CAISSON_APPROVER"), c.getenv(approveWebhook)
	switch {
	case command != "" && hook != "":
		return nil, sandbox.Errorf(sandbox.Invalid, "both CAISSON_APPROVER and CAISSON_APPROVE_WEBHOOK are set").WithHint("unset one of them")
	case command != "":
		if cfg.Approver, err = approval.Command(approval.CommandConfig{Line: command}); err != nil {
			return nil, err
		}
	case hook != "":
		cfg.Letters = toApprovals
	}
	return approval.New(cfg)
}

// gate makes what judges every run.
func (c *Caisson) gate(desk *approval.Desk, state string) (*gate.Gate, error) {
	unknown := cmp.Or(sandbox.Verdict(c.cfg.Getenv("CAISSON_UNKNOWN_LANGUAGE")), c.cfg.File.UnknownLanguage)
	return gate.New(gate.Config{
		Policy: c.texts(state), Plans: c.plans(state), Desk: desk, Actor: actor(), UnknownLanguage: unknown, Own: slices.Concat(testloop.Own(), functions.Own()),
		Shipped: []string{python.Inside, python.Values},
		Plain:   c.plainPrograms(state),
	})
}

// texts is the policy that judges what runs. What another process has decided
// by the same rules needs none of them loaded.
func (c *Caisson) texts(state string) func(context.Context) (gate.Policy, error) {
	return func(context.Context) (gate.Policy, error) {
		cfg, err := c.keptConfig(state)
		if err != nil {
			return nil, err
		}
		d, err := policy.Defer(cfg, func(ctx context.Context) (*policy.Policy, error) { return c.rules.load(ctx, c) })
		if err != nil {
			return nil, err
		}
		return d, nil
	}
}

// keptConfig is what the rules are made of, where what was made of them is kept.
func (c *Caisson) keptConfig(state string) (policy.Config, error) {
	cfg, _, err := c.policyConfig()
	if err != nil {
		return cfg, err
	}
	if cfg.Programs, err = c.builds(); err != nil {
		return cfg, err
	}
	cfg.Keeper = c.rules.keep(cfg.Programs, state)
	return cfg, nil
}

// builds names the files of caisson and its scanner, as they are now.
func (c *Caisson) builds() (string, error) {
	scan, err := c.helper("caisson-scan", "CAISSON_SCAN")
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	names := Version()
	for _, name := range []string{self, scan} {
		st, err := os.Stat(name)
		if err != nil {
			return "", fmt.Errorf("look at %s: %w", name, err)
		}
		names += fmt.Sprintf(" %q %d %d", name, st.Size(), st.ModTime().UnixNano())
	}
	return names, nil
}

// plans is the part of the policy that judges sandboxes. Where there are rules
// or settings of others, which may speak of more, it is all of the policy if
// that part does not load with them.
func (c *Caisson) plans(state string) func(context.Context) (gate.Policy, error) {
	return func(ctx context.Context) (gate.Policy, error) {
		cfg, err := c.keptConfig(state)
		if err != nil {
			return nil, err
		}
		cfg.Rules = policies.Plans
		if cfg.Data == nil && len(cfg.User) == 0 {
			d, err := policy.Defer(cfg, func(ctx context.Context) (*policy.Policy, error) { return policy.Load(ctx, cfg) })
			if err != nil {
				return nil, err
			}
			return d, nil
		}
		if p, err := policy.Load(ctx, cfg); err == nil {
			return p, nil
		}
		return asPolicy(c.rules.load(ctx, c))
	}
}

// asPolicy keeps a nil policy from becoming one that is not.
func asPolicy(p *policy.Policy, err error) (gate.Policy, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// judgeBuild judges a Dockerfile before anything is built from it.
func (c *Caisson) judgeBuild(desk *approval.Desk) func(ctx context.Context, b images.Build) error {
	return func(ctx context.Context, b images.Build) error {
		p, err := c.rules.load(ctx, c)
		if err != nil {
			return err
		}
		d := p.JudgeDockerfile(ctx, b.Dockerfile, "Dockerfile")
		if d.Verdict == sandbox.Ask {
			sum := sha256.Sum256(b.Dockerfile)
			text := hex.EncodeToString(sum[:])
			digest := sha256.Sum256([]byte("caisson build 1\x00" + text + "\x00" + b.From + "\x00" + b.Ref + "\x00" + d.PolicyRevision))
			d.Approval, d.Refused, err = desk.Settle(ctx, sandbox.Approval{
				Digest: hex.EncodeToString(digest[:]), Actor: actor(), Decision: d,
				Question: sandbox.ApprovalQuestion{
					Kind: "build", Language: b.Language, Image: b.Ref, Command: []string{"build", b.Ref}, Policy: d.PolicyRevision,
					Texts: []sandbox.ApprovalText{{Name: "Dockerfile", Language: policy.Dockerfile, SHA256: text, Size: len(b.Dockerfile), Text: string(b.Dockerfile)}},
				},
			}, sandbox.ApproveMode(c.getenv("CAISSON_APPROVE")), nil)
			if err != nil {
				return err
			}
		}
		if !d.Permits() {
			return &sandbox.DeniedError{Decision: d}
		}
		return nil
	}
}

// check judges a text for those who only want to know, for the default sandbox.
func (c *Caisson) check(ctx context.Context, language string, code []byte, file string) (sandbox.Decision, error) {
	p, err := c.rules.load(ctx, c)
	if err != nil {
		return sandbox.Decision{}, err
	}
	return p.Contain(ctx, p.Judge(ctx, policy.Request{Language: language, Code: code, File: file}), sandbox.Walls), nil
}
