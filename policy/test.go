package policy

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"

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

// Test runs the Rego tests of a folder of rules (a user's, or the shipped
// ones) together with the shipped rules and data, under the capabilities that
// rules have. Its error is [sandbox.Invalid] where the folder does not load.
func (p *Policy) Test(ctx context.Context, dir string) (passed int, failures []string, err error) {
	return RunTests(ctx, p.c.Rules, os.DirFS(dir))
}

// RunTests runs the Rego tests of a folder of rules beside the shipped ones.
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
	tests := 0
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
		if _, ok := modules["rules/"+name]; !ok {
			modules["rules/"+name] = m
		}
		tests++
		return nil
	})
	if err != nil {
		return 0, nil, sandbox.Errorf(sandbox.Invalid, "read rules: %w", err)
	}
	if tests == 0 {
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
