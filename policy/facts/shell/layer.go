package shell

import (
	"iter"
	"maps"
)

// layer is a map of names on top of another, which branches share. A zero
// value on top hides what is below. What is below does not change while a
// layer on top of it is in use.
type layer[V any] struct {
	own map[string]V
	up  *layer[V]
}

func (l *layer[V]) get(name string) V {
	for ; l != nil; l = l.up {
		if v, ok := l.own[name]; ok {
			return v
		}
	}
	var none V
	return none
}

func (l *layer[V]) set(name string, v V) {
	if l.own == nil {
		l.own = map[string]V{}
	}
	l.own[name] = v
}

func (l *layer[V]) drop(name string) {
	var none V
	l.set(name, none)
}

// all gives each name with what is on top.
func (l *layer[V]) all() iter.Seq2[string, V] { return maps.All(l.flat()) }

// flat is all of it as one map.
func (l *layer[V]) flat() map[string]V {
	flat := map[string]V{}
	var lower []*layer[V]
	for ; l != nil; l = l.up {
		lower = append(lower, l)
	}
	for i := len(lower) - 1; i >= 0; i-- {
		maps.Copy(flat, lower[i].own)
	}
	return flat
}
