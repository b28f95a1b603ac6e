package policy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// Parsing and compiling all rules takes a process that judges once longer than
// everything else it does for its decision. What each rule needs can be read off
// it, and so can what it refers to: with both, a process compiles those rules
// alone that can say something about the facts it has. With both kept, it need
// not even parse the others.

// prepared is a rule set in pieces that can be compiled by themselves.
type prepared struct {
	Needs   []keptNeed
	Modules []keptModule
	Pieces  []piece
	Parts   map[string]bool
	// Catalogue, as JSON, is read where something is found.
	Catalogue json.RawMessage
}

type keptNeed struct {
	Part  string
	First []string
	Then  []string
}

// keptModule is what stands before the rules of a module.
type keptModule struct {
	Name string
	Head string
	Main bool // it is of the package that joins all findings
}

// piece is one rule.
type piece struct {
	Module int
	Text   string
	Needs  []int // of prepared.Needs
	Uses   []int // other pieces, of all depths
	// Says: it gives findings to the query, if its needs are met; Gathers: those
	// of others.
	Says    bool
	Gathers bool
}

// needed are a piece's needs, of all.
func (c *piece) needed(all []need) []need {
	needs := make([]need, len(c.Needs))
	for i, n := range c.Needs {
		needs[i] = all[n]
	}
	return needs
}

// mainPackage joins all findings: it is compiled whatever else is.
const mainPackage = "data.caisson.main"

// prepare takes a rule set apart: modules are those of list.
func prepare(list []source, modules map[string]*ast.Module) *prepared {
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
	direct := make([][]int, 0, len(p.Pieces))
	for _, src := range list {
		for _, r := range modules[src.key()].Rules {
			direct = append(direct, where.usedBy(modules[src.key()], r))
		}
	}
	for i := range p.Pieces {
		if !p.Modules[p.Pieces[i].Module].Main {
			p.Pieces[i].Uses = closure(direct, i)
		}
	}
	return p
}

// comments are whole lines of them.
var comments = lazyregexp.New(`(?m)^[ \t]*#.*\n?`)

// textOf is what stands from one rule up to the next.
func textOf(src string, rules []*ast.Rule, i int) string {
	end := len(src)
	if i+1 < len(rules) {
		end = rules[i+1].Location.Offset
	}
	return strings.TrimSpace(comments().ReplaceAllString(src[rules[i].Location.Offset:end], ""))
}

// verify reads all pieces again: they must be the rules that they are of, which
// are guarded.
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
	p     *prepared
	needs []need
	// modules, where not nil, are those of p, guarded: their rules need not be read
	// from its texts.
	modules []*ast.Module
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
	has := func(i int) bool { return want[i] }
	modules, err := s.pick(has), error(nil)
	if modules == nil {
		modules, err = s.assemble(has)
	}
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

// pick gives copies of the rules that are wanted, or nil where there are only
// their texts. A compiler alters what it is given.
func (s *selected) pick(want func(piece int) bool) map[string]*ast.Module {
	if s.modules == nil {
		return nil
	}
	picked := map[string]*ast.Module{}
	i := 0
	for k, m := range s.modules {
		part := &ast.Module{Package: m.Package, Imports: m.Imports}
		part.SetRegoVersionSpan(m.RegoVersionSpan())
		for _, r := range m.Rules {
			if want(i) {
				part.Rules = append(part.Rules, r)
			}
			i++
		}
		if len(part.Rules) > 0 {
			picked[s.p.Modules[k].Name] = part.Copy()
		}
	}
	return picked
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
			write(r, pieces[i][j].needed(s.needs))
		}
		modules[m.Name] = parsed
	}
	return modules, nil
}
