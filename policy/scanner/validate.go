package scanner

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/caisson-dev/caisson/policy/facts"
)

// validate checks an answer against the text that it speaks of.
func validate(a *Answer, ask Ask, lim facts.Limits) error {
	d := a.Document
	if a.ID != ask.ID || d == nil {
		return fmt.Errorf("the answer is to request %d, not %d", a.ID, ask.ID)
	}
	sum := sha256.Sum256(ask.Code)
	if d.Meta.SHA256 != hex.EncodeToString(sum[:]) || d.Meta.Bytes != len(ask.Code) {
		return fmt.Errorf("the answer is about another text")
	}
	most := lim.Facts
	if most <= 0 {
		most = 20000
	}
	total := len(d.Imports) + len(d.Calls) + len(d.Files) + len(d.Net) + len(d.Commands) + len(d.Pipes) + len(d.Env) +
		len(d.Actions) + len(d.Dynamic) + len(d.Strings) + len(d.Structs)
	if total > most+64 {
		return fmt.Errorf("the answer has %d facts, at most %d are allowed", total, most)
	}
	if len(bytes.TrimSpace(ask.Code)) > 0 && d.Meta.Nodes == 0 && len(d.Dynamic) == 0 {
		return fmt.Errorf("nothing was recognised in a text that is not empty")
	}
	lines := 1 + bytes.Count(ask.Code, []byte{'\n'})
	return positions(d, lines)
}

func positions(d *facts.Document, lines int) error {
	check := func(a facts.At) error {
		if a.Line < 0 || a.Line > lines+1 || a.EndLine > lines+1 || a.Col < 0 || a.EndCol < 0 || a.EndLine < 0 || a.Depth < 0 || a.Depth > 64 || len(a.Via) > 256 {
			return fmt.Errorf("a fact stands at line %d of %d", a.Line, lines)
		}
		return nil
	}
	for i := range d.Files {
		if err := check(d.Files[i].At); err != nil {
			return err
		}
	}
	for i := range d.Net {
		if err := check(d.Net[i].At); err != nil {
			return err
		}
	}
	for i := range d.Commands {
		if err := check(d.Commands[i].At); err != nil {
			return err
		}
	}
	for i := range d.Calls {
		if err := check(d.Calls[i].At); err != nil {
			return err
		}
	}
	for i := range d.Actions {
		if err := check(d.Actions[i].At); err != nil {
			return err
		}
	}
	for i := range d.Dynamic {
		if err := check(d.Dynamic[i].At); err != nil {
			return err
		}
	}
	return nil
}
