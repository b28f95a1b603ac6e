package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// clock keeps a reading of the clock, and where that was set since the last one has what
// lasts or waits for a time do so for as long as before.
func (m *maker) clock(ctx context.Context, c sandbox.Transaction) error {
	if c.Clock == nil {
		return nil
	}
	text, by := "", time.Duration(0)
	err := m.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = 'clock'").Scan(&text)
	if err == nil {
		var before sandbox.ClockReading
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			return sandbox.Errorf(sandbox.Internal, "read the clock of before: %w", err)
		}
		by = c.Clock.SetSince(before)
	} else if !errors.Is(err, sql.ErrNoRows) {
		return m.s.class(err, "read the state")
	}
	if text, err = encode(c.Clock); err != nil {
		return err
	}
	if _, err := m.exec(ctx, "INSERT OR REPLACE INTO meta VALUES ('clock', ?)", text); err != nil || by == 0 {
		return err
	}
	return m.shift(ctx, by)
}

// shift adds to when executions expire, letters were posted and are due, budgets of tools
// begin anew, and sandboxes end.
func (m *maker) shift(ctx context.Context, by time.Duration) error {
	ms := by.Milliseconds()
	if _, err := m.exec(ctx, "UPDATE executions SET expires = max(1, expires + ?) WHERE expires > 0", ms); err != nil {
		return err
	}
	if _, err := m.exec(ctx, "UPDATE letters SET posted = posted + ?, next = iif(next > 0, max(1, next + ?), 0)", ms, ms); err != nil {
		return err
	}
	if _, err := m.exec(ctx, "UPDATE tool_calls SET until = until + ?", ms); err != nil {
		return err
	}
	list, err := query(ctx, m.tx, "SELECT data FROM sandboxes WHERE json_extract(data, '$.expires') IS NOT NULL", nil, func(rows *sql.Rows) (rec sandbox.SandboxRecord, err error) {
		var text string
		if err := rows.Scan(&text); err != nil {
			return rec, err
		}
		return rec, json.Unmarshal([]byte(text), &rec)
	})
	if err != nil {
		return m.s.class(err, "read the state")
	}
	for _, rec := range list {
		until := rec.Expires.Add(by).Format(time.RFC3339Nano)
		if _, err := m.exec(ctx, "UPDATE sandboxes SET data = json_set(data, '$.expires', ?) WHERE id = ?", until, string(rec.ID)); err != nil {
			return err
		}
	}
	return nil
}
