package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/caisson-dev/caisson/sandbox"
)

// tokens makes and ends tokens.
func (m *maker) tokens(ctx context.Context, c sandbox.Transaction) error {
	if t := c.CreateToken; t != nil {
		text, err := encode(t.Token)
		if err != nil {
			return err
		}
		n, err := m.exec(ctx, "INSERT INTO tokens VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", string(t.ID), t.Name, t.Hash, text)
		if err != nil {
			return err
		}
		if n == 0 {
			return sandbox.Errorf(sandbox.Conflict, "a token %s exists", t.Name)
		}
	}
	if id := c.DeleteToken; id != "" {
		n, err := m.exec(ctx, "DELETE FROM tokens WHERE id = ?", string(id))
		if err != nil {
			return err
		}
		if n == 0 {
			return sandbox.Errorf(sandbox.NotFound, "no token %s", id.Short())
		}
	}
	return nil
}

// Tokens returns all tokens, by name.
func (s *Store) Tokens(ctx context.Context) ([]sandbox.Token, error) {
	return listOf[sandbox.Token](ctx, s, "SELECT data FROM tokens ORDER BY name", nil)
}

// TokenByHash returns the token with that hash of its secret. Errors: NotFound.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (sandbox.Token, error) {
	var t sandbox.Token
	if err := s.usable(); err != nil {
		return t, err
	}
	var text string
	err := s.read.QueryRowContext(ctx, "SELECT data FROM tokens WHERE hash = ?", hash).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return t, sandbox.Errorf(sandbox.NotFound, "no token has this secret")
	}
	if err != nil {
		return t, s.class(err, "read a token")
	}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return t, sandbox.Errorf(sandbox.Internal, "read a token: %w", err)
	}
	return t, nil
}
