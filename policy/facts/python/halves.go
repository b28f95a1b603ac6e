package python

import (
	"runtime"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/internal/syntaxtree"
)

const (
	// Texts of these sizes are parsed as two halves at once: a smaller one is done
	// before a second processor has begun, and of a larger one it would be felt that
	// it is parsed twice where its halves are not two texts.
	minHalves = 3 << 10
	maxHalves = 128 << 10

	halfTime = 100 * time.Millisecond // of a processor

	// maxPlaces bounds how many lines are looked at for one between the halves:
	// each look reads the text before it.
	maxPlaces = 8
)

// halves parses the two halves of a text at once. It gives nil where there is no
// line between them at which a statement of the module begins, and where a half
// has an error: a cut through a string, a bracket or a statement leaves one. Two
// texts without errors are together one without errors, and of the same nodes,
// since a module is a list of statements and each is read without the others.
func (g *language) halves(src string, lim syntaxtree.Limits) *tree {
	if len(src) < minHalves || len(src) > maxHalves || runtime.GOMAXPROCS(0) < 2 {
		return nil
	}
	cut := middle(src)
	if cut < 0 {
		return nil
	}
	lim.CPU = min(lim.CPU, halfTime)
	behind := make(chan *tree, 1)
	go func() {
		behind <- g.whole(src[cut:], lim, start{uint32(cut), uint32(strings.Count(src[:cut], "\n"))})
	}()
	before := g.whole(src[:cut], lim, start{})
	return ofHalves(src, before, <-behind)
}

// ofHalves is the tree of a text whose halves' trees these are, or nil.
func ofHalves(src string, a, b *tree) *tree {
	for _, t := range [...]*tree{a, b} {
		if t == nil || t.errors > 0 || t.cut || t.root.first == nil {
			return nil
		}
	}
	last := a.root.first
	for last.next != nil {
		last = last.next
	}
	last.next = b.root.first
	a.root.end, a.root.erow, a.root.ecol = b.root.end, b.root.erow, b.root.ecol
	a.root.size += b.root.size - 1
	a.nodes += b.nodes - 1
	a.src = src
	return a
}

// middle is where the line begins that is nearest to the middle of those at
// which a statement of the module seems to begin, or -1.
func middle(src string) int {
	half, places := len(src)/2, 0
	for k := range half {
		for _, at := range [...]int{half + k, half - k} {
			if at >= len(src) || !begins(src, at) {
				continue
			}
			if strings.Count(src[:at], `"""`)%2 == 0 && strings.Count(src[:at], "'''")%2 == 0 {
				return at
			}
			if places++; places == maxPlaces {
				return -1
			}
		}
	}
	return -1
}

// begins reports a name or a decorator in the first column, behind an empty
// line. What goes on with the statement above is none.
func begins(src string, at int) bool {
	if at < 2 || src[at-1] != '\n' || src[at-2] != '\n' {
		return false
	}
	c := src[at]
	if c != '@' && c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') {
		return false
	}
	for _, word := range [...]string{"else", "elif", "except", "finally", "case"} {
		if strings.HasPrefix(src[at:], word) {
			return false
		}
	}
	// A comment belongs to the block above or to what is below: the parser sees
	// that only where it has both.
	above := strings.TrimRight(src[:at], " \t\r\n\f")
	line := strings.TrimLeft(above[strings.LastIndexByte(above, '\n')+1:], " \t\f")
	return !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, `\`)
}
