package policy

import "github.com/caisson-dev/caisson/internal/packed"

// pack gives a rule set in pieces as it is kept: a process that judges once reads
// all of it and uses a few pieces.
func (p *prepared) pack() []byte {
	b := packed.AppendInt(nil, len(p.Needs))
	for i := range p.Needs {
		n := &p.Needs[i]
		b = packed.AppendTexts(packed.AppendTexts(packed.AppendText(b, n.Part), n.First), n.Then)
	}
	b = packed.AppendInt(b, len(p.Modules))
	for i := range p.Modules {
		m := &p.Modules[i]
		b = appendFlag(packed.AppendText(packed.AppendText(b, m.Name), m.Head), m.Main)
	}
	b = packed.AppendInt(b, len(p.Pieces))
	for i := range p.Pieces {
		c := &p.Pieces[i]
		b = packed.AppendText(packed.AppendInt(b, c.Module), c.Text)
		b = packed.AppendInts(packed.AppendInts(b, c.Needs), c.Uses)
		b = appendFlag(appendFlag(b, c.Says), c.Gathers)
	}
	var parts []string
	for _, name := range sortedKeys(p.Parts) {
		if p.Parts[name] {
			parts = append(parts, name)
		}
	}
	return packed.AppendText(packed.AppendTexts(b, parts), p.Catalogue)
}

func appendFlag(b []byte, set bool) []byte {
	if set {
		return packed.AppendInt(b, 1)
	}
	return packed.AppendInt(b, 0)
}

// unpack reads what pack gave.
func unpack(s string) (*prepared, error) {
	r := packed.NewReader(s)
	p := &prepared{Needs: make([]keptNeed, r.Len()), Parts: map[string]bool{}}
	for i := range p.Needs {
		p.Needs[i] = keptNeed{Part: r.Text(), First: r.Texts(), Then: r.Texts()}
	}
	p.Modules = make([]keptModule, r.Len())
	for i := range p.Modules {
		p.Modules[i] = keptModule{Name: r.Text(), Head: r.Text(), Main: r.Int() != 0}
	}
	p.Pieces = make([]piece, r.Len())
	for i := range p.Pieces {
		p.Pieces[i] = piece{Module: r.Int(), Text: r.Text(), Needs: r.Ints(), Uses: r.Ints(), Says: r.Int() != 0, Gathers: r.Int() != 0}
	}
	for _, name := range r.Texts() {
		p.Parts[name] = true
	}
	p.Catalogue = []byte(r.Text())
	return p, r.Close()
}

// recallPrepared gives the rules that were kept. What is not whole is none.
func (c *Config) recallPrepared(revision string) *prepared {
	if c.Keeper == nil || !c.Lazy {
		return nil
	}
	b := c.recallSealed("rules", revision)
	if b == nil {
		return nil
	}
	p, err := unpack(string(b))
	if err != nil {
		return nil
	}
	return p
}

// recallLasting gives the rules that were kept, and their revision, where that
// can be told without reading them all.
func (c *Config) recallLasting() (string, *prepared) {
	if c.Keeper == nil || !c.Lazy || !c.lasts() {
		return "", nil
	}
	revision, err := revisionOf(*c)
	if err != nil {
		return "", nil // which reading them tells
	}
	return revision, c.recallPrepared(revision)
}
