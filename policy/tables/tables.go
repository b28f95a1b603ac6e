// Package tables reads the extractors' tables from YAML: paths and hosts with
// their classes, programs, and what the functions of each language do. It is
// strict: an unknown field, class reference or pattern is an error that names
// its file.
package tables

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"sync"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// section is one file under data/apis.
type section struct {
	Lang    facts.Lang           `json:"lang"`
	Modules map[string]string    `json:"modules"`
	APIs    map[string]facts.API `json:"apis"`
}

// common is what the other files hold between them.
type common struct {
	*facts.Tables
	Programs map[string]facts.Program `json:"programs"`
}

// Load reads data/paths.yaml, data/hosts.yaml, data/programs.yaml and
// data/apis/*.yaml. Its errors are [sandbox.Invalid].
func Load(fsys fs.FS) (*facts.Tables, error) {
	t := &facts.Tables{APIs: map[facts.Lang]*facts.Rows[facts.API]{}, Modules: map[facts.Lang]map[string]string{}}
	whole := common{Tables: t}
	shared := []string{"data/paths.yaml", "data/hosts.yaml", "data/programs.yaml"}
	names, err := fs.Glob(fsys, "data/apis/*.yaml")
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "list api tables: %w", err)
	}
	sections := make([]section, len(names))
	errs := make([]error, len(shared)+len(names))
	texts := make([][]byte, len(shared))
	var wg sync.WaitGroup
	for i, name := range shared {
		wg.Go(func() { texts[i], errs[i] = read(fsys, name) })
	}
	for i, name := range names {
		wg.Go(func() {
			j, err := read(fsys, name)
			if err == nil {
				err = decode(j, name, &sections[i])
			}
			errs[len(shared)+i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i, name := range shared {
		if err := decode(texts[i], name, &whole); err != nil {
			return nil, err
		}
	}
	t.Programs = facts.RowsOf(whole.Programs)
	for i, name := range names {
		s := &sections[i]
		if t.APIs[s.Lang] != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "%s: language %q has a table already", name, s.Lang)
		}
		t.APIs[s.Lang], t.Modules[s.Lang] = facts.RowsOf(s.APIs), s.Modules
	}
	if err := t.Check(); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "tables: %w", err)
	}
	return t, nil
}

// read gives a YAML file as JSON.
func read(fsys fs.FS, name string) ([]byte, error) {
	text, err := fs.ReadFile(fsys, path.Clean(name))
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read %s: %w", name, err)
	}
	j, err := toJSON(text)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "%s: %w", name, err)
	}
	return j, nil
}

// decode reads YAML, as JSON, into a value with JSON tags; an unknown key is an
// error.
func decode(j []byte, name string, into any) error {
	d := json.NewDecoder(bytes.NewReader(j))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return sandbox.Errorf(sandbox.Invalid, "%s: %w", name, err)
	}
	return nil
}
