package tables

import (
	"encoding/json"
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/internal/onedoc"
)

// toJSON gives a YAML text as JSON. It goes from node to node: values in between
// take a process that starts several milliseconds.
func toJSON(text []byte) ([]byte, error) {
	var doc yaml.Node
	if err := onedoc.Decode(text, &doc); err != nil {
		return nil, err
	}
	return appendNode(make([]byte, 0, 2*len(text)), &doc, 0)
}

// mostNested bounds what stands in what, and so aliases of what they stand in;
// mostJSON what aliases of aliases can come to.
const (
	mostNested = 64
	mostJSON   = 64 << 20
)

func appendNode(b []byte, n *yaml.Node, depth int) ([]byte, error) {
	if depth > mostNested {
		return nil, fmt.Errorf("line %d: nested more than %d deep", n.Line, mostNested)
	}
	if len(b) > mostJSON {
		return nil, fmt.Errorf("line %d: its aliases come to more than %d bytes", n.Line, mostJSON)
	}
	switch n.Kind {
	case 0:
		return append(b, "null"...), nil // an empty text
	case yaml.DocumentNode:
		return appendNode(b, n.Content[0], depth+1)
	case yaml.AliasNode:
		return appendNode(b, n.Alias, depth+1)
	case yaml.MappingNode:
		return appendMapping(b, n, depth)
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, e := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendNode(b, e, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case yaml.ScalarNode:
	}
	if n.ShortTag() == "!!str" {
		return appendText(b, n.Value), nil
	}
	v, err := valueOf(n)
	if err != nil {
		return nil, err
	}
	j, err := json.Marshal(v)
	return append(b, j...), err
}

func appendMapping(b []byte, n *yaml.Node, depth int) ([]byte, error) {
	b = append(b, '{')
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := keyOf(n.Content[i])
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, fmt.Errorf("line %d: %q stands there twice", n.Content[i].Line, key)
		}
		seen[key] = true
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, key), ':')
		if b, err = appendNode(b, n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// keyOf is a key as text, whatever type YAML gives it (no is a program of some).
func keyOf(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!merge" {
		return "", fmt.Errorf("line %d: a key must be a plain word", n.Line)
	}
	if n.ShortTag() == "!!str" {
		return n.Value, nil
	}
	v, err := valueOf(n)
	return fmt.Sprint(v), err
}

func valueOf(n *yaml.Node) (any, error) {
	var v any
	err := n.Decode(&v)
	return v, err
}

// appendText quotes a text, which mostly is plain.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			j, _ := json.Marshal(s) // of a text, which never fails
			return append(b, j...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
