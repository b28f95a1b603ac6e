package config

import (
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/sandbox"
)

// mostReady is more sandboxes of a kind than any host keeps ready.
const mostReady = 1000

// pool takes in how many sandboxes are kept ready. Whether a language or a runtime is
// there, their users find out, and tell by [File.Bad].
func (f *File) pool(n *yaml.Node) error {
	if n.Kind == 0 {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return f.bad(n.Line, "pool: write languages, or LANGUAGE/RUNTIME, each with a number of sandboxes")
	}
	seen := map[sandbox.PoolWant]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		size, err := strconv.Atoi(v.Value)
		if err != nil || size < 0 || size > mostReady {
			return f.bad(v.Line, "pool: %s cannot be %q: a number up to %d", key.Value, v.Value, mostReady)
		}
		var w sandbox.PoolWant
		w.Language, w.Runtime, _ = strings.Cut(key.Value, "/")
		if w.Language == "" || strings.HasSuffix(key.Value, "/") || seen[w] {
			return f.bad(key.Line, "pool: %q is no language, or stands twice", key.Value)
		}
		seen[w] = true
		if w.Size = size; size > 0 {
			f.Pool = append(f.Pool, w)
		}
	}
	return nil
}
