package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// spends counts a call of a tool. The first one of a budget drops those that are over.
func (m *maker) spends(ctx context.Context, c sandbox.Transaction) error {
	s := c.SpendTool
	if s == nil {
		return nil
	}
	var calls int
	at := s.At.UnixMilli()
	err := m.QueryRowContext(ctx, `INSERT INTO tool_calls (owner, tool, until, calls) VALUES (?1, ?2, ?3, 1)
		ON CONFLICT DO UPDATE SET calls = iif(?4 < until, calls + 1, 1), until = iif(?4 < until, until, ?3) RETURNING calls`,
		s.Owner, s.Tool, s.Until.UnixMilli(), at).Scan(&calls)
	if err != nil {
		return m.s.class(err, "write the state")
	}
	if calls == 1 {
		_, err = m.exec(ctx, "DELETE FROM tool_calls WHERE until <= ?", at)
	}
	return err
}

// ToolSpent returns what an owner has called of a tool since its budget began.
func (s *Store) ToolSpent(ctx context.Context, owner, tool string) (sandbox.ToolSpent, error) {
	var spent sandbox.ToolSpent
	if err := s.usable(); err != nil {
		return spent, err
	}
	var until int64
	err := s.read.QueryRowContext(ctx, "SELECT calls, until FROM tool_calls WHERE owner = ? AND tool = ?", owner, tool).Scan(&spent.Calls, &until)
	if errors.Is(err, sql.ErrNoRows) {
		return spent, nil
	}
	spent.Until = time.UnixMilli(until).UTC()
	return spent, s.class(err, "read what was called of a tool")
}
