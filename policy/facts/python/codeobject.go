package python

import "strings"

// codeFields are what a code object is made of, in order; those with a mark are
// not there in every version of Python.
var codeFields = strings.Fields("argcount posonlyargcount? kwonlyargcount? nlocals stacksize flags code consts names varnames filename name qualname? firstlineno lnotab? linetable? exceptiontable?")

// codeOf is types.CodeType with all that the code of one function of the program
// is made of, each in its place: that does what the function does. The variables
// that it shares with others are named at the end, in any way.
func (c *invocation) codeOf() *val {
	if c.open || len(c.keys) > 0 || len(c.pos) < 2 {
		return nil
	}
	i, shared := 0, len(c.pos)-2
	of := partOfCode(c.pos[0], "argcount")
	for _, field := range codeFields {
		name, optional := strings.CutSuffix(field, "?")
		switch {
		case i < shared && of != nil && partOfCode(c.pos[i], name) == of:
			i++
		case !optional:
			return nil
		}
	}
	for _, v := range c.pos[shared:] {
		if (v.kind != kTuple || v.open || len(v.x.items) > 0) && partOfCode(v, "cellvars") != of && partOfCode(v, "freevars") != of {
			return nil
		}
	}
	if i != shared {
		return nil
	}
	return of
}

// partOfCode is the code of a function of the program that v is a part of, under
// that name; nil where it is none.
func partOfCode(v *val, name string) *val {
	if v.kind != kRef || v.text != "function.__code__.co_"+name || v.x == nil || v.x.self == nil || v.x.self.x == nil || v.x.self.x.fn == nil {
		return nil
	}
	return v.x.self
}

// ownWords reports a dictionary of names that stand for no function, or for the
// one that is called so.
func (v *val) ownWords() bool {
	if v.open {
		return false
	}
	for _, key := range v.x.order {
		name, _ := strings.CutPrefix(key, textKey)
		item := v.x.dict[key]
		own := item.kind == kFunc && item.x.fn.name == name || item.kind == kRef && item.text == name && name != "__builtins__"
		if !item.isConst() && !own {
			return false
		}
	}
	return true
}
