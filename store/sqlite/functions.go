package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/caisson-dev/caisson/sandbox"
)

// functions writes functions and removes them.
func (m *maker) functions(ctx context.Context, c sandbox.Transaction) error {
	if c.PutFunction != nil {
		f := c.PutFunction.Function
		data, err := encode(f)
		if err != nil {
			return err
		}
		code, err := encode(c.PutFunction.Files)
		if err != nil {
			return err
		}
		n, err := m.exec(ctx, `INSERT INTO functions (owner, name, version, data, code) SELECT ?1, ?2, ?3, ?4, ?5
			WHERE coalesce((SELECT version FROM functions WHERE owner = ?1 AND name = ?2), 0) = ?3 - 1
			ON CONFLICT DO UPDATE SET version = excluded.version, data = excluded.data, code = excluded.code`, f.Owner, f.Name, f.Version, data, code)
		if err != nil {
			return err
		}
		if n == 0 {
			return sandbox.Errorf(sandbox.Conflict, "function %s is of another version than %d", f.Name, f.Version-1)
		}
	}
	if gone := c.DeleteFunction; gone != nil {
		n, err := m.exec(ctx, "DELETE FROM functions WHERE owner = ? AND name = ?", gone.Owner, gone.Name)
		if err != nil {
			return err
		}
		if n == 0 {
			return noFunction(gone.Name)
		}
	}
	return nil
}

func noFunction(name string) error {
	return sandbox.Errorf(sandbox.NotFound, "no function %s", name).WithHint("see those there are with: caisson function list")
}

// Function returns an owner's function. Errors: NotFound.
func (s *Store) Function(ctx context.Context, owner, name string) (sandbox.Function, error) {
	var f sandbox.Function
	err := s.readFunction(ctx, "SELECT data FROM functions WHERE owner = ? AND name = ?", &f, name, owner, name)
	return f, err
}

// FunctionFiles returns the files of a version. Errors: NotFound where it is not
// the one that is kept.
func (s *Store) FunctionFiles(ctx context.Context, f sandbox.Function) ([]sandbox.File, error) {
	var files []sandbox.File
	err := s.readFunction(ctx, "SELECT code FROM functions WHERE owner = ? AND name = ? AND json_extract(data, '$.id') = ?", &files, f.Name, f.Owner, f.Name, string(f.ID))
	return files, err
}

// readFunction reads the one row of JSON that a query selects.
func (s *Store) readFunction(ctx context.Context, query string, into any, name string, args ...any) error {
	if err := s.usable(); err != nil {
		return err
	}
	var text string
	err := s.read.QueryRowContext(ctx, query, args...).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return noFunction(name)
	}
	if err != nil {
		return s.class(err, "read a function")
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return sandbox.Errorf(sandbox.Internal, "read function %s: %w", name, err)
	}
	return nil
}

// Functions returns the functions that a filter selects, by name.
func (s *Store) Functions(ctx context.Context, f sandbox.FunctionFilter) ([]sandbox.Function, error) {
	var c conditions
	c.of(f.Owner, f.Labels)
	if f.After != "" {
		c.add("name > ?", f.After)
	}
	return listOf[sandbox.Function](ctx, s, "SELECT data FROM functions"+c.where()+" ORDER BY name, owner"+limit(f.Limit), c.args)
}
