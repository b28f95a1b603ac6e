package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// braces does brace expansion.
func (w *walker) braces(word *syntax.Word) []*syntax.Word {
	if !mayBrace(word) {
		return []*syntax.Word{word}
	}
	c := syntax.Word{Parts: word.Parts}
	if !syntax.SplitBraces(&c) {
		return []*syntax.Word{word}
	}
	out, ok := expandBraces(c.Parts)
	if !ok {
		w.b.Limit("brace expansion", w.pos(word))
		return []*syntax.Word{word}
	}
	return out
}

func mayBrace(word *syntax.Word) bool {
	for _, part := range word.Parts {
		if l, ok := part.(*syntax.Lit); ok && strings.Contains(l.Value, "{") {
			return true
		}
	}
	return false
}

// expandBraces gives every word that parts stand for, at most maxWords.
func expandBraces(parts []syntax.WordPart) ([]*syntax.Word, bool) {
	out := []*syntax.Word{{}}
	for _, part := range parts {
		brace, ok := part.(*syntax.BraceExp)
		if !ok {
			for _, word := range out {
				word.Parts = append(word.Parts, part)
			}
			continue
		}
		elems, ok := braceElems(brace)
		if !ok || len(out)*len(elems) > maxWords {
			return nil, false
		}
		next := make([]*syntax.Word, 0, len(out)*len(elems))
		for _, head := range out {
			for _, tail := range elems {
				n := len(head.Parts)
				next = append(next, &syntax.Word{Parts: append(head.Parts[:n:n], tail.Parts...)})
			}
		}
		out = next
	}
	for _, word := range out {
		if len(word.Parts) == 0 {
			word.Parts = []syntax.WordPart{&syntax.Lit{}}
		}
	}
	return out, true
}

func braceElems(brace *syntax.BraceExp) ([]*syntax.Word, bool) {
	if brace.Sequence {
		return braceSequence(brace)
	}
	var out []*syntax.Word
	for _, elem := range brace.Elems {
		words, ok := expandBraces(elem.Parts)
		if !ok || len(out)+len(words) > maxWords {
			return nil, false
		}
		out = append(out, words...)
	}
	return out, true
}

// braceSequence is {a..b..step} over numbers or letters.
func braceSequence(brace *syntax.BraceExp) ([]*syntax.Word, bool) {
	from, to, step := brace.Elems[0].Lit(), brace.Elems[1].Lit(), 1
	if len(brace.Elems) > 2 {
		step, _ = strconv.Atoi(brace.Elems[2].Lit())
		step = max(step, -step, 1)
	}
	lo, err1 := strconv.Atoi(from)
	hi, err2 := strconv.Atoi(to)
	letters := err1 != nil || err2 != nil
	if letters {
		if len(from) != 1 || len(to) != 1 {
			return nil, false
		}
		lo, hi = int(from[0]), int(to[0])
	}
	if (hi-lo)/step > maxWords || (lo-hi)/step > maxWords {
		return nil, false
	}
	width := 0
	if !letters && (len(from) > 1 && from[0] == '0' || len(to) > 1 && to[0] == '0') {
		width = max(len(from), len(to))
	}
	var out []*syntax.Word
	for i := lo; ; i += step {
		s := string(rune(i))
		if !letters {
			s = strconv.Itoa(i)
			s = strings.Repeat("0", max(0, width-len(s))) + s
		}
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: s}}})
		if lo <= hi && i+step > hi || lo > hi && i-step < hi {
			return out, true
		}
		if lo > hi {
			i -= 2 * step
		}
	}
}
