package policy

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/caisson-dev/caisson/sandbox"
)

// Check judges one text; it is [Policy.Judge] with plain arguments.
func (p *Policy) Check(ctx context.Context, language string, code []byte, file string) sandbox.Decision {
	return p.Judge(ctx, Request{Language: language, Code: code, File: file})
}

// Test runs the Rego tests of a folder of rules, and the examples in the
// annotations of its rules: of a user's bundle, of a folder of bundles, or of the
// shipped rules themselves. Examples are judged by this policy's scanner. Its
// error is [sandbox.Invalid] where the folder does not load.
func (p *Policy) Test(ctx context.Context, dir string) (passed int, failures []string, err error) {
	folder := os.DirFS(dir)
	passed, failures, err = RunTests(ctx, p.c.Rules, folder)
	if err != nil {
		return 0, nil, err
	}
	c := Config{Rules: p.c.Rules, Data: p.c.Data, Scanner: p.c.Scanner, Timeout: p.c.Timeout, ScanTimeout: p.c.ScanTimeout}
	if c.User, err = bundlesIn(folder); err != nil {
		return 0, nil, err
	}
	if len(c.User) == 0 {
		c.Rules, c.Data = folder, nil
		if _, err := fs.Stat(folder, "main/main.rego"); err != nil {
			return passed, failures, nil // it is a part of the shipped ones
		}
	}
	tried, err := Load(ctx, c)
	if err != nil {
		return 0, nil, err
	}
	for _, r := range tried.Rules() {
		if len(c.User) == 0 || strings.HasPrefix(r.ID, userPrefix) {
			right, wrong := tried.Examples(ctx, r)
			passed, failures = passed+right, append(failures, wrong...)
		}
	}
	return passed, failures, nil
}

// Examples judges the examples of a rule, and says how many it is right about
// and what it is wrong about.
func (p *Policy) Examples(ctx context.Context, r Rule) (passed int, failures []string) {
	try := func(e Example, want bool, wrong string) {
		d := p.Judge(ctx, Request{Language: e.Language, Code: []byte(e.Code)})
		if slices.ContainsFunc(d.Findings, func(f sandbox.Finding) bool { return f.ID == r.ID }) == want {
			passed++
			return
		}
		var ids []string
		for _, f := range d.Findings {
			ids = append(ids, f.ID)
		}
		failures = append(failures, fmt.Sprintf("%s:%d: %s %s %s %q: found %v", r.File, r.Line, r.ID, wrong, e.Language, e.Code, ids))
	}
	for _, e := range r.Match {
		try(e, true, "does not match its example")
	}
	for _, e := range r.NotMatch {
		try(e, false, "matches what it should not:")
	}
	return passed, failures
}

// bundlesIn are the users' bundles of a folder that is one, or has a folder for
// each.
func bundlesIn(folder fs.FS) (map[string]fs.FS, error) {
	list, err := sources(folder, "", nil)
	if err != nil {
		return nil, err
	}
	bundles := map[string]fs.FS{}
	for _, f := range list {
		m, err := ast.ParseModuleWithOpts(f.name, f.text, ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "read rules: %w", err)
		}
		name := bundleOf(m)
		switch top, _, below := strings.Cut(f.name, "/"); {
		case name == "":
		case !below || top != name:
			bundles[name] = folder
		case bundles[name] == nil:
			if bundles[name], err = fs.Sub(folder, top); err != nil {
				return nil, sandbox.Errorf(sandbox.Invalid, "read rules: %w", err)
			}
		}
	}
	return bundles, nil
}

// RunTests runs the Rego tests of a folder of rules beside the shipped ones,
// under the capabilities that rules have. A folder of the shipped rules stands
// for them, file by file.
func RunTests(ctx context.Context, shipped, folder fs.FS) (passed int, failures []string, err error) {
	caps := capabilities()
	data := map[string]any{}
	if err := readData(Config{Rules: shipped}, data, nil); err != nil {
		return 0, nil, err
	}
	files, err := sources(shipped, "", nil)
	if err != nil {
		return 0, nil, err
	}
	modules, err := parse(files, caps, true)
	if err != nil {
		return 0, nil, err
	}
	none := true
	err = fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".rego" {
			return err
		}
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		m, err := ast.ParseModuleWithOpts(name, string(text), ast.ParserOptions{ProcessAnnotation: true, Capabilities: caps, RegoVersion: ast.RegoV1})
		if err != nil {
			return err
		}
		none = false
		key := "tested/" + name
		if same := modules["rules/"+name]; same != nil && same.Package.Equal(m.Package) {
			key = "rules/" + name
		}
		modules[key] = m
		return nil
	})
	if err != nil {
		return 0, nil, sandbox.Errorf(sandbox.Invalid, "read rules: %w", err)
	}
	if none {
		return 0, nil, sandbox.Errorf(sandbox.Invalid, "no .rego files")
	}
	return runTests(ctx, modules, caps, data)
}

func runTests(ctx context.Context, modules map[string]*ast.Module, caps *ast.Capabilities, data map[string]any) (passed int, failures []string, err error) {
	store := inmem.NewFromObject(data)
	comp := ast.NewCompiler().WithCapabilities(caps)
	txn, err := store.NewTransaction(ctx, storage.WriteParams)
	if err != nil {
		return 0, nil, sandbox.Errorf(sandbox.Internal, "run tests: %w", err)
	}
	defer store.Abort(ctx, txn)
	results, err := tester.NewRunner().SetCompiler(comp).SetStore(store).SetModules(modules).RunTests(ctx, txn)
	if err != nil {
		return 0, nil, sandbox.Errorf(sandbox.Invalid, "compile rules: %w", err)
	}
	for r := range results {
		switch {
		case r.Error != nil:
			failures = append(failures, fmt.Sprintf("%s.%s: %v", r.Package, r.Name, r.Error))
		case r.Fail:
			failures = append(failures, fmt.Sprintf("%s.%s", r.Package, r.Name))
		default:
			passed++
		}
	}
	return passed, failures, nil
}
