package facts

func (l Limits) withDefaults() Limits {
	def := func(p *int, n int) {
		if *p <= 0 {
			*p = n
		}
	}
	def(&l.Source, 1<<20)
	def(&l.Facts, 20000)
	def(&l.Depth, 6)
	def(&l.Nested, 200)
	def(&l.Bracket, 200)
	def(&l.Nodes, 2_000_000)
	return l
}

// limit records that something was left out because of a bound.
func (b *Builder) limit(what string) {
	if b.s.full {
		return
	}
	b.s.full = true
	b.s.doc.Meta.Truncated = true
	b.s.doc.Dynamic = append(b.s.doc.Dynamic, Dynamic{At: b.at(Pos{}), Kind: DynLimit, Detail: what})
}

// room reports whether one more fact may be kept.
func (b *Builder) room() bool {
	if b.s.full {
		return false
	}
	b.s.facts++
	if b.s.facts > b.s.lim.Facts {
		b.limit("facts")
		return false
	}
	return true
}

// Limit records that an extractor gave up at a bound of its own; what names
// the bound.
func (b *Builder) Limit(what string, pos Pos) {
	if b.room() {
		b.s.doc.Meta.Truncated = true
		b.s.doc.Dynamic = append(b.s.doc.Dynamic, Dynamic{At: b.at(pos), Kind: DynLimit, Detail: what})
	}
}
