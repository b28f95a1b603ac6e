package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestTree holds this very tree to the rules.
func TestTree(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("no module at %s: %v", root, err)
	}
	tree := os.DirFS(root)
	found, err := Check(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
	table, err := readTable(tree)
	if err != nil {
		t.Fatal(err)
	}
	for folder := range table {
		if d, err := os.Stat(filepath.Join(root, folder)); err != nil || !d.IsDir() {
			t.Errorf("%s has a row for %s, which is not there", Docs, folder)
		}
	}
}

// page is the very page that the table stands on, with something replaced.
func page(t *testing.T, old, with string) *fstest.MapFile {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash("../" + Docs))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), old) {
		t.Fatalf("%s does not say %q", Docs, old)
	}
	return &fstest.MapFile{Data: []byte(strings.Replace(string(b), old, with, 1))}
}

// clean is a file without a fault, which the planted ones stand beside.
const clean = "// Package p is.\npackage p\n"

func TestFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	imports := func(path string) string { return "// Package p is.\npackage p\n\nimport _ \"" + path + "\"\n" }
	docs := page(t, "", "")
	ours := func(pkg string) string { return imports(Module + "/" + pkg) }
	for _, tt := range []struct {
		name, file, src string
		want            string // part of the one violation; "" is none
	}{
		{"clean", "sandbox/a.go", clean, ""},
		{"unknown package", "util/a.go", clean, "not in the table"},
		{"the door knows all", "door.go", ours("store/sqlite"), ""},
		{"the manager knows the door", "manager/a.go", imports(Module), "manager may not import"},
		{"nested module", "tools/x/go.mod", "module x\n", ""},
		{"vocabulary imports ours", "sandbox/a.go", ours("manager"), "sandbox may not import manager"},
		{"vocabulary imports theirs", "sandbox/a.go", imports("golang.org/x/sys/unix"), "standard library alone"},
		{"vocabulary imports std", "sandbox/a.go", imports("encoding/json"), ""},
		{"its test may", "sandbox/a_test.go", imports("github.com/google/go-cmp/cmp"), ""},
		{"wire imports vocabulary", "agent/wire/a.go", ours("sandbox"), "may not import sandbox"},
		{"manager knows an adapter", "manager/a.go", ours("runtimes/docker"), "may not import runtimes/docker"},
		{"manager's test may", "manager/a_test.go", ours("runtimes/docker"), ""},
		{"siblings", "bridge/sink/a.go", ours("bridge/transfer"), "may not import bridge/transfer"},
		{"an adapter's own", "runtimes/docker/a.go", ours("runtimes/docker/inner"), ""},
		{"a face knows the manager", "cli/a.go", ours("manager"), "may not import manager"},
		{"service knows an adapter", "service/a.go", ours("store/sqlite"), "may not import store/sqlite"},
		{"cmd knows all", "cmd/caisson/a.go", ours("store/sqlite"), ""},
		{"cmd and a test helper", "cmd/caisson/a.go", ours("runtimes/runtimetest"), "for tests alone"},
		{"extractor elsewhere", "cmd/caisson/a.go", ours("policy/facts/python"), "for cmd/caisson-scan alone"},
		{"extractor in a test", "policy/a_test.go", ours("policy/facts/python"), "for cmd/caisson-scan alone"},
		{"extractor at home", "cmd/caisson-scan/a.go", ours("policy/facts/python"), ""},
		{"rules know the scanner", "policy/a.go", ours("policy/scanner"), "policy may not import policy/scanner"},
		{"facts know an extractor", "policy/facts/a.go", ours("policy/facts/shell"), "for cmd/caisson-scan alone"},
		{"extractors are siblings", "policy/facts/python/a.go", ours("policy/facts/shell"), "may not import policy/facts/shell"},
		{"tables know the scanner", "policy/tables/a.go", ours("policy/scanner"), "may not import policy/scanner"},
		{"contract knows its store", "store/a.go", ours("store/sqlite"), "may not import store/sqlite"},
		{"command of policy knows it", "cli/policycmd/a.go", ours("policy"), "may not import policy"},
		{"OPA beside the rules", "policy/tables/a.go", imports("github.com/open-policy-agent/opa/v1/rego"), "may be imported in policy only"},
		{"SQL", "manager/a.go", imports("database/sql"), "may be imported in store, bench only"},
		{"sqlite", "store/a.go", imports("modernc.org/sqlite"), "may be imported in store/sqlite only"},
		{"tree-sitter", "policy/a.go", imports("github.com/tree-sitter/go-tree-sitter"), "may be imported in policy/facts/python"},
		{"shell's parser", "policy/facts/a.go", imports("mvdan.cc/sh/v3/syntax"), "may be imported in policy/facts/shell only"},
		{"docker SDK", "manager/a.go", imports("github.com/docker/docker/client"), "may be imported in"},
		{"docker SDK in a test", "manager/a_test.go", imports("github.com/docker/docker/client"), ""},
		{"OPA", "service/a.go", imports("github.com/open-policy-agent/opa/v1/rego"), "may be imported in policy only"},
		{"OPA in a test", "service/a_test.go", imports("github.com/open-policy-agent/opa/v1/rego"), "may be imported in policy only"},
		{"OPA in what the scanner links", "policy/scanner/a.go", imports("github.com/open-policy-agent/opa/v1/rego"), "may be imported in policy only"},
		{"OPA at home", "policy/a.go", imports("github.com/open-policy-agent/opa/v1/rego"), ""},
		{"yamux", "manager/a.go", imports("github.com/hashicorp/yamux"), "may be imported in agent, runtimes/runtimetest only"},
		{"cobra", "service/a.go", imports("github.com/spf13/cobra"), "may be imported in cli, cmd only"},
		{"testcontainers", "images/a.go", imports("github.com/testcontainers/testcontainers-go"), "for tests alone"},
		{"cgo", "manager/a.go", imports("C"), "may be imported in policy/facts"},
		{"cgo at home", "policy/facts/python/a.go", imports("C"), ""},
		{"no package comment", "images/a.go", "package p\n", "the package has no comment"},
		{"a main's too", "cmd/caisson/a.go", "package main\n", "the package has no comment"},
		{"long file", "images/a.go", clean + strings.Repeat("\n", MaxFile), "lines, at most"},
		{"long function", "images/a.go", clean + "func f() {" + strings.Repeat("\n", MaxFunc) + "}\n", "f has 81 lines"},
		{"long function in a test", "images/a_test.go", clean + "func f() {" + strings.Repeat("\n", MaxFunc) + "}\n", ""},
		{"a gate that judges nothing", "cmd/caisson/a.go", clean + "var gate = manager.Unjudged\n", "for tests and benchmarks alone"},
		{"the same in a benchmark", "bench/a.go", clean + "var gate = manager.Unjudged\n", ""},
		{"the same in a test", "cmd/caisson/a_test.go", clean + "var gate = manager.Unjudged\n", ""},
		{"func", "images/a.go", clean + "func F() {}\n", "F is exported"},
		{"method", "images/a.go", clean + "// T is.\ntype T[E any] struct{}\n\nfunc (t *T[E]) M() {}\n", "M is exported"},
		{"method of a hidden type", "images/a.go", clean + "type t struct{}\n\nfunc (t) M() {}\n", ""},
		{"type", "images/a.go", clean + "type T struct{}\n", "T is exported"},
		{"type in a group", "images/a.go", clean + "// These are.\ntype (\n\tT struct{}\n)\n", "T is exported"},
		{"const", "images/a.go", clean + "const (\n\tA = 1\n)\n", "A is exported"},
		{"const in a group", "images/a.go", clean + "// These are.\nconst (\n\tA = 1\n)\n", ""},
		{"const with a line's", "images/a.go", clean + "const (\n\tA = 1 // is\n)\n", ""},
		{"var", "images/a.go", clean + "var A = 1\n", "A is exported"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found, err := Check(fstest.MapFS{Docs: docs, tt.file: {Data: []byte(tt.src)}, "policies/ok.go": {Data: []byte(clean)}})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tt.want == "" && len(found) > 0:
				t.Errorf("found %v in a clean tree", found)
			case tt.want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), tt.want)):
				t.Errorf("found %v, want %q", found, tt.want)
			}
		})
	}
}

func TestLeavesOutWhatIsNotTheModule(t *testing.T) {
	t.Parallel()
	bad := &fstest.MapFile{Data: []byte("package x\n")}
	found, err := Check(fstest.MapFS{
		Docs: page(t, "", ""), "other/go.mod": {Data: []byte("module other\n")}, "other/a.go": bad,
		"sandbox/testdata/a.go": bad, ".cache/a.go": bad, "_old/a.go": bad,
	})
	if err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestAFileThatDoesNotParseIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := Check(fstest.MapFS{Docs: page(t, "", ""), "sandbox/a.go": {Data: []byte("package (")}}); err == nil {
		t.Error("no error")
	}
}

// What the page says is what is held: the same import is a fault, and none, and
// without its row a package is one.
func TestReadsThePage(t *testing.T) {
	t.Parallel()
	src := "// Package p is.\npackage p\n\nimport _ \"" + Module + "/bridge\"\n"
	row := "| `store/sqlite` | the same in SQLite, and the ledgers of workspaces, which are the bridge's | `sandbox`, `store`, `bridge` |\n"
	above := "| `store` | what is remembered, as a contract: sessions, execs, the audit's chain | `sandbox` |\n"
	for _, tt := range []struct {
		name, old, with string
		want            string // part of the one violation, or of the error; "" is none
	}{
		{"as it is", "", "", ""},
		{"an import that is not listed", "`sandbox`, `store`, `bridge` |", "`sandbox`, `store` |", "store/sqlite may not import bridge"},
		{"no row, but one of the folder above", row, "", "store/sqlite may not import bridge"},
		{"no row", above + row, "", "package store/sqlite is not in the table of docs/architecture.md"},
		{"two rows", row, row + row, "is not one folder, with no other row"},
		{"prose among the packages", "`sandbox`, `store`, `bridge` |", "`sandbox`, `store`; also `bridge` |", "is not a list of packages"},
		{"nothing among the packages", "`sandbox`, `store`, `bridge` |", " |", "is not a list of packages"},
		{"two folders in a row", "| `store/sqlite` |", "| `store/sqlite`, `store/other` |", "is not one folder"},
		{"a cell too many", "| `store/sqlite` |", "| `store/sqlite` | more |", "cells"},
		{"no table", header, "", "has no table"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found, err := Check(fstest.MapFS{Docs: page(t, tt.old, tt.with), "store/sqlite/a.go": {Data: []byte(src)}})
			switch {
			case tt.want == "" && (err != nil || len(found) > 0):
				t.Errorf("found %v, %v", found, err)
			case tt.want != "" && err == nil && (len(found) == 0 || !strings.Contains(found[0].String(), tt.want)), err != nil && !strings.Contains(err.Error(), tt.want):
				t.Errorf("found %v, %v; want %q", found, err, tt.want)
			}
		})
	}
	if _, err := Check(fstest.MapFS{"sandbox/a.go": {Data: []byte(clean)}}); err == nil {
		t.Error("a tree without the page is held to nothing")
	}
}
