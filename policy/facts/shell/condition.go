package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// test evaluates [[ … ]] as far as its words are known. All of its words are
// expanded, for the commands in them.
func (w *walker) test(x syntax.TestExpr) tri {
	switch x := x.(type) {
	case *syntax.Word:
		return sureOf(w.single(x), func(s string) bool { return s != "" })
	case *syntax.ParenTest:
		return w.test(x.X)
	case *syntax.UnaryTest:
		return w.testUnary(x)
	case *syntax.BinaryTest:
		return w.testBinary(x)
	}
	return unsure
}

func sureOf(t text, f func(string) bool) tri {
	s, ok := t.one()
	if !ok {
		return unsure
	}
	return sure(f(s))
}

func (w *walker) testUnary(x *syntax.UnaryTest) tri {
	if x.Op == syntax.TsNot {
		switch w.test(x.X) {
		case succeeds:
			return fails
		case fails:
			return succeeds
		default: // still unsure
		}
		return unsure
	}
	word, ok := x.X.(*syntax.Word)
	if !ok {
		return unsure
	}
	t := w.single(word)
	switch x.Op {
	case syntax.TsVarSet:
		w.indexes(t)
	case syntax.TsEmpStr:
		return sureOf(t, func(s string) bool { return s == "" })
	case syntax.TsNempStr:
		return sureOf(t, func(s string) bool { return s != "" })
	default: // it depends on the machine
	}
	return unsure
}

func (w *walker) testBinary(x *syntax.BinaryTest) tri {
	if x.Op == syntax.AndTest || x.Op == syntax.OrTest {
		a, b := w.test(x.X), w.test(x.Y)
		if a == b {
			return a
		}
		if stop := sure(x.Op == syntax.OrTest); a == stop || b == stop {
			return stop
		}
		return unsure
	}
	left, ok := x.X.(*syntax.Word)
	right, ok2 := x.Y.(*syntax.Word)
	if !ok || !ok2 {
		return unsure
	}
	a := w.single(left)
	if x.Op == syntax.TsMatch || x.Op == syntax.TsMatchShort || x.Op == syntax.TsNoMatch {
		p := w.pattern(right)
		s, ok := a.one()
		pat, ok2 := p.one()
		if !ok || !ok2 {
			return unsure
		}
		return sure(match(pat, s, false) == (x.Op != syntax.TsNoMatch))
	}
	return w.compareTexts(x.Op.String(), a, w.single(right))
}

// compareTexts is a comparison of test by its operator as written.
func (w *walker) compareTexts(op string, a, b text) tri {
	s, ok := a.one()
	t, ok2 := b.one()
	if !ok || !ok2 {
		return unsure
	}
	switch op {
	case "=", "==":
		return sure(s == t)
	case "!=":
		return sure(s != t)
	case "<":
		return sure(s < t)
	case ">":
		return sure(s > t)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	m, err2 := strconv.ParseInt(strings.TrimSpace(t), 10, 64)
	if err != nil || err2 != nil {
		return unsure
	}
	switch op {
	case "-eq":
		return sure(n == m)
	case "-ne":
		return sure(n != m)
	case "-lt":
		return sure(n < m)
	case "-gt":
		return sure(n > m)
	case "-le":
		return sure(n <= m)
	case "-ge":
		return sure(n >= m)
	}
	return unsure
}

// testCommand is test and [.
func (w *walker) testCommand(c *invocation) text {
	if len(c.rd.list) > 0 {
		w.report(c)
	}
	args := c.args()
	if c.argv[0].t.is("[") && len(args) > 0 {
		args = args[:len(args)-1]
	}
	negated := false
	for len(args) > 1 && args[0].t.is("!") {
		args, negated = args[1:], !negated
	}
	w.status = unsure
	switch len(args) {
	case 0:
		w.status = fails
	case 1:
		w.status = sureOf(args[0].t, func(s string) bool { return s != "" })
	case 2:
		if args[0].t.is("-z") {
			w.status = sureOf(args[1].t, func(s string) bool { return s == "" })
		} else if args[0].t.is("-n") {
			w.status = sureOf(args[1].t, func(s string) bool { return s != "" })
		} else if args[0].t.is("-v") {
			w.indexes(args[1].t)
		}
	case 3:
		if op, ok := args[1].t.one(); ok {
			w.status = w.compareTexts(op, args[0].t, args[2].t)
		}
	}
	if negated {
		w.negate()
	}
	return text{}
}

// indexes evaluates the index of a name that is looked up: name[index].
func (w *walker) indexes(t text) {
	for _, s := range t.all() {
		if i := strings.IndexByte(s, '['); i > 0 && strings.HasSuffix(s, "]") {
			w.number(s, 0)
		}
	}
}
