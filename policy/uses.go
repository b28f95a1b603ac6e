package policy

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// places are the pieces of each package, by the names of their rules.
type places map[string]*packagePieces

type packagePieces struct {
	path  ast.Ref
	named map[string][]int
}

func (w places) add(path ast.Ref, r *ast.Rule, piece int) {
	p := w[path.String()]
	if p == nil {
		p = &packagePieces{path: path, named: map[string][]int{}}
		w[path.String()] = p
	}
	name := string(r.Head.Ref()[0].Value.(ast.Var))
	p.named[name] = append(p.named[name], piece)
}

// usedBy are the pieces that a rule of a module may refer to, in all of its
// bodies: all of a name's, also where it asks for a part that none of them has,
// which is undefined with them and an error without. The rule is as it was
// parsed, so that a name may be a variable of its own instead: that is one piece
// too many then.
func (w places) usedBy(m *ast.Module, r *ast.Rule) []int {
	var uses []int
	mean := func(ref ast.Ref) {
		for _, p := range w {
			uses = append(uses, p.meant(ref)...)
		}
	}
	named := func(name ast.Var, rest ast.Ref) {
		if name.Equal(ast.DefaultRootDocument.Value) {
			mean(append(ast.Ref{ast.DefaultRootDocument}, rest...))
		}
		for _, i := range m.Imports {
			if path, ok := i.Path.Value.(ast.Ref); ok && path.HasPrefix(ast.DefaultRootRef) && i.Name().Equal(name) {
				mean(append(slices.Clone(path), rest...))
			}
		}
		if own := w[m.Package.Path.String()]; own != nil {
			uses = append(uses, own.named[string(name)]...)
		}
	}
	var look *ast.GenericVisitor
	look = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Head:
			for _, t := range x.Reference[1:] { // the first is the rule's own name
				look.Walk(t)
			}
			for _, t := range append(slices.Clone(x.Args), x.Key, x.Value) {
				if t != nil {
					look.Walk(t)
				}
			}
			return true
		case ast.Ref:
			if name, ok := x[0].Value.(ast.Var); ok {
				named(name, x[1:])
			} else {
				look.Walk(x[0])
			}
			for _, t := range x[1:] {
				look.Walk(t)
			}
			return true
		case ast.Var:
			named(x, nil)
		}
		return false
	})
	look.Walk(r)
	slices.Sort(uses)
	return slices.Compact(uses)
}

// meant are the pieces of a package that a reference may mean: what is no
// constant in it may be anything.
func (p *packagePieces) meant(ref ast.Ref) []int {
	for i, want := range p.path {
		if i >= len(ref) {
			break
		}
		if _, constant := ref[i].Value.(ast.String); i > 0 && constant && !ref[i].Equal(want) {
			return nil
		}
	}
	if len(ref) > len(p.path) {
		if name, constant := ref[len(p.path)].Value.(ast.String); constant {
			return p.named[string(name)]
		}
	}
	var all []int
	for _, pieces := range p.named {
		all = append(all, pieces...)
	}
	return all
}

// closure are the pieces that one uses, also through others.
func closure(direct [][]int, piece int) []int {
	seen := map[int]bool{piece: true}
	open := []int{piece}
	var uses []int
	for len(open) > 0 {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		for _, dep := range direct[next] {
			if !seen[dep] {
				seen[dep] = true
				open = append(open, dep)
				uses = append(uses, dep)
			}
		}
	}
	slices.Sort(uses)
	return uses
}
