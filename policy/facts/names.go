package facts

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parameters are the names that all but the last argument of Function bind.
func (x *effects) parameters() []string {
	c, ok := x.args.(callArgs)
	if !ok || x.b.lang == Python || c.c.Name != "Function" {
		return nil
	}
	var names []string
	for i := range len(c.c.Args) - 1 {
		for _, v := range asItems(c.c.Args[i]) {
			if s, known := v.One(); known {
				names = append(names, wordsOf().FindAllString(s, -1)...)
			}
		}
	}
	return names
}

// namesOnly reports that what parameters are given as, in a language where they
// are text too, is names: anything else there is code that is run.
func (x *effects) namesOnly() bool {
	c, ok := x.args.(callArgs)
	if !ok || x.b.lang == Python || c.c.Name != "Function" {
		return true
	}
	for i := range len(c.c.Args) - 1 {
		for _, v := range asItems(c.c.Args[i]) {
			if s, known := v.One(); !known || strings.Trim(s, nameLetters) != "" {
				return false
			}
		}
	}
	return true
}

// nameLetters are those of names and of lists of them.
const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$, \n"

// ownNames reports that names in the text are those of the program around it,
// or of a namespace that holds no functions.
func (x *effects) ownNames() bool {
	c, ok := x.args.(callArgs)
	if !ok {
		return false
	}
	if x.b.lang != Python {
		return true
	}
	spaces := slices.Clone(c.c.Args[min(1, len(c.c.Args)):])
	for _, name := range []string{"globals", "locals"} {
		if v, found := c.c.Kwargs[name]; found {
			spaces = append(spaces, v)
		}
	}
	return !slices.ContainsFunc(spaces, func(v Value) bool {
		if v.Type == "none" || v.Type == "str" || v.Type == "callable" && v.Func == "" {
			return false // nothing, the file to write to, or globals()
		}
		if v.Fields == nil {
			return true
		}
		for name, f := range v.Fields {
			if name == "__builtins__" && f.Type == "dict" && !f.Open || f.Func == name && slices.Contains(plainWords[Python], name) {
				continue // nothing, or what it has anyway
			}
			if f.Type == "callable" || f.Func != "" || f.Type == "dict" && f.Fields == nil {
				return true
			}
		}
		return false
	})
}

// global are texts by which programs of any host find its global object, without
// the space in them; what is done with that is seen.
var global = map[string]bool{
	"returnthis": true, "this": true, "returnglobalThis": true, "globalThis": true,
	"(function(){returnthis})()": true, "(function(){returnthis}())": true, "(function(){returnthis;})()": true, "(function(){returnthis;}())": true,
}

// findsGlobal reports one of them.
func findsGlobal(text string) bool {
	return len(text) < 80 && global[strings.TrimRight(strings.Join(strings.Fields(text), ""), ";")]
}

// named: text that names anything may give it to what is around it.
func named(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || r == '_' || unicode.IsLetter(r) })
}
