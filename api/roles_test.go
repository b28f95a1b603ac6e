package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// TestRoles holds what a caller has to take to a few methods: a role has one to
// five, and Service none of its own.
func TestRoles(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]bool{}
	var sum *ast.InterfaceType
	take := func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		face, ok := spec.Type.(*ast.InterfaceType)
		switch {
		case !ok || spec.Name.Name == "Files": // what a role opens
		case spec.Name.Name == "Service":
			sum = face
		default:
			methods := 0
			for _, f := range face.Methods.List {
				methods += len(f.Names)
			}
			roles[spec.Name.Name] = methods > 0
			if methods > 5 {
				t.Errorf("%s has %d methods: part it", spec.Name.Name, methods)
			}
		}
		return true
	}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, take)
	}
	for _, f := range sum.Methods.List {
		role, ok := f.Type.(*ast.Ident)
		if !ok || !roles[role.Name] {
			t.Errorf("Service has %v of its own", f.Names)
			continue
		}
		delete(roles, role.Name)
	}
	for role, own := range roles {
		if own {
			t.Errorf("%s is not of Service", role)
		}
	}
}
