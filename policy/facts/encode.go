package facts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/caisson-dev/caisson/internal/packed"
)

// Encoded tables are a preface as JSON, then the programs, then the number of
// languages and for each its name and its functions. A table is the number of
// its rows and for each its name and its JSON.

// preface is what of encoded tables is decoded at once.
type preface struct {
	*Tables
	Runners map[Lang]map[string]bool `json:"runners"`
}

// MarshalBinary implements [encoding.BinaryMarshaler].
func (t *Tables) MarshalBinary() ([]byte, error) {
	h := preface{t, map[Lang]map[string]bool{}}
	for lang := range t.APIs {
		h.Runners[lang] = t.Runners(lang)
	}
	j, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode tables: %w", err)
	}
	b := packed.AppendText(nil, j)
	if b, err = appendRows(b, t.Programs); err != nil {
		return nil, err
	}
	b = packed.AppendInt(b, len(t.APIs))
	for _, lang := range slices.Sorted(maps.Keys(t.APIs)) {
		b = packed.AppendText(b, lang)
		if b, err = appendRows(b, t.APIs[lang]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func appendRows[T any](b []byte, r *Rows[T]) ([]byte, error) {
	b = packed.AppendInt(b, r.Len())
	for name, row := range r.All() {
		j, err := json.Marshal(row)
		if err != nil {
			return nil, fmt.Errorf("encode tables: row %q: %w", name, err)
		}
		b = packed.AppendText(packed.AppendText(b, name), j)
	}
	return b, nil
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. Rows are decoded
// when they are asked for.
func (t *Tables) UnmarshalBinary(b []byte) error {
	r := packed.NewReader(string(b))
	h := preface{Tables: t}
	if err := json.Unmarshal([]byte(r.Text()), &h); err != nil {
		return fmt.Errorf("decode tables: %w", err)
	}
	t.runners = h.Runners
	t.Programs = readRows[Program](r)
	t.APIs = map[Lang]*Rows[API]{}
	for range r.Len() {
		lang := Lang(r.Text())
		t.APIs[lang] = readRows[API](r)
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode tables: %w", err)
	}
	return nil
}

func readRows[T any](r *packed.Reader) *Rows[T] {
	n := r.Len()
	rows := &Rows[T]{encoded: make(map[string]string, n), rows: map[string]T{}}
	for range n {
		name := r.Text()
		rows.encoded[name] = r.Text()
	}
	return rows
}
