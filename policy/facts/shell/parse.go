package shell

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

var dialects = []syntax.LangVariant{syntax.LangBash, syntax.LangMirBSDKorn, syntax.LangPOSIX, syntax.LangZsh, syntax.LangBats}

// parse tries the dialects in turn. Where none parses the text, it returns the
// statements of the longest prefix that one of them could.
func parse(src []byte) ([]*syntax.Stmt, error) {
	if i := slices.Index(src, 0); i >= 0 {
		src = bytes.ReplaceAll(src, []byte{0}, nil)
	}
	var best []*syntax.Stmt
	end, why := uint(0), errUnparsable
	for _, d := range dialects {
		stmts, err := parseAs(src, d)
		if err != nil && d == syntax.LangBash {
			stmts, err = parseParted(src, stmts, err)
		}
		if err == nil {
			return stmts, nil
		}
		n := len(stmts)
		if n > 0 && stmts[n-1].End().Offset() > end {
			best, end = stmts, stmts[n-1].End().Offset()
		} else if d != syntax.LangBash {
			continue
		}
		if why = errUnparsable; !errors.Is(err, errUnparsable) {
			why = fmt.Errorf("%w: %w", errUnparsable, err)
		}
	}
	return best, why
}

func parseAs(src []byte, d syntax.LangVariant) (stmts []*syntax.Stmt, err error) {
	defer func() {
		if recover() != nil { // a fault in the parser costs this text, not the scanner
			err = errUnparsable
		}
	}()
	for s, err := range syntax.NewParser(syntax.Variant(d)).StmtsSeq(bytes.NewReader(src)) {
		if err != nil {
			return stmts, err
		}
		stmts = append(stmts, s)
	}
	return stmts, nil
}

// maxParted is how many substitutions of one text are tried as commands.
const maxParted = 8

// parseParted parses a text again in which $(( begins a substitution whose first
// command stands in a subshell, $((a; b) | c), as the shells take it where it
// does not end in )).
func parseParted(src []byte, stmts []*syntax.Stmt, err error) ([]*syntax.Stmt, error) {
	was, why := stmts, err
	var parted []uint
	for range maxParted {
		at := bytes.LastIndex(src[:min(fault(err)+len("$(("), len(src))], []byte("$(("))
		if at < 0 {
			break
		}
		src = slices.Concat(src[:at+2], []byte(" "), src[at+2:])
		for i := range parted {
			if parted[i] > uint(at) {
				parted[i]++
			}
		}
		parted = append(parted, uint(at))
		if stmts, err = parseAs(src, syntax.LangBash); err == nil {
			if commandsAt(src, stmts, parted) {
				return stmts, nil
			}
			break
		}
	}
	return was, why
}

// fault is where a text does not parse.
func fault(err error) int {
	var wrong syntax.ParseError
	var foreign syntax.LangError
	switch {
	case errors.As(err, &wrong):
		return int(wrong.Pos.Offset())
	case errors.As(err, &foreign):
		return int(foreign.Pos.Offset())
	}
	return 0
}

// commandsAt reports that substitutions of commands begin at all these places,
// and that none of them ends as one of arithmetic does.
func commandsAt(src []byte, stmts []*syntax.Stmt, places []uint) bool {
	n := 0
	for _, s := range stmts {
		syntax.Walk(s, func(node syntax.Node) bool {
			c, ok := node.(*syntax.CmdSubst)
			if ok && slices.Contains(places, c.Left.Offset()) && c.Right.Offset() > 0 && src[c.Right.Offset()-1] != ')' {
				n++
			}
			return true
		})
	}
	return n == len(places)
}
