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
// begin anew, questions and what was answered to them expire, and sandboxes end.
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
	const open = "state IN ('pending', 'approved') AND over > 0"
	if err := m.moveExpiry(ctx, by, "approvals", open); err != nil {
		return err
	}
	if _, err := m.exec(ctx, "UPDATE approvals SET over = over + ? WHERE "+open, ms/1000); err != nil {
		return err
	}
	return m.moveExpiry(ctx, by, "sandboxes", "json_extract(data, '$.expires') IS NOT NULL")
}

// moveExpiry adds to when some rows of a table expire, as their data says.
func (m *maker) moveExpiry(ctx context.Context, by time.Duration, table, which string) error {
	type row struct{ id, until string }
	list, err := query(ctx, m.tx, "SELECT id, json_extract(data, '$.expires') FROM "+table+" WHERE "+which, nil, func(rows *sql.Rows) (r row, err error) {
		return r, rows.Scan(&r.id, &r.until)
	})
	if err != nil {
		return m.s.class(err, "read the state")
	}
	for _, r := range list {
		until, err := time.Parse(time.RFC3339Nano, r.until)
		if err != nil {
			return sandbox.Errorf(sandbox.Internal, "read when %s expires: %w", sandbox.ID(r.id).Short(), err)
		}
		if _, err := m.exec(ctx, "UPDATE "+table+" SET data = json_set(data, '$.expires', ?) WHERE id = ?", until.Add(by).Format(time.RFC3339Nano), r.id); err != nil {
			return err
		}
	}
	return nil
}
