package facts

// Inline gives a Builder for code within b's text that the caller walks with
// state of its own (a shell's eval), as [Builder.Nested] would make one. It is
// false where a bound was hit, which is then a fact already.
func (b *Builder) Inline(code string, o NestedOpts) (*Builder, bool) {
	switch {
	case b.Full():
		return nil, false
	case b.depth+1 > b.s.lim.Depth:
		b.dynamicVia(DynTooDeep, "code within code", o, nil)
		return nil, false
	case len(code) > b.s.lim.Source:
		b.Limit("length of evaluated code", o.Pos)
		return nil, false
	case bracketDepth([]byte(code)) > b.s.lim.Bracket:
		b.dynamicVia(DynTooDeep, "brackets of evaluated code", o, nil)
		return nil, false
	}
	b.s.inlined++
	if b.s.inlined > 64*textCost*b.s.lim.Nested { // cheap texts, but no endless supply of them
		b.limit("evaluated texts")
		return nil, false
	}
	child := &Builder{s: b.s, lang: b.lang, depth: b.depth + 1, via: join(b.via, o.Via), cwd: b.cwd, orCwd: b.orCwd, shown: code, start: b.start, given: b.given}
	child.origin = b.at(o.Pos).Pos
	child.verbatim = o.Verbatim && (b.depth == 0 || b.verbatim)
	return child, true
}

// Redirections records the files of redirections that belong to no command:
// those of a loop, a group, or a bare "> file". data is what is written.
func (b *Builder) Redirections(list []Redir, data Value, pos Pos) {
	c := &command{b: b, o: CommandOpts{Pos: pos, Redirs: list, Out: data}}
	c.redirections()
}
