package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Limits of size, in lines. Tests are free of the second.
const (
	MaxFile = 500
	MaxFunc = 80
)

// Violation is one fault of one file.
type Violation struct {
	File string // with slashes, relative to the tree
	Line int    // 0 is the whole file
	Text string
}

// String is "file:line: text", as compilers write.
func (v Violation) String() string { return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.Text) }

// file is one parsed file.
type file struct {
	name, pkg string
	test      bool
	set       *token.FileSet
	ast       *ast.File
	table     table
	found     *[]Violation
}

func (f *file) fault(at token.Pos, format string, args ...any) {
	line := 0
	if at.IsValid() {
		line = f.set.Position(at).Line
	}
	*f.found = append(*f.found, Violation{File: f.name, Line: line, Text: fmt.Sprintf(format, args...)})
}

// Check parses every Go file of a tree and returns what is wrong, by file. It
// leaves out what the go command does too, and modules inside the module. Who may
// import whom is read from the tree's [Docs].
func Check(tree fs.FS) ([]Violation, error) {
	table, err := readTable(tree)
	if err != nil {
		return nil, err
	}
	var found []Violation
	documented := map[string]bool{}
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && skipped(tree, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parse(tree, name)
		if err != nil {
			return err
		}
		f.table, f.found = table, &found
		f.check()
		if !f.test {
			documented[f.pkg] = documented[f.pkg] || f.ast.Doc != nil
		}
		return nil
	})
	for pkg, is := range documented {
		if !is {
			found = append(found, Violation{File: pkg, Text: "the package has no comment"})
		}
	}
	slices.SortFunc(found, func(a, b Violation) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return found, err
}

// skipped reports whether a folder is none of the module's.
func skipped(tree fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(tree, dir+"/go.mod")
	return err == nil
}

func parse(tree fs.FS, name string) (*file, error) {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{name: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), set: set, ast: parsed}, nil
}

func (f *file) check() {
	folder, allowed, known := f.table.entry(f.pkg)
	if !known {
		f.fault(token.NoPos, "package %s is not in the table of %s", f.pkg, Docs)
	}
	for _, spec := range f.ast.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has taken it: it is a string
		}
		switch ours, is := strings.CutPrefix(target, Module+"/"); {
		case is:
			f.checkOurs(spec, folder, allowed, ours)
		case target == Module:
			f.checkOurs(spec, folder, allowed, ".")
		default:
			f.checkTheirs(spec, target)
		}
	}
	f.checkSize()
	if !f.test {
		f.checkGate()
		f.checkDocs()
	}
}

// checkOurs judges the import of a package of ours. Tests are free, but of the
// extractors.
func (f *file) checkOurs(spec *ast.ImportSpec, folder string, allowed []string, target string) {
	if strings.HasPrefix(target, extractors) && !below(f.pkg, extractorHome) && !strings.HasPrefix(f.pkg, extractors) {
		f.fault(spec.Pos(), "%s is for %s alone", target, extractorHome)
		return
	}
	if f.test {
		return
	}
	if belowAny(target, testHelpers) && !belowAny(f.pkg, testHelpers) {
		f.fault(spec.Pos(), "%s is for tests alone", target)
		return
	}
	if home, _, _ := f.table.entry(target); !matches(allowed, target) && home != folder {
		f.fault(spec.Pos(), "%s may not import %s", f.pkg, target)
	}
}

// checkTheirs judges the import of anything else. What is below a package that
// keeps to the standard library is another package.
func (f *file) checkTheirs(spec *ast.ImportSpec, target string) {
	if !f.test && slices.Contains(stdlibOnly, f.pkg) && strings.Contains(strings.Split(target, "/")[0], ".") {
		f.fault(spec.Pos(), "%s imports the standard library alone, not %s", f.pkg, target)
	}
	for _, h := range homes {
		switch {
		case !below(target, h.library):
		case f.test && h.tests, !h.only && belowAny(f.pkg, h.folders) && !belowAny(f.pkg, h.except):
		case h.only && belowAny(f.pkg, testHelpers):
		case h.only:
			f.fault(spec.Pos(), "%s is for tests alone", target)
		default:
			f.fault(spec.Pos(), "%s may be imported in %s only", target, strings.Join(h.folders, ", "))
		}
	}
}

func (f *file) checkSize() {
	if lines := f.set.File(f.ast.FileStart).LineCount() - 1; lines > MaxFile {
		f.fault(token.NoPos, "%d lines, at most %d", lines, MaxFile)
	}
	if f.test {
		return
	}
	for _, d := range f.ast.Decls {
		fn, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		if lines := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1; lines > MaxFunc {
			f.fault(fn.Pos(), "%s has %d lines, at most %d", fn.Name.Name, lines, MaxFunc)
		}
	}
}

// checkGate finds uses of the gate that judges nothing: it is for tests, and for
// measuring what a gate costs.
func (f *file) checkGate() {
	if f.pkg == "manager" || belowAny(f.pkg, []string{"bench", "internal/enginetest"}) {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, is := n.(*ast.SelectorExpr); is && sel.Sel.Name == "Unjudged" {
			if pkg, is := sel.X.(*ast.Ident); is && pkg.Name == "manager" {
				f.fault(sel.Pos(), "manager.Unjudged is for tests and benchmarks alone")
			}
		}
		return true
	})
}
