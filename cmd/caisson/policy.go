package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/caisson-dev/caisson/cli/policycmd"
	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
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

// policy is the policy for the commands that judge without running. What its
// rules were made into is kept for the next of them, where there is a state
// folder to keep it in.
func (a *app) policy(ctx context.Context) (policycmd.Policy, error) {
	if state, err := a.stateDir(); err == nil {
		programs, err := a.builds()
		if err != nil {
			return nil, err
		}
		a.rules.keep(programs, state)
	}
	p, err := a.rules.load(ctx, a)
	if err != nil {
		return nil, err
	}
	return judge{p}, nil
}

// userRules are the folders below CAISSON_POLICY_RULES, each a bundle of rules
// of its own.
func (a *app) userRules() (map[string]fs.FS, error) {
	dir := a.getenv("CAISSON_POLICY_RULES")
	if dir == "" {
		return nil, nil
	}
	if err := isFolder("CAISSON_POLICY_RULES", dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "CAISSON_POLICY_RULES: %w", err).WithHint("check the folder's permissions")
	}
	bundles := map[string]fs.FS{}
	for _, e := range entries {
		if e.IsDir() {
			bundles[e.Name()] = os.DirFS(filepath.Join(dir, e.Name()))
		}
	}
	return bundles, nil
}

func isFolder(variable, dir string) error {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return sandbox.Errorf(sandbox.Invalid, "%s: %s is not a folder", variable, dir).WithHint("set it to a folder, or unset it")
	}
	return nil
}

// overlay is the shipped rules with an operator's data in place of ours, file
// by file: hosts.yaml in the folder stands for data/hosts.yaml.
type overlay struct{ base, data fs.FS }

// Open opens the operator's file where there is one.
func (o overlay) Open(name string) (fs.File, error) {
	if path.Dir(name) == "data" {
		f, err := o.data.Open(path.Base(name))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return o.base.Open(name)
}
