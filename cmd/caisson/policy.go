package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/caisson-dev/caisson/cli/policycmd"
	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/scanner"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/sandbox"
)

// judge is the policy of this process, as its commands ask it.
type judge struct{ *policy.Policy }

// Check judges one text.
func (j judge) Check(ctx context.Context, language string, code []byte, file string) sandbox.Decision {
	return j.Judge(ctx, policy.Request{Language: language, Code: code, File: file})
}

// Test runs the tests of a folder of rules.
func (j judge) Test(ctx context.Context, dir string) (int, []string, error) {
	return policy.RunTests(ctx, policies.FS, os.DirFS(dir))
}

// policy loads the rules while the first scanner starts.
func (a *app) policy(ctx context.Context) (policycmd.Policy, error) {
	path, err := a.helper("caisson-scan", "CAISSON_SCAN")
	if err != nil {
		return nil, err
	}
	pool := scanner.Start(ctx, func() (scanner.Config, error) {
		t, err := tables.Load(policies.FS)
		return scanner.Config{Path: path, Tables: t}, err
	})
	a.closers = append(a.closers, pool.Close)
	p, err := policy.Load(ctx, policy.Config{Rules: policies.FS, Scanner: pool})
	if err != nil {
		return nil, err
	}
	if _, err := pool.Ready(ctx); err != nil {
		return nil, errors.Join(sandbox.Errorf(sandbox.Unavailable, "start the scanner %s", filepath.Base(path)), err)
	}
	return judge{p}, nil
}
