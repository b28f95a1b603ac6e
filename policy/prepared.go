package policy

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/caisson-dev/caisson/sandbox"
)

// Parsing and compiling all rules takes a process that judges once longer than
// everything else it does for its decision. What each rule needs is known after
// the first time, and so is what it refers to: with both kept, a process
// compiles those rules alone that can say something about the facts it has.

// prepared is a rule set in pieces that can be compiled by themselves.
type prepared struct {
	Needs   []keptNeed      `json:"needs"`
	Modules []keptModule    `json:"modules"`
	Pieces  []piece         `json:"pieces"`
	Parts   map[string]bool `json:"parts"`
	// Catalogue is read where something is found.
	Catalogue json.RawMessage `json:"catalogue"`
}

type keptNeed struct {
	Part  string   `json:"part"`
	First []string `json:"first"`
	Then  []string `json:"then"`
}

// keptModule is what stands before the rules of a module.
type keptModule struct {
	Name string `json:"name"`
	Head string `json:"head"`
	Main bool   `json:"main"` // it is of the package that joins all findings
}

// piece is one rule.
type piece struct {
	Module int    `json:"module"`
	Text   string `json:"text"`
	Needs  []int  `json:"needs"` // of prepared.Needs
	Uses   []int  `json:"uses"`  // other pieces, of all depths
	// Says: it gives findings to the query, if its needs are met; Gathers: those
	// of others.
	Says    bool `json:"says"`
	Gathers bool `json:"gathers"`
}

// mainPackage joins all findings: it is compiled whatever else is.
const mainPackage = "data.caisson.main"

// prepare takes a rule set apart: modules, which are guarded, are those of list,
// and compiler has compiled them.
func prepare(list []source, modules map[string]*ast.Module, compiler *ast.Compiler, caps *ast.Capabilities) (*prepared, error) {
	p := &prepared{}
	where := places{}
	packages := packagesOf(modules)
	needs := map[string]int{}
	for m, src := range list {
		module := modules[src.key()]
		head := module.Package.String()
		for _, i := range module.Imports {
			head += "\n" + i.String()
		}
		p.Modules = append(p.Modules, keptModule{src.key(), head, module.Package.Path.String() == mainPackage})
		for i, r := range module.Rules {
			where.add(module.Package.Path, r, len(p.Pieces))
			c := piece{Module: m, Text: textOf(src.text, module.Rules, i), Says: givesFindings(r), Gathers: gathers(module.Package, r)}
			if guardable(r) {
				for _, n := range packages[module.Package.Path.String()].needsOf(r) {
					at, ok := needs[n.name()]
					if !ok {
						at = len(p.Needs)
						needs[n.name()] = at
						p.Needs = append(p.Needs, keptNeed{n.part, n.first, n.then})
					}
					c.Needs = append(c.Needs, at)
				}
			}
			p.Pieces = append(p.Pieces, c)
		}
	}
	var compiled []*ast.Rule // by piece
	for _, src := range list {
		compiled = append(compiled, compiler.Modules[src.key()].Rules...)
	}
	if len(compiled) != len(p.Pieces) {
		return nil, sandbox.Errorf(sandbox.Internal, "%d rules were compiled to %d", len(p.Pieces), len(compiled))
	}
	direct := make([][]int, len(compiled))
	for i, r := range compiled {
		direct[i] = where.usedBy(r)
	}
	for i := range compiled {
		if !p.Modules[p.Pieces[i].Module].Main {
			p.Pieces[i].Uses = closure(direct, i)
		}
	}
	return p, p.verify(list, modules, caps)
}

// comments are whole lines of them.
var comments = regexp.MustCompile(`(?m)^[ \t]*#.*\n?`)

// textOf is what stands from one rule up to the next.
func textOf(src string, rules []*ast.Rule, i int) string {
	end := len(src)
	if i+1 < len(rules) {
		end = rules[i+1].Location.Offset
	}
	return strings.TrimSpace(comments.ReplaceAllString(src[rules[i].Location.Offset:end], ""))
}

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

// usedBy are the pieces that a compiled rule refers to, in all of its bodies: all
// of a name's, also where it asks for a part that none of them has, which is
// undefined with them and an error without.
func (w places) usedBy(r *ast.Rule) []int {
	var uses []int
	ast.WalkRefs(r, func(ref ast.Ref) bool {
		if !ref.HasPrefix(ast.DefaultRootRef) {
			return false
		}
		for _, p := range w {
			uses = append(uses, p.meant(ref)...)
		}
		return false
	})
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

// verify reads all pieces again: they must be the rules that they are of.
func (p *prepared) verify(list []source, modules map[string]*ast.Module, caps *ast.Capabilities) error {
	all := selected{p: p, needs: p.needs(), caps: caps}
	again, err := all.assemble(func(int) bool { return true })
	if err != nil {
		return err
	}
	for _, src := range list {
		for i, r := range modules[src.key()].Rules {
			if ast.Compare(r, again[src.key()].Rules[i]) != 0 {
				return sandbox.Errorf(sandbox.Internal, "%s: a rule reads otherwise by itself", r.Location)
			}
		}
	}
	return nil
}

func (p *prepared) needs() []need {
	needs := make([]need, len(p.Needs))
	for i, k := range p.Needs {
		needs[i] = need{part: k.Part, first: k.First, then: k.Then}
		needs[i].term = ast.StringTerm(needs[i].name())
	}
	return needs
}

// selected compiles the rules that are wanted, of a prepared set. It is safe
// for concurrent use.
type selected struct {
	p       *prepared
	needs   []need
	compile func(ctx context.Context, modules map[string]*ast.Module) (rego.PreparedEvalQuery, error)
	caps    *ast.Capabilities

	mu       sync.Mutex
	compiled []bool // pieces
	times    int
	query    rego.PreparedEvalQuery
}

// mostSelections is how often a part is compiled; then all of it is, since the
// process judges more than once.
const mostSelections = 2

// queryFor gives a query that has all rules whose needs are met.
func (s *selected) queryFor(ctx context.Context, met []bool) (rego.PreparedEvalQuery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := slices.Clone(s.compiled)
	if want == nil {
		want = make([]bool, len(s.p.Pieces))
	}
	missing := s.compiled == nil
	take := func(i int) {
		missing = missing || !want[i]
		want[i] = true
	}
	for i := range s.p.Pieces {
		c := &s.p.Pieces[i]
		if s.p.Modules[c.Module].Main || c.Says && allMet(c.Needs, met) {
			take(i)
			for _, u := range c.Uses {
				take(u)
			}
		}
	}
	if !missing {
		return s.query, nil
	}
	if s.times++; s.times > mostSelections {
		for i := range want {
			want[i] = true
		}
	}
	modules, err := s.assemble(func(i int) bool { return want[i] })
	if err != nil {
		return s.query, err
	}
	q, err := s.compile(ctx, modules)
	if err != nil {
		return s.query, err
	}
	s.query, s.compiled = q, want
	return q, nil
}

// assemble parses the pieces that are wanted, and writes into the rules what
// they need.
func (s *selected) assemble(want func(piece int) bool) (map[string]*ast.Module, error) {
	texts := make([]strings.Builder, len(s.p.Modules))
	pieces := make([][]*piece, len(s.p.Modules))
	for i := range s.p.Pieces {
		if c := &s.p.Pieces[i]; want(i) {
			pieces[c.Module] = append(pieces[c.Module], c)
			texts[c.Module].WriteString("\n\n" + c.Text)
		}
	}
	modules := map[string]*ast.Module{}
	for i, m := range s.p.Modules {
		if len(pieces[i]) == 0 {
			continue
		}
		parsed, err := ast.ParseModuleWithOpts(m.Name, m.Head+texts[i].String(), ast.ParserOptions{Capabilities: s.caps, RegoVersion: ast.RegoV1})
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Internal, "read rules that were kept: %w", err)
		}
		if len(parsed.Rules) != len(pieces[i]) {
			return nil, sandbox.Errorf(sandbox.Internal, "%s: %d rules were kept as %d pieces", m.Name, len(parsed.Rules), len(pieces[i]))
		}
		for j, r := range parsed.Rules {
			var needs []need
			for _, n := range pieces[i][j].Needs {
				needs = append(needs, s.needs[n])
			}
			write(r, needs)
		}
		modules[m.Name] = parsed
	}
	return modules, nil
}

// recallPrepared gives the rules that were kept. What is not whole is none.
func (c *Config) recallPrepared(revision string) *prepared {
	if c.Keeper == nil || !c.Lazy {
		return nil
	}
	var p prepared
	if json.Unmarshal(c.recallSealed("rules", revision), &p) != nil {
		return nil
	}
	return &p
}
