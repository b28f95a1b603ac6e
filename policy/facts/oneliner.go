package facts

import (
	"slices"
	"strings"
)

// maxOneliner bounds the texts of languages without extractor that are read.
const maxOneliner = 4096

// expect says what may stand next in a one-liner.
type expect int

const (
	expectUnclear  expect = iota // which of the two is not known
	expectTerm                   // a value
	expectOperator               // what joins values
)

// oneliner reads a short program of a language without extractor. It knows few
// words, and takes none for harmless that it does not know: what it cannot read
// to its end is not plain.
type oneliner struct {
	lang   Lang
	words  map[string]expect
	src    string
	at     int
	next   expect
	braces []bool // of those that are open: whether it is a subscript
	subs   bool   // a subscript may begin here
	loop   bool   // behind "for", whose variable a list may follow
	own    []string
	depth  int
}

// computes reports that a program of a language without extractor does no more
// than print, match, replace and compute.
func computes(lang Lang, src string) bool {
	words := onelinerWords[lang]
	if words == nil || len(src) > maxOneliner || strings.Contains(src, "__") || strings.Contains(src, "\n=") || strings.HasPrefix(src, "=") || strings.Contains(src, "?>") {
		return false
	}
	o := oneliner{lang: lang, words: words, src: src, next: expectTerm}
	return o.read()
}

// read reads all of the text.
func (o *oneliner) read() bool {
	for o.at < len(o.src) {
		if !o.token() {
			return false
		}
	}
	return len(o.braces) == 0
}

// rest is what is not read yet.
func (o *oneliner) rest() string { return o.src[o.at:] }

// peek is the character n behind the one that is read.
func (o *oneliner) peek(n int) byte {
	if o.at+n < len(o.src) {
		return o.src[o.at+n]
	}
	return 0
}

// become goes n on, and says what may stand next.
func (o *oneliner) become(n int, next expect) bool {
	o.at += n
	o.next, o.subs = next, false
	return true
}

// token reads one token.
func (o *oneliner) token() bool {
	c := o.peek(0)
	switch {
	case c == ' ' || c == '\t' || c == '\n':
		o.at++
		o.subs = false
		return true
	case c == '#':
		return o.comment()
	case isDigit(c):
		return o.next != expectOperator && o.become(digits(o.rest()), expectOperator)
	case isLetter(c):
		return o.word()
	case c == '\'' || c == '"':
		return o.quoted()
	}
	return o.sign(c)
}

// comment skips to the end of the line.
func (o *oneliner) comment() bool {
	if o.lang != "perl" && o.lang != "ruby" || o.at > 0 && !strings.ContainsRune(" \t\n;{}", rune(o.src[o.at-1])) {
		return false
	}
	n := strings.IndexByte(o.rest(), '\n')
	if n < 0 {
		n = len(o.rest())
	}
	o.at += n
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// digits is how long the number is that a text begins with: no letters behind
// it, which may be an operator.
func digits(s string) int {
	allowed := "0123456789_"
	n := 1
	if strings.HasPrefix(s, "0x") && len(s) > 2 && strings.IndexByte("0123456789abcdefABCDEF", s[2]) >= 0 {
		allowed, n = "0123456789abcdefABCDEF", 2
	}
	for n < len(s) && strings.IndexByte(allowed, s[n]) >= 0 {
		n++
	}
	return n
}

// name gives the name that begins n behind where the text is read.
func (o *oneliner) name(n int) string {
	end := o.at + n
	for end < len(o.src) && (isLetter(o.src[end]) || isDigit(o.src[end])) {
		end++
	}
	if o.at+n > len(o.src) {
		return ""
	}
	return o.src[o.at+n : end]
}

// word reads a word: one that is known, or one that stands for text.
func (o *oneliner) word() bool {
	w := o.name(0)
	after := strings.TrimLeft(o.src[o.at+len(w):], " ")
	if o.lang == "perl" {
		switch {
		case strings.HasPrefix(after, "=>"), o.inSubscript() && strings.HasPrefix(after, "}"):
			return !slices.Contains(reaching, w) && o.become(len(w), expectOperator)
		case w == "x" && o.next == expectOperator:
			return o.become(1, expectTerm)
		case slices.Contains(quoteWords, w):
			return o.next != expectOperator && o.quoteLike(w)
		}
	}
	if (w == "inject" || w == "reduce") && !foldsPlainly().MatchString(after) {
		return false
	}
	next, known := o.words[w]
	if !known {
		if o.next == expectOperator || !o.variable(w, after) {
			return false
		}
		if o.lang == "lua" {
			next = expectOperator // in Ruby, it may be a call where it is not set
		}
	}
	loop := w == "for" || w == "foreach" || o.loop && (w == "my" || w == "our")
	o.loop = loop
	return o.become(len(w), next)
}

// inSubscript: the innermost brace is one, and was just opened.
func (o *oneliner) inSubscript() bool {
	return len(o.braces) > 0 && o.braces[len(o.braces)-1] && strings.HasSuffix(strings.TrimRight(o.src[:o.at], " "), "{")
}

// variable: a short name that the text sets. A longer one may be a function's,
// which is called by that name all the same.
func (o *oneliner) variable(w, after string) bool {
	if o.lang != "ruby" && o.lang != "lua" || len(w) > 1 {
		return false
	}
	sets := strings.HasPrefix(after, "=") && !strings.HasPrefix(after, "==") || strings.HasPrefix(after, "|") || strings.HasPrefix(after, ",") || strings.HasPrefix(after, "in ")
	if sets && !slices.Contains(o.own, w) {
		o.own = append(o.own, w)
	}
	return slices.Contains(o.own, w)
}

// sign reads an operator, a bracket, or the sign before a variable's name.
func (o *oneliner) sign(c byte) bool {
	switch c {
	case '$', '@':
		return o.sigil(c)
	case '%', '&', '*', '<', '/', '?':
		return o.ambiguous(c)
	case '{':
		return o.opens()
	case '}':
		if len(o.braces) == 0 {
			return false
		}
		next := expectUnclear
		subscript := o.braces[len(o.braces)-1]
		if subscript {
			next = expectOperator
		}
		o.braces = o.braces[:len(o.braces)-1]
		o.become(1, next)
		o.subs = subscript
		return true
	case '(':
		if o.next == expectOperator && !o.loop {
			return false // what a value names is called
		}
		o.loop = false
		return o.become(1, expectTerm)
	case '[':
		o.loop = false
		return o.peek(1) != '[' && o.peek(1) != '=' && o.become(1, expectTerm)
	case ')':
		return o.become(1, expectOperator)
	case ']':
		o.become(1, expectOperator)
		o.subs = true
		return true
	case ';', ',', '|', '^', '!', '~', '>', '.':
		return o.become(1, expectTerm)
	}
	return o.joins(c)
}

// joins reads operators of two characters that mean something else by
// themselves.
func (o *oneliner) joins(c byte) bool {
	switch c {
	case '\\':
		return o.lang == "perl" && o.next == expectTerm && o.become(1, expectTerm)
	case ':':
		return o.peek(1) != ':' && o.become(1, expectTerm)
	case '=':
		return o.become(1, expectTerm)
	case '+', '-':
		switch {
		case o.peek(1) == c && o.lang == "lua":
			return false // a comment
		case o.peek(1) == c:
			return o.become(2, o.next)
		case c == '-' && o.peek(1) == '>':
			return o.lang == "perl" && o.member()
		case c == '-' && o.next != expectOperator && isLetter(o.peek(1)):
			return false // asks about a file
		}
		return o.become(1, expectTerm)
	}
	return false
}

// member is what stands behind an arrow: an item, and not a method or a call.
func (o *oneliner) member() bool {
	if o.next != expectOperator || o.peek(2) != '{' && o.peek(2) != '[' {
		return false
	}
	o.become(2, expectOperator)
	o.subs = true
	return true
}

// opens reads a brace that begins a block or a subscript.
func (o *oneliner) opens() bool {
	subscript := o.subs
	if o.next == expectOperator && !subscript && !strings.HasSuffix(strings.TrimRight(o.src[:o.at], " \n"), ")") {
		return false
	}
	o.braces, o.loop = append(o.braces, subscript), false
	return o.become(1, expectTerm)
}

// ambiguous reads what is an operator behind a value, and something else where
// a value is due.
func (o *oneliner) ambiguous(c byte) bool {
	if o.next == expectOperator {
		n := 1
		if o.peek(1) == c && c != '?' && c != '%' {
			n = 2
		}
		if c == '/' && o.lang == "php" && (n == 2 || o.peek(1) == '*') {
			return false // a comment
		}
		return o.become(n, expectTerm)
	}
	switch {
	case c == '<' && o.lang == "perl":
		for _, handle := range []string{"<>", "<STDIN>"} {
			if strings.HasPrefix(o.rest(), handle) {
				return o.become(len(handle), min(o.next*2, expectOperator))
			}
		}
	case c == '*' && o.lang == "ruby" && o.next == expectUnclear:
		return o.become(1, expectTerm)
	case o.next == expectUnclear:
	case c == '/' && (o.lang == "perl" || o.lang == "ruby" && o.behindSign()):
		return o.peek(1) != '/' && o.pattern(1)
	case c == '%' && o.lang == "perl" && (isLetter(o.peek(1)) || o.peek(1) == '$' || o.peek(1) == '{'):
		return o.sigil(c)
	case c == '&' && o.lang == "ruby":
		return o.peek(1) == ':' && isLetter(o.peek(2)) && o.become(2, expectTerm)
	}
	return false
}

// behindSign: no word stands before, which may be a value of its own in Ruby.
func (o *oneliner) behindSign() bool {
	before := strings.TrimRight(o.src[:o.at], " ")
	return before == "" || strings.IndexByte("(,~=!&|{;", before[len(before)-1]) >= 0
}
