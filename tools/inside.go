package tools

import (
	"embed"
	"encoding/json"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

//go:embed inside
var inside embed.FS

// declared is a tool as the modules inside read it.
type declared struct {
	Name        string          `json:"name"`
	Inside      string          `json:"inside"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
}

// Modules are the files that an exec finds which may call tools, by their names: what
// Python and Node load, and what the program tool reads. Errors: Internal.
func (s *Set) Modules() (map[string][]byte, error) {
	list, names := []declared{}, []string{}
	for _, t := range s.Tools() {
		list = append(list, declared{t.Name, Inside(t.Name), t.Description, t.Parameters, t.Result})
		names = append(names, Inside(t.Name))
	}
	spec, err := json.Marshal(list)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "write down the tools: %w", err)
	}
	quoted, err := json.Marshal(names)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "write down the tools: %w", err)
	}
	files := map[string][]byte{"tools.json": spec}
	entries, err := inside.ReadDir("inside")
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "read the modules: %w", err)
	}
	for _, e := range entries {
		text, err := inside.ReadFile("inside/" + e.Name())
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Internal, "read the modules: %w", err)
		}
		files[e.Name()] = []byte(strings.ReplaceAll(string(text), "@NAMES@", string(quoted)))
	}
	return files, nil
}
