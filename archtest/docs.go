package archtest

import (
	"go/ast"
	"go/token"
)

// checkDocs wants a comment at every exported name.
func (f *file) checkDocs() {
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil {
				f.fault(d.Pos(), "%s is exported and has no comment", d.Name.Name)
			}
		case *ast.GenDecl:
			f.checkDeclared(d)
		}
	}
}

// exportedReceiver reports whether fn can be called from outside: a function,
// or a method of an exported type.
func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return true
	}
	t := fn.Recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
		case *ast.IndexExpr:
			t = u.X
		case *ast.IndexListExpr:
			t = u.X
		case *ast.Ident:
			return u.IsExported()
		default:
			return true
		}
	}
}

// checkDeclared takes a group's comment for each of its constants and
// variables, and wants one of its own at each type.
func (f *file) checkDeclared(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				f.fault(s.Pos(), "%s is exported and has no comment", s.Name.Name)
			}
		case *ast.ValueSpec:
			if d.Tok != token.CONST && d.Tok != token.VAR || d.Doc != nil || s.Doc != nil || s.Comment != nil {
				continue
			}
			for _, n := range s.Names {
				if n.IsExported() {
					f.fault(n.Pos(), "%s is exported and has no comment", n.Name)
				}
			}
		}
	}
}
