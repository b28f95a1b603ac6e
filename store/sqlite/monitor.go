package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Bounds of what is kept of sandboxes that are gone, and of alerts that are
// resolved: the oldest beyond them are forgotten, now and then.
const (
	maxReadings = 10_000
	maxAlerts   = 10_000
)

// readings writes what sandboxes use, and that some are gone.
func (m *maker) readings(ctx context.Context, c sandbox.Transaction) error {
	for _, r := range c.PutReadings {
		if err := m.ownerOf(ctx, r.Session, &r.Owner); err != nil {
			return err
		}
		text, err := encode(r)
		if err != nil {
			return err
		}
		ended := ""
		if !r.Ended.IsZero() {
			ended = r.Ended.UTC().Format(time.RFC3339Nano)
		}
		// One that has ended stays so: another process may not have seen it yet.
		if _, err := m.exec(ctx, `INSERT INTO readings (sandbox, session, sampled, ended, data, owner, began) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (sandbox) DO UPDATE SET sampled = excluded.sampled, ended = excluded.ended, data = excluded.data WHERE ended = ''`,
			string(r.Sandbox), r.Session, r.Sample.Time.UnixMilli(), ended, text, r.Owner, r.First.UnixMilli()); err != nil {
			return err
		}
		if ended != "" && strings.HasPrefix(string(r.Sandbox), "0") { // one of sixteen, whoever ends
			if err := m.forget(ctx, "readings", "sampled", "ended", maxReadings); err != nil {
				return err
			}
		}
	}
	at := time.Now().UTC().Format(time.RFC3339Nano)
	const end = "UPDATE readings SET ended = ?, data = json_set(data, '$.ended', ?) WHERE ended = '' AND "
	if c.DeleteSession != "" {
		if _, err := m.exec(ctx, end+"session = ?", at, at, c.DeleteSession); err != nil {
			return err
		}
	}
	gone := slices.Clone(c.DeleteSandboxes)
	for _, b := range c.PutSandboxes {
		if b.State == sandbox.StateGone {
			gone = append(gone, b.ID)
		}
	}
	for _, id := range gone {
		if _, err := m.exec(ctx, end+"sandbox = ?", at, at, string(id)); err != nil {
			return err
		}
	}
	return nil
}

// forget drops the oldest rows that are over beyond a number.
func (m *maker) forget(ctx context.Context, table, at, over string, most int) error {
	_, err := m.exec(ctx, "DELETE FROM "+table+" WHERE "+over+" <> '' AND "+at+" < (SELECT "+at+" FROM "+table+" WHERE "+over+" <> '' ORDER BY "+at+
		" DESC LIMIT 1 OFFSET "+strconv.Itoa(most)+")")
	return err
}

// alerts fires and resolves.
func (m *maker) alerts(ctx context.Context, c sandbox.Transaction) error {
	if c.FireAlert != nil {
		a := new(*c.FireAlert)
		if err := m.ownerOf(ctx, a.Session, &a.Owner); err != nil {
			return err
		}
		text, err := encode(a)
		if err != nil {
			return err
		}
		n, err := m.exec(ctx, "INSERT INTO alerts (id, rule, sandbox, session, fired, resolved, data, owner) VALUES (?, ?, ?, ?, ?, '', ?, ?) ON CONFLICT DO NOTHING",
			string(a.ID), a.Rule, string(a.Sandbox), a.Session, a.Fired.UnixMilli(), text, a.Owner)
		if err != nil {
			return err
		}
		if n == 0 {
			return sandbox.Errorf(sandbox.Conflict, "an alert of rule %s fires for sandbox %s", a.Rule, a.Sandbox.Short())
		}
		if strings.HasPrefix(string(a.ID), "0") {
			if err := m.forget(ctx, "alerts", "fired", "resolved", maxAlerts); err != nil {
				return err
			}
		}
	}
	if c.ResolveAlert != nil {
		a := new(*c.ResolveAlert)
		if err := m.ownerOf(ctx, a.Session, &a.Owner); err != nil {
			return err
		}
		text, err := encode(a)
		if err != nil {
			return err
		}
		n, err := m.exec(ctx, "UPDATE alerts SET resolved = ?, data = ? WHERE id = ? AND resolved = ''",
			a.Resolved.UTC().Format(time.RFC3339Nano), text, string(a.ID))
		if err != nil {
			return err
		}
		if n == 0 {
			return sandbox.Errorf(sandbox.Conflict, "alert %s does not fire any more", a.ID.Short())
		}
	}
	return nil
}

// letters moves what is in the outbox.
func (m *maker) letters(ctx context.Context, c sandbox.Transaction) error {
	for _, l := range c.PostLetters {
		if _, err := m.exec(ctx, "INSERT INTO letters (receiver, body, posted, next, attempts) VALUES (?, ?, ?, 0, 0)", l.To, l.Body, l.Posted.UnixMilli()); err != nil {
			return err
		}
	}
	for _, id := range c.DeleteLetters {
		if _, err := m.exec(ctx, "DELETE FROM letters WHERE id = ?", id); err != nil {
			return err
		}
	}
	for _, r := range c.RetryLetters {
		if _, err := m.exec(ctx, "UPDATE letters SET next = ?, attempts = attempts + 1 WHERE id = ?", r.Next.UnixMilli(), r.ID); err != nil {
			return err
		}
	}
	return nil
}

// mostPutOff bounds how far letters are put off: one that waits for longer does so
// since the clock was set back and nobody followed it, and is due.
const mostPutOff = 2 * time.Hour

// TakeLetters returns the oldest letters to a receiver that are due, and puts
// them off until a time: until then no other process takes them.
func (s *Store) TakeLetters(ctx context.Context, to string, now, until time.Time, most int) ([]sandbox.Letter, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, s.class(err, "take letters")
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	rows, err := tx.QueryContext(ctx, `UPDATE letters SET next = ? WHERE id IN
		(SELECT id FROM letters WHERE receiver = ? AND (next <= ? OR next > ?) ORDER BY id LIMIT ?) RETURNING id, body, posted, attempts`,
		until.UnixMilli(), to, now.UnixMilli(), now.Add(mostPutOff).UnixMilli(), most)
	if err != nil {
		return nil, s.class(err, "take letters")
	}
	defer rows.Close()
	var letters []sandbox.Letter
	for rows.Next() {
		l := sandbox.Letter{To: to}
		var posted int64
		if err := rows.Scan(&l.ID, &l.Body, &posted, &l.Attempts); err != nil {
			return nil, s.class(err, "take letters")
		}
		l.Posted = time.UnixMilli(posted).UTC()
		letters = append(letters, l)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, s.class(err, "take letters")
	}
	if err := tx.Commit(); err != nil {
		return nil, s.class(err, "take letters")
	}
	slices.SortFunc(letters, func(a, b sandbox.Letter) int { return int(a.ID - b.ID) })
	return letters, nil
}

// Readings returns what sandboxes use and have used, the newest sandbox first.
func (s *Store) Readings(ctx context.Context, f sandbox.ReadingFilter) ([]sandbox.Reading, error) {
	c := conditions{}
	if f.Live {
		c.add("ended = ''")
	}
	if !f.Since.IsZero() {
		c.add("sampled >= ?", f.Since.UnixMilli())
	}
	if f.Session != "" {
		c.add("session = ?", f.Session)
	}
	c.of(f.Owner, f.Labels)
	c.behind("readings", "sandbox", "began", f.After)
	return listOf[sandbox.Reading](ctx, s, "SELECT data FROM readings"+c.where()+" ORDER BY began DESC, sandbox"+limit(f.Limit), c.args)
}

// Alerts returns alerts, the newest first.
func (s *Store) Alerts(ctx context.Context, f sandbox.AlertFilter) ([]sandbox.Alert, error) {
	c := conditions{}
	if f.Firing {
		c.add("resolved = ''")
	}
	if f.Session != "" {
		c.add("session = ?", f.Session)
	}
	if f.Rule != "" {
		c.add("rule = ?", f.Rule)
	}
	c.of(f.Owner, f.Labels)
	c.behind("alerts", "id", "fired", f.After)
	return listOf[sandbox.Alert](ctx, s, "SELECT data FROM alerts"+c.where()+" ORDER BY fired DESC, id"+limit(f.Limit), c.args)
}

// Denied counts the runs that were refused since a time, by session. Times are
// those of the events, to the second.
func (s *Store) Denied(ctx context.Context, since time.Time) (map[string]int, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, "SELECT session, count(*) FROM events WHERE kind = 'exec.denied' AND time >= ? GROUP BY session",
		since.UTC().Format("2006-01-02T15:04:05"))
	if err != nil {
		return nil, s.class(err, "count refused runs")
	}
	defer rows.Close()
	denied := map[string]int{}
	for rows.Next() {
		var session string
		var n int
		if err := rows.Scan(&session, &n); err != nil {
			return nil, s.class(err, "count refused runs")
		}
		denied[session] = n
	}
	return denied, s.class(rows.Err(), "count refused runs")
}

// conditions are those of a query.
type conditions struct {
	texts []string
	args  []any
}

func (c *conditions) add(text string, args ...any) {
	c.texts, c.args = append(c.texts, text), append(c.args, args...)
}

// of asks for what belongs to an owner, where one is named, and has labels.
func (c *conditions) of(owner *string, labels sandbox.Labels) {
	if owner != nil {
		c.add("owner = ?", *owner)
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		c.add("EXISTS (SELECT 1 FROM json_each(NULLIF(data, ''), '$.labels') WHERE json_each.key = ? AND json_each.value = ?)", k, labels[k])
	}
}

// behind asks for the rows of a table that stand behind one of them, the latest
// first. Behind one that is not there is nothing.
func (c *conditions) behind(table, id, at string, after sandbox.ID) {
	if after == "" {
		return
	}
	cursor := "(SELECT " + at + " FROM " + table + " WHERE " + id + " = ?)"
	c.add("("+at+" < "+cursor+" OR "+at+" = "+cursor+" AND "+id+" > ?)", string(after), string(after), string(after))
}

func (c *conditions) where() string {
	if len(c.texts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.texts, " AND ")
}

func limit(n int) string {
	if n <= 0 {
		return ""
	}
	return " LIMIT " + strconv.Itoa(n)
}

// listOf reads rows of JSON.
func listOf[T any](ctx context.Context, s *Store, text string, args []any) ([]T, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, s.class(err, "read the state")
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	all, err := query(ctx, tx, text, args, func(rows *sql.Rows) (v T, err error) {
		var text string
		if err = rows.Scan(&text); err == nil {
			err = json.Unmarshal([]byte(text), &v)
		}
		return v, err
	})
	return all, s.class(err, "read the state")
}
