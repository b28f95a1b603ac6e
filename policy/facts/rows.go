package facts

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
)

// Rows is a table by name. One made by [RowsOf] holds values; one that came
// encoded decodes a row when it is first asked for, because a scan needs a few
// of thousands and a scanner starts for each owner. The zero value and nil
// have no rows. It is safe for concurrent use.
type Rows[T any] struct {
	encoded map[string]string // as JSON; read only, nil where rows has all

	mu   sync.RWMutex
	rows map[string]T // all of them; read only. Else those that were asked for
}

// RowsOf gives a table of these rows, which must not be changed afterwards.
func RowsOf[T any](rows map[string]T) *Rows[T] { return &Rows[T]{rows: rows} }

// Get gives a row. A row that cannot be decoded panics: tables come from the
// process that started this one, and without them harm would be overlooked.
func (r *Rows[T]) Get(name string) (T, bool) {
	if r == nil {
		var none T
		return none, false
	}
	if r.encoded == nil {
		row, ok := r.rows[name]
		return row, ok
	}
	text, ok := r.encoded[name]
	if !ok { // as for most names of a program
		var none T
		return none, false
	}
	r.mu.RLock()
	row, ok := r.rows[name]
	r.mu.RUnlock()
	if ok {
		return row, true
	}
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		panic(fmt.Sprintf("tables: row %q: %v", name, err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows[name] = row
	return row, true
}

// Len is the number of rows.
func (r *Rows[T]) Len() int {
	if r == nil {
		return 0
	}
	if r.encoded != nil {
		return len(r.encoded)
	}
	return len(r.rows)
}

// Names gives the rows' names, in no order, and decodes nothing.
func (r *Rows[T]) Names() iter.Seq[string] {
	if r == nil {
		return func(func(string) bool) {}
	}
	if r.encoded != nil {
		return maps.Keys(r.encoded)
	}
	return maps.Keys(r.rows)
}

// All gives the rows in the order of their names.
func (r *Rows[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range slices.Sorted(r.Names()) {
			if row, _ := r.Get(name); !yield(name, row) {
				return
			}
		}
	}
}
