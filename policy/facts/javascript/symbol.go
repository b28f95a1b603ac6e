package javascript

import (
	"strconv"
	"strings"
)

// symbol is a symbol that the program makes for itself: this[kRun]() is then
// that one method. Nothing is the same but what comes of the same call, so that
// only one made once is told apart: at the top, in no loop. nil says that it is
// not known which one it is.
func (w *walk) symbol(s *site) *val {
	if s.new || s.open || len(s.args) > 1 || w.depth > 0 || w.loops > 0 || w.b.Depth() > 0 || len(w.withs) > 0 {
		return nil
	}
	if a := s.arg(0); !a.isNone() && !a.isText() || len(a.From) > 0 {
		return nil
	}
	if w.defines || w.given("Symbol") || w.extra["Symbol"] != nil || w.root.vars["Symbol"] != nil || w.onTop["Symbol"] {
		return nil
	}
	return named(symbolName+strconv.Itoa(int(s.n)), "")
}

// symbolName begins the names of symbols of the program.
const symbolName = "Symbol.#"

// ownSymbol reports the key of a member that is such a symbol.
func ownSymbol(key string) bool { return strings.HasPrefix(key, "@@"+symbolName) }
