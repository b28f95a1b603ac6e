// Package tables reads the extractors' tables from YAML: paths and hosts with
// their classes, programs, and what the functions of each language do. It is
// strict: an unknown field, class reference or pattern is an error that names
// its file.
package tables

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// section is one file under data/apis.
type section struct {
	Lang    facts.Lang           `json:"lang"`
	Modules map[string]string    `json:"modules"`
	APIs    map[string]facts.API `json:"apis"`
}

// Load reads data/paths.yaml, data/hosts.yaml, data/programs.yaml and
// data/apis/*.yaml. Its errors are [sandbox.Invalid].
func Load(fsys fs.FS) (*facts.Tables, error) {
	t := &facts.Tables{APIs: map[facts.Lang]map[string]facts.API{}, Modules: map[facts.Lang]map[string]string{}}
	for _, name := range []string{"data/paths.yaml", "data/hosts.yaml", "data/programs.yaml"} {
		if err := decode(fsys, name, t); err != nil {
			return nil, err
		}
	}
	names, err := fs.Glob(fsys, "data/apis/*.yaml")
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "list api tables: %w", err)
	}
	sections := make([]section, len(names))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { errs[i] = decode(fsys, name, &sections[i]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i, name := range names {
		s := &sections[i]
		if t.APIs[s.Lang] != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "%s: language %q has a table already", name, s.Lang)
		}
		t.APIs[s.Lang], t.Modules[s.Lang] = s.APIs, s.Modules
	}
	if err := t.Check(); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "tables: %w", err)
	}
	return t, nil
}

// decode reads YAML into a value with JSON tags; an unknown key is an error.
func decode(fsys fs.FS, name string, into any) error {
	text, err := fs.ReadFile(fsys, path.Clean(name))
	if err != nil {
		return sandbox.Errorf(sandbox.Invalid, "read %s: %w", name, err)
	}
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return sandbox.Errorf(sandbox.Invalid, "%s: %w", name, err)
	}
	j, err := json.Marshal(stringKeys(doc))
	if err != nil {
		return sandbox.Errorf(sandbox.Invalid, "%s: %w", name, err)
	}
	d := json.NewDecoder(bytes.NewReader(j))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return sandbox.Errorf(sandbox.Invalid, "%s: %w", name, err)
	}
	return nil
}

// stringKeys makes maps with keys of any type (yes, 7z) JSON's.
func stringKeys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = stringKeys(e)
		}
		return v
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[fmt.Sprint(k)] = stringKeys(e)
		}
		return m
	case []any:
		for i, e := range v {
			v[i] = stringKeys(e)
		}
	}
	return v
}
