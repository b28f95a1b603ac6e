package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxArith bounds how deep names may refer to names in arithmetic.
const maxArith = 8

// arithText is $((x)).
func (w *walker) arithText(x syntax.ArithmExpr) text {
	n, ok := w.arith(x)
	if !ok {
		return opaque()
	}
	return lit(strconv.FormatInt(n, 10))
}

// arith computes an expression, with its assignments; false where it is not
// known. Commands in it are walked either way.
func (w *walker) arith(x syntax.ArithmExpr) (int64, bool) {
	switch x := x.(type) {
	case nil:
		return 0, true
	case *syntax.Word:
		return w.arithWord(x)
	case *syntax.ParenArithm:
		return w.arith(x.X)
	case *syntax.UnaryArithm:
		return w.arithUnary(x)
	case *syntax.BinaryArithm:
		return w.arithBinary(x)
	case *syntax.FlagsArithm:
		return 0, false
	}
	return 0, false
}

func (w *walker) arithWord(word *syntax.Word) (int64, bool) {
	s, ok := w.single(word).guess()
	if !ok {
		return 0, false
	}
	return w.number(s, 0)
}

// number reads a number or the name of a variable that holds one.
func (w *walker) number(s string, depth int) (int64, bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, true
	}
	if n, ok := parseInt(s); ok {
		return n, true
	}
	if w.charge(1); depth > maxArith || w.exhausted {
		return 0, false
	}
	if syntax.ValidName(s) {
		v := w.st.vars.get(s)
		if v == nil {
			return 0, s != "RANDOM" && s != "SECONDS" && s != "LINENO" && s != "BASHPID" && s != "PPID"
		}
		inner, ok := v.scalar().guess()
		if !ok || len(v.scalar().alts) > 1 {
			return 0, false
		}
		return w.number(inner, depth+1)
	}
	x, err := syntax.NewParser().Arithmetic(strings.NewReader(s))
	if err != nil || len(s) > 256 {
		return 0, false
	}
	w.arithDepth++
	defer func() { w.arithDepth-- }()
	if w.arithDepth > maxArith {
		return 0, false
	}
	return w.arith(x)
}

// parseInt reads decimal, octal, hexadecimal and base#digits.
func parseInt(s string) (int64, bool) {
	if base, rest, ok := strings.Cut(s, "#"); ok {
		b, err := strconv.Atoi(base)
		if err != nil || b < 2 || b > 36 {
			return 0, false
		}
		n, err := strconv.ParseInt(rest, b, 64)
		return n, err == nil
	}
	base := 10
	digits := s
	switch {
	case len(s) > 2 && (s[:2] == "0x" || s[:2] == "0X"):
		base, digits = 16, s[2:]
	case len(s) > 1 && s[0] == '0':
		base, digits = 8, s[1:]
	}
	n, err := strconv.ParseInt(digits, base, 64)
	return n, err == nil
}

func (w *walker) arithUnary(x *syntax.UnaryArithm) (int64, bool) {
	n, ok := w.arith(x.X)
	switch x.Op {
	case syntax.Inc, syntax.Dec:
		step := int64(1)
		if x.Op == syntax.Dec {
			step = -1
		}
		w.arithAssign(x.X, n+step, ok)
		if !x.Post {
			n += step
		}
	case syntax.Not:
		n = truth(n == 0)
	case syntax.BitNegation:
		n = ^n
	case syntax.Minus:
		n = -n
	default: // a plus changes nothing
	}
	return n, ok
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// arithAssign stores a number into the variable that x names.
func (w *walker) arithAssign(x syntax.ArithmExpr, n int64, ok bool) {
	word, isWord := x.(*syntax.Word)
	if !isWord {
		return
	}
	value := opaque()
	if ok {
		value = lit(strconv.FormatInt(n, 10))
	}
	if name := word.Lit(); syntax.ValidName(name) {
		w.assign(name, value)
		return
	}
	if len(word.Parts) == 1 {
		if p, isParam := word.Parts[0].(*syntax.ParamExp); isParam && p.Param != nil {
			w.assignIndex(p.Param.Value, p.Index, value, false)
		}
	}
}

var assignOps = map[syntax.BinAritOperator]syntax.BinAritOperator{
	syntax.AddAssgn: syntax.Add, syntax.SubAssgn: syntax.Sub, syntax.MulAssgn: syntax.Mul,
	syntax.QuoAssgn: syntax.Quo, syntax.RemAssgn: syntax.Rem, syntax.AndAssgn: syntax.And,
	syntax.OrAssgn: syntax.Or, syntax.XorAssgn: syntax.Xor, syntax.ShlAssgn: syntax.Shl,
	syntax.ShrAssgn: syntax.Shr, syntax.PowAssgn: syntax.Pow,
}

func (w *walker) arithBinary(x *syntax.BinaryArithm) (int64, bool) {
	if x.Op == syntax.Assgn {
		n, ok := w.arith(x.Y)
		w.arithAssign(x.X, n, ok)
		return n, ok
	}
	if x.Op == syntax.TernQuest {
		return w.arithTernary(x)
	}
	a, ok1 := w.arith(x.X)
	b, ok2 := w.arith(x.Y)
	if op, assigns := assignOps[x.Op]; assigns {
		n, ok := compute(op, a, b)
		w.arithAssign(x.X, n, ok && ok1 && ok2)
		return n, ok && ok1 && ok2
	}
	n, ok := compute(x.Op, a, b)
	return n, ok && ok1 && ok2
}

func (w *walker) arithTernary(x *syntax.BinaryArithm) (int64, bool) {
	cond, ok := w.arith(x.X)
	colon, isColon := x.Y.(*syntax.BinaryArithm)
	if !isColon {
		return 0, false
	}
	a, ok1 := w.arith(colon.X)
	b, ok2 := w.arith(colon.Y)
	if cond == 0 {
		a, ok1 = b, ok2
	}
	return a, ok && ok1
}

// compute is one binary operator.
func compute(op syntax.BinAritOperator, a, b int64) (int64, bool) {
	switch op {
	case syntax.Add:
		return a + b, true
	case syntax.Sub:
		return a - b, true
	case syntax.Mul:
		return a * b, true
	case syntax.Quo, syntax.Rem:
		if b == 0 {
			return 0, false
		}
		if op == syntax.Quo {
			return a / b, true
		}
		return a % b, true
	case syntax.Pow:
		return power(a, b)
	case syntax.And:
		return a & b, true
	case syntax.Or:
		return a | b, true
	case syntax.Xor:
		return a ^ b, true
	case syntax.Shl:
		return a << (uint64(b) & 63), true
	case syntax.Shr:
		return a >> (uint64(b) & 63), true
	case syntax.Comma:
		return b, true
	default: // a comparison, below
	}
	return compare(op, a, b)
}

func compare(op syntax.BinAritOperator, a, b int64) (int64, bool) {
	switch op {
	case syntax.Eql:
		return truth(a == b), true
	case syntax.Neq:
		return truth(a != b), true
	case syntax.Lss:
		return truth(a < b), true
	case syntax.Gtr:
		return truth(a > b), true
	case syntax.Leq:
		return truth(a <= b), true
	case syntax.Geq:
		return truth(a >= b), true
	case syntax.AndArit:
		return truth(a != 0 && b != 0), true
	case syntax.OrArit:
		return truth(a != 0 || b != 0), true
	default: // an assignment, which is handled before
	}
	return 0, false
}

func power(a, b int64) (int64, bool) {
	if b < 0 || b > 63 {
		return 0, false
	}
	n := int64(1)
	for ; b > 0; b-- {
		n *= a
	}
	return n, true
}
