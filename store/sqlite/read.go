package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// nullInt and nullString leave their target as it is for NULL.
type nullInt struct{ to *int64 }

func (n *nullInt) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case int64:
		*n.to = v
		return nil
	case string:
		i, err := strconv.ParseInt(v, 10, 64)
		*n.to = i
		return err
	}
	return fmt.Errorf("%T for a number", v)
}

type nullString struct{ to *string }

func (n *nullString) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		*n.to = v
		return nil
	}
	return fmt.Errorf("%T for a text", v)
}

// Session returns one session with its sandboxes and execs. Errors: NotFound.
func (s *Store) Session(ctx context.Context, name string) (sandbox.SessionView, error) {
	views, err := s.Sessions(ctx, sandbox.SessionFilter{Name: name})
	if err != nil {
		return sandbox.SessionView{}, err
	}
	if len(views) == 0 || name == "" {
		return sandbox.SessionView{}, sandbox.Errorf(sandbox.NotFound, "no session %s", name)
	}
	return views[0], nil
}

// Sessions returns the sessions that a filter selects, by name. Where it selects
// all, the execs that belong to none stand before them, under the name "", where
// there are any.
func (s *Store) Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if f.Name != "" && f.Owner == nil && f.After == "" && f.Limit == 0 && len(f.Labels) == 0 {
		// Every exec asks for one.
		one, err := s.prepared(ctx, oneView(f.Running))
		if err != nil {
			return nil, s.class(err, "read the state")
		}
		return s.views(one.QueryContext(ctx, f.Name, f.Name, f.Name))
	}
	var c conditions
	if f.Name != "" {
		c.add("name = ?", f.Name)
	}
	if f.After != "" {
		c.add("name > ?", f.After)
	}
	c.of(f.Owner, f.Labels)
	which := c.where()
	if f.Limit > 0 {
		which += " ORDER BY name" + limit(f.Limit)
	}
	return s.views(s.read.QueryContext(ctx, viewsOf(which, f.Running), c.args...))
}

// prepared is a query of those that are kept parsed.
func (s *Store) prepared(ctx context.Context, text string) (*sql.Stmt, error) {
	if q, ok := s.parsed.Load(text); ok {
		return q.(*sql.Stmt), nil
	}
	q, err := s.read.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	first, loaded := s.parsed.LoadOrStore(text, q)
	if loaded {
		err = q.Close()
	}
	return first.(*sql.Stmt), err
}

// oneView is the query for one session, by its name, with what belongs to it. It makes no
// table on its way, as [viewsOf] does.
func oneView(running bool) string {
	execs := ""
	if running {
		execs = " AND ended = 0"
	}
	return "SELECT 0, name, NULL, data FROM sessions WHERE name = ?" +
		" UNION ALL SELECT 1, id, secret, data FROM sandboxes WHERE session = ?" +
		" UNION ALL SELECT 2, id, NULL, data FROM execs WHERE session = ?" + execs
}

// viewsOf is the query for sessions with what belongs to them; which of them, says the
// end of a query for their names. It is one query, that they are of one state.
func viewsOf(which string, running bool) string {
	in := func(column string) string {
		if which == "" {
			return " WHERE TRUE"
		}
		return " WHERE " + column + " IN (SELECT name FROM chosen)"
	}
	execs := in("session")
	if running {
		execs += " AND ended = 0"
	}
	return "WITH chosen AS MATERIALIZED (SELECT name FROM sessions " + which + ") " +
		"SELECT 0 AS kind, name AS id, NULL AS secret, data FROM sessions" + in("name") +
		" UNION ALL SELECT 1, id, secret, data FROM sandboxes" + in("session") +
		" UNION ALL SELECT 2, id, NULL, data FROM execs" + execs
}

// views reads what a query of [viewsOf] found.
func (s *Store) views(rows *sql.Rows, err error) ([]sandbox.SessionView, error) {
	if err != nil {
		return nil, s.class(err, "read sessions")
	}
	defer rows.Close()
	var sessions []sandbox.Session
	var boxes []sandbox.SandboxRecord
	var execs []sandbox.ExecRecord
	for rows.Next() {
		var kind int
		var id string
		var secret, data []byte
		if err := rows.Scan(&kind, &id, &secret, &data); err != nil {
			return nil, s.class(err, "read sessions")
		}
		switch kind {
		case 0:
			sessions, err = decoded(sessions, data)
		case 1:
			if boxes, err = decoded(boxes, data); err == nil {
				boxes[len(boxes)-1].Secret = secret
			}
		default:
			execs, err = decoded(execs, data)
		}
		if err != nil {
			return nil, s.class(err, "read sessions")
		}
	}
	if err := rows.Err(); err != nil {
		return nil, s.class(err, "read sessions")
	}
	slices.SortFunc(sessions, func(a, b sandbox.Session) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(boxes, func(a, b sandbox.SandboxRecord) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(execs, func(a, b sandbox.ExecRecord) int { return cmp.Compare(a.ID, b.ID) })
	return join(sessions, boxes, execs), nil
}

// decoded appends a record.
func decoded[T any](all []T, data []byte) ([]T, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return append(all, v), err
}

// Execs returns the execs that a filter selects, the newest first.
func (s *Store) Execs(ctx context.Context, f sandbox.ExecFilter) ([]sandbox.ExecRecord, error) {
	var c conditions
	if f.ID != "" {
		c.add("id = ?", string(f.ID))
	}
	if f.Session != "" {
		c.add("session = ?", f.Session)
	}
	if f.Running {
		c.add("ended = 0")
	}
	c.of(f.Owner, f.Labels)
	const started = "json_extract(data, '$.started')"
	c.behind("execs", "id", started, f.After)
	return listOf[sandbox.ExecRecord](ctx, s, "SELECT data FROM execs"+c.where()+" ORDER BY "+started+" DESC, id"+limit(f.Limit), c.args)
}

func join(sessions []sandbox.Session, boxes []sandbox.SandboxRecord, execs []sandbox.ExecRecord) []sandbox.SessionView {
	var views []sandbox.SessionView
	at := map[string]int{}
	for _, e := range execs {
		if e.Session == "" && len(views) == 0 {
			views = append(views, sandbox.SessionView{})
			at[""] = 0
		}
	}
	for _, s := range sessions {
		at[s.Name] = len(views)
		views = append(views, sandbox.SessionView{Session: s, Sandboxes: []sandbox.SandboxRecord{}, Execs: []sandbox.ExecRecord{}})
	}
	for _, b := range boxes {
		if i, ok := at[b.Session]; ok {
			views[i].Sandboxes = append(views[i].Sandboxes, b)
		}
	}
	for _, e := range execs {
		if i, ok := at[e.Session]; ok {
			views[i].Execs = append(views[i].Execs, e)
		}
	}
	return views
}

// query reads all rows of a query.
func query[T any](ctx context.Context, tx *sql.Tx, text string, args []any, scan func(*sql.Rows) (T, error)) ([]T, error) {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// pageSize is how many events one query reads.
const pageSize = 500

// Events returns events in the order of their Seq, page by page, or the newest.
func (s *Store) Events(ctx context.Context, f sandbox.EventFilter) iter.Seq2[sandbox.Event, error] {
	return func(yield func(sandbox.Event, error) bool) {
		if f.Newest {
			f.Limit = 1
		}
		given := 0
		for {
			page, err := s.page(ctx, f)
			if err != nil {
				yield(sandbox.Event{}, s.class(err, "read events"))
				return
			}
			for _, e := range page {
				f.After = e.Seq
				if !within(f, e.Time) {
					continue
				}
				if !yield(e, nil) {
					return
				}
				if given++; f.Limit > 0 && given == f.Limit {
					return
				}
			}
			if len(page) < pageSize || f.Newest {
				return
			}
		}
	}
}

// coarse is more than what SQLite's arithmetic of times rounds away.
const coarse = 2 * time.Millisecond

// within reports whether a time is between Since and Until, exactly.
func within(f sandbox.EventFilter, t time.Time) bool {
	return (f.Since.IsZero() || !t.Before(f.Since)) && (f.Until.IsZero() || t.Before(f.Until))
}

const eventColumns = "seq, time, kind, actor, session, sandbox, exec, data, prev, hash, owner"

func (s *Store) page(ctx context.Context, f sandbox.EventFilter) ([]sandbox.Event, error) {
	where, args := []string{"seq > ?"}, []any{f.After}
	add := func(cond string, v ...any) {
		where, args = append(where, cond), append(args, v...)
	}
	if f.Session != "" {
		add("session = ?", f.Session)
	}
	if f.Exec != "" {
		add("exec = ?", string(f.Exec))
	}
	var of conditions
	of.of(f.Owner, f.Labels)
	if len(of.texts) > 0 {
		add(strings.Join(of.texts, " AND "), of.args...)
	}
	// SQLite's times have milliseconds: this chooses generously, and within
	// decides.
	if !f.Since.IsZero() {
		add("julianday(time) >= julianday(?)", f.Since.Add(-coarse).UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		add("julianday(time) <= julianday(?)", f.Until.Add(coarse).UTC().Format(time.RFC3339Nano))
	}
	if len(f.Kinds) > 0 {
		marks := strings.TrimSuffix(strings.Repeat("?,", len(f.Kinds)), ",")
		kinds := make([]any, len(f.Kinds))
		for i, k := range f.Kinds {
			kinds[i] = k
		}
		add("kind IN ("+marks+")", kinds...)
	}
	if err := s.usable(); err != nil {
		return nil, err
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	order := ""
	if f.Newest {
		order = " DESC"
	}
	text := "SELECT " + eventColumns + " FROM events WHERE " + strings.Join(where, " AND ") + " ORDER BY seq" + order + " LIMIT " + strconv.Itoa(pageSize)
	return query(ctx, tx, text, args, scanEvent)
}

func scanEvent(rows *sql.Rows) (sandbox.Event, error) {
	var e sandbox.Event
	var at, data string
	err := rows.Scan(&e.Seq, &at, &e.Kind, &e.Actor, &e.Session, &e.Sandbox, &e.Exec, &data, &e.Prev, &e.Hash, &e.Owner)
	if err != nil {
		return e, err
	}
	if data != "" {
		e.Data = json.RawMessage(data)
	}
	// A time that does not parse was altered, and is told by the hash.
	t, parseErr := time.Parse(time.RFC3339Nano, at)
	if parseErr == nil {
		e.Time = t
	}
	return e, nil
}
