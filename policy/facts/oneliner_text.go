package facts

import (
	"slices"
	"strings"
)

// quoteWords are words of Perl that a text in quotes of any kind follows.
var quoteWords = []string{"m", "s", "qr", "y", "tr", "q", "qq", "qw"}

// reaching are variables that hold more than the text's own, or do something by
// being set.
var reaching = []string{"ENV", "INC", "SIG", "ARGV", "ARGVOUT", "GLOBALS", "DATA", "0"}

// sigil reads a variable with the sign before its name.
func (o *oneliner) sigil(c byte) bool {
	if o.next == expectOperator {
		return false
	}
	n := 1
	if c == '$' && o.peek(1) == '#' { // $#list
		n++
	}
	for o.peek(n) == '$' && (isLetter(o.peek(n+1)) || o.peek(n+1) == '$' || o.peek(n+1) == '{') {
		n++
	}
	loop := o.loop
	switch name := o.name(n); {
	case name != "":
		if !o.mayName(name) || isDigit(name[0]) && strings.Trim(name, "0123456789") != "" || strings.HasPrefix(o.src[o.at+n+len(name):], "'") || strings.HasPrefix(o.src[o.at+n+len(name):], "::") {
			return false
		}
		o.become(n+len(name), expectOperator)
	case o.lang == "perl" && o.peek(n) == '{':
		o.become(n, expectTerm)
	case o.lang != "php" && o.lang != "lua" && c == '$' && n == 1 && o.peek(1) != 0 && strings.IndexByte("./,\\|&;!@\"'+", o.peek(1)) >= 0:
		o.become(2, expectOperator)
	default:
		return false
	}
	o.subs, o.loop = o.lang != "ruby", loop
	return true
}

// mayName: a variable of the text's own, or one that the language sets.
func (o *oneliner) mayName(name string) bool {
	switch o.lang {
	case "perl":
		return !slices.Contains(reaching, name)
	case "php":
		return !slices.Contains(reaching, name) && name[0] != '_'
	case "ruby":
		return slices.Contains([]string{"_", "stdin", "stdout", "stderr"}, name) || isDigit(name[0]) && name != "0"
	default:
		return false
	}
}

// quoted reads a text in quotes.
func (o *oneliner) quoted() bool {
	if o.next == expectOperator || o.at > 0 && (isLetter(o.src[o.at-1]) || isDigit(o.src[o.at-1])) {
		return false
	}
	quote := o.peek(0)
	end := closing(o.src, o.at+1, quote)
	if end < 0 || quote == '"' && !o.filled(o.src[o.at+1:end]) {
		return false
	}
	return o.become(end+1-o.at, expectOperator)
}

// closing is where a text ends that a quote ends, or -1.
func closing(src string, from int, quote byte) int {
	for i := from; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case quote:
			return i
		}
	}
	return -1
}

// filled reports that what is put into a text where it runs are variables, or
// code that computes.
func (o *oneliner) filled(s string) bool {
	switch o.lang {
	case "ruby":
		return o.filledRuby(s)
	case "php":
		return !strings.Contains(s, "{$") && !strings.Contains(s, "${") && !strings.Contains(s, "$_") && !strings.Contains(s, "$GLOBALS")
	case "perl":
		return o.filledPerl(s)
	default:
		return true
	}
}

// filledRuby: the code in #{ } is read as the program is.
func (o *oneliner) filledRuby(s string) bool {
	for strings.Contains(s, "#") {
		_, s, _ = strings.Cut(s, "#")
		if strings.HasPrefix(s, "$") || strings.HasPrefix(s, "@") {
			return false
		}
		if !strings.HasPrefix(s, "{") {
			continue
		}
		code, after, ok := strings.Cut(s[1:], "}")
		if !ok || strings.ContainsAny(code, "{\"'\\") || !o.within(code) {
			return false
		}
		s = after
	}
	return true
}

// within reads code that stands within the text.
func (o *oneliner) within(code string) bool {
	inner := oneliner{lang: o.lang, words: o.words, src: code, next: expectTerm, own: o.own, depth: o.depth + 1}
	return inner.depth < 4 && inner.read()
}

// filledPerl: variables and their items, by a name or a number.
func (o *oneliner) filledPerl(s string) bool {
	if strings.Contains(s, "(?{") || strings.Contains(s, "(??{") || strings.Contains(s, "(*{") || strings.Contains(s, "(?p{") {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '$', '@':
			n, ok := o.filling(s[i+1:])
			if !ok {
				return false
			}
			i += n
		}
	}
	return true
}

// filling reads a variable within a text, behind its sign.
func (o *oneliner) filling(s string) (int, bool) {
	i := 0
	for i < len(s) && s[i] == '$' {
		i++
	}
	braced := i < len(s) && s[i] == '{'
	if braced {
		i++
	}
	begin := i
	for i < len(s) && (isLetter(s[i]) || isDigit(s[i])) {
		i++
	}
	name := s[begin:i]
	switch {
	case braced && (name == "" || i == len(s) || s[i] != '}'), slices.Contains(reaching, name), strings.HasPrefix(s[i:], "::"):
		return 0, false
	case braced:
		i++
	case name == "" && strings.HasPrefix(s[i:], "#"), strings.HasPrefix(s[i:], "^"):
		return 0, false
	case name == "":
		return begin, !subscripted(s[begin:])
	}
	for {
		after := strings.TrimPrefix(s[i:], "->")
		if after == "" || after[0] != '[' && after[0] != '{' {
			return i, true
		}
		end := strings.IndexAny(after, "]}")
		if end < 0 || !itemName(after[1:end]) {
			return 0, false
		}
		i = len(s) - len(after) + end + 1
	}
}

// subscripted: an item is meant of a variable whose name is a sign.
func subscripted(s string) bool {
	s = strings.TrimLeft(s, " ")
	return strings.HasPrefix(s, "{") || len(s) > 1 && (s[1] == '[' || s[1] == '{' || strings.HasPrefix(s[1:], "->"))
}

// itemName: a name, a number or a variable, which says which item is meant.
func itemName(s string) bool {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "-"), "$")
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r > 127 || !isLetter(byte(r)) && !isDigit(byte(r)) && r != ',' }) < 0
}

// pattern reads a regular expression that begins n behind; what follows it are
// letters that say how it is meant.
func (o *oneliner) pattern(n int) bool {
	end := closing(o.src, o.at+n, '/')
	if end < 0 || !o.filled(o.src[o.at+n:end]) {
		return false
	}
	o.at = end + 1
	return o.modifiers("gimsxcoaun") && o.become(0, expectOperator)
}

// modifiers skips letters behind a pattern, all of which must be allowed.
func (o *oneliner) modifiers(allowed string) bool {
	letters := o.name(0)
	o.at += len(letters)
	return strings.Trim(letters, allowed) == ""
}

// quoteLike reads m/…/, s/…/…/ and their like, whatever stands for the slash.
func (o *oneliner) quoteLike(word string) bool {
	o.at += len(word)
	first, ok := o.between()
	if !ok {
		return false
	}
	switch word {
	case "q", "qw":
		return o.become(0, expectOperator)
	case "qq":
		return o.filled(first.text) && o.become(0, expectOperator)
	case "m", "qr":
		return o.filled(first.text) && o.modifiers("gimsxcoaun") && o.become(0, expectOperator)
	}
	second := first
	if first.paired {
		o.at += len(o.rest()) - len(strings.TrimLeft(o.rest(), " \n"))
	} else {
		o.at--
	}
	if second, ok = o.between(); !ok || second.paired != first.paired {
		return false
	}
	if word != "s" {
		return o.modifiers("cdsr") && o.become(0, expectOperator)
	}
	letters := o.name(0)
	replaced := o.filled(second.text)
	if strings.Contains(letters, "e") {
		replaced = strings.Count(letters, "e") == 1 && !strings.Contains(second.text, "\\") && o.within(second.text)
	}
	return o.filled(first.text) && replaced && o.modifiers("gimsxcoaunre") && o.become(0, expectOperator)
}

// delimited is a text between two signs.
type delimited struct {
	text   string
	paired bool // of two signs that belong together
}

// between reads a text from its first sign to its last.
func (o *oneliner) between() (delimited, bool) {
	open := o.peek(0)
	if open == 0 || open == '\'' || open == '\\' || strings.IndexByte("/{([|!#,@%~^:\"+", open) < 0 {
		return delimited{}, false
	}
	end, paired := open, false
	if i := strings.IndexByte("{([", open); i >= 0 {
		end, paired = "})]"[i], true
	}
	depth := 0
	for i := o.at + 1; i < len(o.src); i++ {
		switch c := o.src[i]; {
		case c == '\\':
			i++
		case c == end && depth == 0:
			text := o.src[o.at+1 : i]
			o.at = i + 1
			return delimited{text, paired}, true
		case c == end:
			depth--
		case c == open && paired:
			depth++
		}
	}
	return delimited{}, false
}
