package scanner

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/caisson-dev/caisson/policy/facts"
)

// perFact is how many objects of JSON a fact has at most, itself included: its
// arguments, say, or redirections. Most have one.
const perFact = 16

// decode reads an answer that is no larger in memory than its facts may be: an
// empty fact takes three bytes to send, and some hundred to keep.
func decode(body []byte, lim facts.Limits) (*Answer, error) {
	if n, most := objects(body), perFact*mostFacts(lim); n > most {
		return nil, fmt.Errorf("the answer has %d objects, at most %d are allowed", n, most)
	}
	a := new(Answer)
	if err := json.Unmarshal(body, a); err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	return a, nil
}

// objects counts the objects in a text of JSON: braces that no string has.
func objects(body []byte) (n int) {
	quoted := false
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++ // stands in strings only
		case '{':
			if !quoted {
				n++
			}
		}
	}
	return n
}

// mostFacts is how many facts an answer may have: some that say what was left
// out come on top of the limit.
func mostFacts(lim facts.Limits) int {
	if lim.Facts <= 0 {
		lim.Facts = 20000
	}
	return lim.Facts + 64
}

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
	total := len(d.Imports) + len(d.Calls) + len(d.Files) + len(d.Net) + len(d.Commands) + len(d.Pipes) + len(d.Env) +
		len(d.Actions) + len(d.Dynamic) + len(d.Strings) + len(d.Structs)
	if most := mostFacts(lim); total > most {
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
