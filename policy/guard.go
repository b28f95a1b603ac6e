package policy

import (
	"maps"
	"slices"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Most rules look at a sort of facts that most programs do not have. Loading
// writes into each rule's body that such a fact is there, in a form that the
// engine's index of rules reads, so that a decision evaluates the rules that can
// say something and no others. It changes no decision: what is written there
// follows from the body.

// need is a sort of facts without which a body cannot hold: input.PART, or of
// that one of the keys, or of that again one of the second keys.
type need struct {
	part        string
	first, then []string  // nil: any
	term        *ast.Term // its name
}

// name is how the input's "has" calls it. Two needs that differ have two names:
// any key is another one than an empty key, whatever characters keys have.
func (n need) name() string {
	b := strconv.AppendQuote(nil, n.part)
	for _, keys := range [][]string{n.first, n.then} {
		b = append(b, '/')
		for _, k := range keys {
			b = strconv.AppendQuote(b, k)
		}
	}
	return string(b)
}

// depths says how many keys lead to the facts of a part.
var depths = map[string]int{
	"files": 2, "net": 2, "env": 2, "commands": 1, "calls": 1, "imports": 1, "actions": 1, "dynamic": 1, "strings": 1, "structs": 1,
	"pipelines": 1, "ctx": 1,
}

// guard writes into the rules of modules what they need, and gives all of that.
// says has what each rule that can give a finding needs of it.
func guard(modules map[string]*ast.Module) (needs []need, says [][]int) {
	all := map[string]need{}
	packages := packagesOf(modules)
	var sayers [][]need
	for _, m := range modules {
		for _, r := range m.Rules {
			var own []need
			if guardable(r) {
				own = packages[m.Package.Path.String()].needsOf(r)
				write(r, own)
			}
			for _, n := range own {
				all[n.name()] = n
			}
			if givesFindings(r) && !gathers(m.Package, r) {
				sayers = append(sayers, own)
			}
		}
	}
	at := map[string]int{}
	for _, name := range sortedKeys(all) {
		at[name] = len(needs)
		needs = append(needs, all[name])
	}
	for _, own := range sayers {
		ids := make([]int, len(own))
		for i, n := range own {
			ids[i] = at[n.name()]
		}
		says = append(says, ids)
	}
	return needs, says
}

// givesFindings: it is one of those that the query asks for.
func givesFindings(r *ast.Rule) bool {
	return r.Head.Ref()[0].Value.Compare(ast.Var("findings")) == 0
}

// gathers: it is a rule of the main package that takes over what others say,
// and says nothing where they do not.
func gathers(p *ast.Package, r *ast.Rule) bool {
	return p.Path.String() == mainPackage && slices.ContainsFunc(r.Body, func(e *ast.Expr) bool {
		op, args := operands(e)
		if op != ast.Member.Name && op != ast.MemberWithKey.Name || len(args) == 0 {
			return false
		}
		all, ok := args[len(args)-1].Value.(ast.Ref)
		return ok && len(all) > 3 && all[:2].Equal(ast.MustParseRef("data.caisson")) && all[2].Value.Compare(ast.String("main")) != 0 &&
			all[len(all)-1].Value.Compare(ast.String("findings")) == 0
	})
}

// canSay reports whether the needs of any rule are met. Where they are of none,
// there is nothing to evaluate: nothing is found.
func (s *snapshot) canSay(met []bool) bool {
	return slices.ContainsFunc(s.says, func(needs []int) bool { return allMet(needs, met) })
}

// allMet reports whether all of these needs are met.
func allMet(needs []int, met []bool) bool {
	return !slices.ContainsFunc(needs, func(n int) bool { return !met[n] })
}

// write puts needs before a rule's body. One without needs stays as it is.
func write(r *ast.Rule, needs []need) {
	if len(needs) == 0 {
		return
	}
	body := ast.Body{}
	for _, n := range needs {
		has := ast.Ref{ast.InputRootDocument, ast.InternedTerm("has"), n.term}
		body.Append(ast.NewExpr(ast.NewTerm(has)))
	}
	for _, e := range r.Body {
		body.Append(e)
	}
	r.Body = body
}

// guardable: it adds to a set, and says nothing where its body does not hold.
func guardable(r *ast.Rule) bool {
	return !r.Default && r.Else == nil && r.Head.RuleKind() == ast.MultiValue
}

// definitions are the rules of a package by name, and what they need.
type definitions struct {
	rules map[ast.Var][]*ast.Rule
	needs map[ast.Var][]need // nil while it is being found
	// replaced: some rule asks what would hold with another input, or with other
	// rules and functions, of which what is there says nothing.
	replaced bool
}

func packagesOf(modules map[string]*ast.Module) map[string]*definitions {
	packages := map[string]*definitions{}
	replaced := false
	for _, m := range modules {
		ast.WalkWiths(m, func(*ast.With) bool { replaced = true; return replaced })
	}
	for _, m := range modules {
		pkg := m.Package.Path.String()
		if packages[pkg] == nil {
			packages[pkg] = &definitions{rules: map[ast.Var][]*ast.Rule{}, needs: map[ast.Var][]need{}, replaced: replaced}
		}
		for _, r := range m.Rules {
			name, _ := r.Head.Ref()[0].Value.(ast.Var)
			packages[pkg].rules[name] = append(packages[pkg].rules[name], r)
		}
	}
	return packages
}

// of is what has to hold for a rule of the package to be defined, if it has
// one value, or not to be empty, if it is a set.
func (d *definitions) of(name ast.Var) []need {
	if needs, ok := d.needs[name]; ok {
		return needs
	}
	d.needs[name] = nil // for one that refers to itself
	var common []need
	for i, r := range d.rules[name] {
		if r.Default || r.Else != nil || len(r.Head.Ref()) > 1 {
			return nil // it has another value, or is an object, which may be empty
		}
		needs := d.needsOf(r)
		if i == 0 {
			common = needs
			continue
		}
		common = slices.DeleteFunc(common, func(n need) bool {
			return !slices.ContainsFunc(needs, func(m need) bool { return m.name() == n.name() })
		})
	}
	d.needs[name] = common
	return common
}

// needsOf finds what a rule needs. What it does not understand needs nothing.
func (d *definitions) needsOf(r *ast.Rule) []need {
	if d.replaced {
		return nil
	}
	f := needFinder{in: d, values: map[ast.Var][]string{}, means: map[ast.Var]ast.Ref{}, own: map[ast.Var]bool{}, found: map[string]need{}}
	f.binds(r.Head.Args)
	for _, e := range r.Body {
		f.bind(e)
	}
	for _, e := range r.Body {
		f.expr(e)
	}
	if r.Head.RuleKind() == ast.SingleValue && r.Head.Value != nil {
		f.term(r.Head.Value)
	}
	var needs []need
	for _, name := range sortedKeys(f.found) {
		n := f.found[name]
		sharper := func(m need) bool {
			return n.then == nil && m.then != nil && m.part == n.part && slices.Equal(m.first, n.first)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(f.found)), sharper) {
			needs = append(needs, n)
		}
	}
	return needs
}

type needFinder struct {
	in     *definitions
	values map[ast.Var][]string // of a variable, one of
	means  map[ast.Var]ast.Ref  // a variable that stands for a part of the input
	own    map[ast.Var]bool     // variables of the rule
	found  map[string]need
}

// binds notes variables that are the rule's own.
func (f *needFinder) binds(terms []*ast.Term) {
	for _, t := range terms {
		vis := ast.NewVarVisitor()
		vis.Walk(t)
		for v := range vis.Vars() {
			f.own[v] = true
		}
	}
}

// operands are those of an expression that must hold, after its operator; nil
// where it says something else. `some x in y` is as `x in y`.
func operands(e *ast.Expr) (op string, args []*ast.Term) {
	if e.Negated || len(e.With) > 0 {
		return "", nil
	}
	switch t := e.Terms.(type) {
	case *ast.Term:
		return "ref", []*ast.Term{t}
	case []*ast.Term:
		return t[0].String(), t[1:]
	case *ast.SomeDecl:
		if call, ok := t.Symbols[0].Value.(ast.Call); ok && len(t.Symbols) == 1 {
			return call[0].String(), call[1:]
		}
	}
	return "", nil
}

// bind learns what variables stand for.
func (f *needFinder) bind(e *ast.Expr) {
	op, args := operands(e)
	if some, ok := e.Terms.(*ast.SomeDecl); ok {
		bound := some.Symbols
		if len(args) > 0 {
			bound = args[:len(args)-1]
		}
		f.binds(bound)
	}
	switch {
	case op == ast.Member.Name && len(args) == 2:
		v, ok := args[0].Value.(ast.Var)
		if list, constant := constants(args[1].Value); ok && constant {
			f.values[v] = list
		}
	case (op == ast.Assign.Name || op == ast.Equality.Name) && len(args) == 2:
		if op == ast.Assign.Name {
			f.binds(args[:1])
		}
		v, ok := args[0].Value.(ast.Var)
		if r, isRef := args[1].Value.(ast.Ref); ok && isRef && r.HasPrefix(ast.InputRootRef) {
			f.means[v] = r
		}
	}
}

// constants are the strings of a collection of strings.
func constants(v ast.Value) ([]string, bool) {
	var list []string
	all := true
	add := func(t *ast.Term) {
		s, ok := t.Value.(ast.String)
		all = all && ok
		list = append(list, string(s))
	}
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(add)
	case ast.Set:
		v.Foreach(add)
	default:
		return nil, false
	}
	slices.Sort(list)
	return slices.Compact(list), all && len(list) > 0
}

// expr finds what an expression needs: every part of the input that it refers
// to, since it does not hold where that is undefined.
func (f *needFinder) expr(e *ast.Expr) {
	op, args := operands(e)
	for _, a := range args {
		f.term(a)
	}
	if len(args) > 0 && (op == ast.Member.Name || op == ast.MemberWithKey.Name) {
		// What has members is not empty.
		switch all := args[len(args)-1].Value.(type) {
		case ast.Var:
			f.helper(all, true)
		case ast.Ref:
			f.ref(append(slices.Clone(all), ast.VarTerm("_")))
		}
	}
	if t, ok := e.Terms.([]*ast.Term); ok && args != nil {
		f.term(t[0]) // a function
	}
}

func (f *needFinder) term(t *ast.Term) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
			return true // they may be empty
		case ast.Ref:
			f.ref(x)
		case ast.Var:
			f.helper(x, false)
		}
		return false
	}).Walk(t)
}

// helper takes over what another rule of the package needs. Nothing but a look
// into a set needs that it has something.
func (f *needFinder) helper(v ast.Var, looksInto bool) {
	rules := f.in.rules[v]
	if len(rules) == 0 || f.own[v] || !looksInto && rules[0].Head.RuleKind() == ast.MultiValue {
		return
	}
	for _, n := range f.in.of(v) {
		f.found[n.name()] = n
	}
}

func (f *needFinder) ref(r ast.Ref) {
	v, _ := r[0].Value.(ast.Var)
	if f.means[v] != nil {
		r = append(slices.Clone(f.means[v]), r[1:]...)
	} else {
		f.helper(v, len(r) > 1)
	}
	if len(r) < 3 || !r.HasPrefix(ast.InputRootRef) {
		return
	}
	part, ok := r[1].Value.(ast.String)
	depth := depths[string(part)]
	if !ok || depth == 0 {
		return
	}
	n := need{part: string(part), first: f.oneOf(r[2])}
	if depth == 2 && len(r) > 3 {
		n.then = f.oneOf(r[3])
	}
	n.term = ast.StringTerm(n.name())
	f.found[n.name()] = n
}

// oneOf are the values that a key can have; nil is any.
func (f *needFinder) oneOf(key *ast.Term) []string {
	switch k := key.Value.(type) {
	case ast.String:
		return []string{string(k)}
	case ast.Var:
		return f.values[k]
	}
	return nil
}
