package policy

import (
	"context"
	"encoding/json"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// use takes rules in pieces in place of compiling all of them.
func (s *snapshot) use(p *prepared, modules []*ast.Module) {
	if modules == nil { // it was kept
		s.parts, s.kept = p.Parts, p.Catalogue
	}
	s.needs = p.needs()
	for _, c := range p.Pieces {
		if c.Says && !c.Gathers {
			s.says = append(s.says, c.Needs)
		}
	}
	s.selected = &selected{p: p, needs: s.needs, modules: modules, caps: s.caps, compile: func(ctx context.Context, modules map[string]*ast.Module) (rego.PreparedEvalQuery, error) {
		defer relaxed()()
		comp, err := compile(modules, s.caps, false) // all of it was checked once
		if err != nil {
			return rego.PreparedEvalQuery{}, err
		}
		return s.prepareQuery(ctx, comp)
	}}
}

// take takes the shipped rules apart as they were read. Tests have compiled
// them: nobody has to be told of a mistake before there is a decision.
func (s *snapshot) take(c Config, all []source, modules map[string]*ast.Module) {
	p := prepare(all, modules)
	s.use(p, p.guard(all, modules))
	s.keep(c, all, modules, p)
}

// keepUsers has rules kept that were compiled, once it is called: some of them
// are a user's, who is told of mistakes. It takes modules that nobody has
// altered yet.
func (s *snapshot) keepUsers(c Config, all []source, modules map[string]*ast.Module) func() {
	if c.Keeper == nil {
		return nil
	}
	copies := make(map[string]*ast.Module, len(modules))
	for key, m := range modules {
		copies[key] = m.Copy() // a compiler alters what it is given
	}
	return func() {
		p := prepare(all, copies)
		p.guard(all, copies)
		s.keep(c, all, copies, p)
	}
}

// guard writes into the rules of modules what they need, and lists these as the
// pieces have them.
func (p *prepared) guard(all []source, modules map[string]*ast.Module) []*ast.Module {
	needs, i := p.needs(), 0
	list := make([]*ast.Module, len(all))
	for k, src := range all {
		list[k] = modules[src.key()]
		for _, r := range list[k].Rules {
			write(r, p.Pieces[i].needed(needs))
			i++
		}
	}
	return list
}

// patient is a [Keeper] that can be told to keep something once it has been made,
// for which nobody waits but who closes it.
type patient interface{ Later(make func()) }

// keep has the rules kept in pieces, now or later. Those that cannot be are read
// the next time too.
func (s *snapshot) keep(c Config, all []source, modules map[string]*ast.Module, p *prepared) {
	if c.Keeper == nil {
		return
	}
	keep := func() {
		if p.verify(all, modules, s.caps) != nil {
			return
		}
		if b := s.encode(p); b != nil {
			c.rememberSealed("rules", s.revision, b)
		}
	}
	if k, ok := c.Keeper.(patient); ok {
		k.Later(keep)
		return
	}
	keep()
}

// encode gives pieces with all that belongs to them, or nil where the catalogue
// cannot be read, which is told where something is found.
func (s *snapshot) encode(p *prepared) []byte {
	rules, err := s.catalogued()
	if err != nil {
		return nil
	}
	brief := make(map[string]Rule, len(rules))
	for id, r := range rules {
		r.Match, r.NotMatch = nil, nil
		brief[id] = r
	}
	whole := *p
	whole.Parts = s.parts
	if whole.Catalogue, err = json.Marshal(brief); err != nil {
		return nil
	}
	return whole.pack()
}
