package javascript

// binding is a variable.
type binding struct {
	v *val
	// ever is all that it was given, for functions that run at a time that is not known; nil while that is v.
	ever *val
	// cond is how many conditions its declaration stands under; an assignment under more of them may not happen.
	cond int
}

// scope is a block of variables.
type scope struct {
	up   *scope
	vars map[string]*binding
	// call is the function call that the block belongs to; it is set on the outermost block of one.
	call *activation
}

// activation is one call of a function, or the program.
type activation struct {
	fn      *function
	this    *val
	args    *val
	returns *val
	last    *val // value of the last expression statement, which eval gives back
	yields  []*val
}

// function is a function of the program, with the variables it sees.
type function struct {
	tree   *tree
	at     id
	params id
	body   id
	scope  *scope
	arrow  bool
	this   *val // of an arrow function
	home   *object
	getter bool
	setter bool
	method bool // written as one
	symbol bool // one under a symbol of the program, which the language does not know
	handed bool // somebody outside has it
	now    bool // see callNow
	yields bool
	calls  int
	active bool
	silent bool // its facts are reported otherwise
	memo   map[string]*val
	// given are the arguments that whoever calls it later will bring, as far as that is known.
	given []*val
	name  string
	// called is where it was last called from, in caller.
	called id
	caller *tree
}

func (s *scope) find(name string) *binding {
	for ; s != nil; s = s.up {
		if b, ok := s.vars[name]; ok {
			return b
		}
	}
	return nil
}

// callScope is the scope that var declares in.
func (s *scope) callScope() *scope {
	for s.call == nil && s.up != nil {
		s = s.up
	}
	return s
}

func (s *scope) declare(name string, v *val, cond int) *binding {
	if s.vars == nil {
		s.vars = make(map[string]*binding, 8)
	}
	b := &binding{v: v, cond: cond}
	s.vars[name] = b
	return b
}

// give assigns, under cond conditions.
func (b *binding) give(v *val, cond int) {
	if b.v == nil || b.v.isNone() {
		b.v = v
		if b.ever != nil {
			b.ever = union(b.ever, v)
		}
		return
	}
	before := b.ever
	if before == nil {
		before = b.v
	}
	b.ever = union(before, v)
	if cond > b.cond {
		b.v = union(b.v, v)
		return
	}
	b.v = v
}

// get reads; late says that the reader runs at a time that is not known.
func (b *binding) get(late bool) *val {
	v := b.v
	if late && b.ever != nil {
		v = b.ever
	}
	if v == nil {
		return undefined
	}
	return v
}
