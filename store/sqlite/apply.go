package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store"
)

// maxBatch bounds how many changes share a commit.
const maxBatch = 64

// request is a change on its way to the writer.
type request struct {
	change sandbox.Transaction
	err    error
	done   chan error
	begun  atomic.Bool // set by the writer who begins it, or by its caller who gives it up
}

// Apply makes all of a change or nothing of it, and returns once it is durable.
// A change that ctx ends before its turn has come is not made; after that,
// Apply waits for the outcome.
func (s *Store) Apply(ctx context.Context, c sandbox.Transaction) error {
	c, err := store.Check(c, time.Now)
	if err != nil {
		return err
	}
	err = s.apply(ctx, c)
	if err == nil && s.told != nil && len(c.Events) > 0 {
		s.told(c.Events)
	}
	return err
}

func (s *Store) apply(ctx context.Context, c sandbox.Transaction) error {
	r := &request{change: c, done: make(chan error, 1)}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return errClosed()
	}
	if err := ctx.Err(); err != nil {
		s.mu.RUnlock()
		return err
	}
	select {
	case s.requests <- r:
		s.mu.RUnlock()
	case <-ctx.Done():
		s.mu.RUnlock()
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.begun.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		return <-r.done // only the writer knows whether it was made
	}
}

// writer makes changes until the store closes. It is the one that writes in
// this process.
func (s *Store) writer() {
	defer close(s.stopped)
	batch := make([]*request, 0, maxBatch)
	for r := range s.requests {
		batch = append(batch[:0], r)
	more:
		for len(batch) < maxBatch {
			select {
			case r, ok := <-s.requests:
				if !ok {
					break more
				}
				batch = append(batch, r)
			default:
				break more
			}
		}
		batch = slices.DeleteFunc(batch, func(r *request) bool { return !r.begun.CompareAndSwap(false, true) })
		s.commit(batch)
	}
}

// commit makes a batch in one transaction, and answers. A change that is
// refused is undone alone; a transaction that fails fails all, but that the
// members of one for which there was no room are tried alone, so that only
// those fail that do not fit.
func (s *Store) commit(batch []*request) {
	m, err := s.makeAll(batch)
	if len(batch) > 1 && errors.Is(err, sandbox.Exhausted) {
		for _, r := range batch {
			s.commit([]*request{r})
		}
		return
	}
	for _, r := range batch {
		if err != nil {
			r.err = err
		}
		r.done <- r.err
	}
	if err != nil {
		return
	}
	if m.anchored {
		s.anchor.set(m.head)
	}
	s.parse(m.unparsed) // for which nobody waits
}

// parse keeps statements parsed for the changes to come.
func (s *Store) parse(texts []string) {
	for _, text := range texts {
		if q, err := s.write.PrepareContext(context.Background(), text); err == nil { // else it is parsed each time
			s.changes[text] = q
		}
	}
}

// refused reports whether an error speaks of a change, and not of the file.
func refused(err error) bool {
	return errors.Is(err, sandbox.Conflict) || errors.Is(err, sandbox.NotFound) || errors.Is(err, sandbox.Invalid)
}

func (s *Store) makeAll(batch []*request) (*maker, error) {
	ctx := context.Background() // what was accepted is carried through
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, s.class(err, "begin a change")
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	m := &maker{s: s, tx: tx, parsed: s.changes}
	if len(batch) == 1 {
		// Alone in its transaction it needs no way back of its own.
		if err := m.make(ctx, batch[0].change); err != nil {
			return nil, err
		}
		batch = nil
	}
	for _, r := range batch {
		if _, err := tx.ExecContext(ctx, "SAVEPOINT one"); err != nil {
			return nil, s.class(err, "begin a change")
		}
		before := m.head
		if r.err = m.make(ctx, r.change); r.err != nil {
			if !refused(r.err) {
				return nil, r.err // SQLite may have undone the whole transaction
			}
			m.head = before
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO one"); err != nil {
				return nil, s.class(err, "undo a change")
			}
		}
		if _, err := tx.ExecContext(ctx, "RELEASE one"); err != nil {
			return nil, s.class(err, "end a change")
		}
	}
	if err := m.checkAnchor(ctx); err != nil {
		return nil, s.class(err, "check the audit's anchor")
	}
	if err := tx.Commit(); err != nil {
		return nil, s.class(err, "commit a change")
	}
	return m, nil
}

// maker makes changes within one transaction.
type maker struct {
	s        *Store
	tx       *sql.Tx
	head     sandbox.Event        // the last event; Seq 0 before it was looked up
	start    *sandbox.Event       // what head was when it was looked up first
	parsed   map[string]*sql.Stmt // [Store.changes], where the writer makes it
	anchored bool                 // the anchor may be moved to head
	unparsed []string             // statements that are not among the store's changes
	// gone is the session that the change deletes, goneOwner whose it was.
	gone, goneOwner string
}

// checkAnchor finds out, before a commit, whether the anchor agrees with the
// log as it was. Where it does not, it stays: it is the evidence.
func (m *maker) checkAnchor(ctx context.Context) error {
	if m.start == nil || m.head.Seq == m.start.Seq {
		return nil
	}
	seq, hash, err := m.s.anchor.read()
	switch {
	case err != nil:
		return nil // it is lost, or another process is about to move it
	case seq == 0, seq == m.start.Seq && hash == m.start.Hash:
		m.anchored = true // it is where the log was, or the first one of all lags
		return nil
	case seq >= m.start.Seq:
		return nil // this transaction holds the lock: the log was cut, or written anew
	}
	// It lags: another process is about to move it, or has died before.
	var kept string
	err = m.tx.QueryRowContext(ctx, "SELECT hash FROM events WHERE seq = ?", seq).Scan(&kept)
	if errors.Is(err, sql.ErrNoRows) {
		pruned, err := readCheckpoint(ctx, m.tx)
		m.anchored = pruned.Seq > seq || pruned.Seq == seq && pruned.Hash == hash
		return err
	}
	m.anchored = err == nil && kept == hash
	return err
}

// statement is one that the writer keeps parsed; nil for one that it does not know yet.
func (m *maker) statement(ctx context.Context, query string) *sql.Stmt {
	if q := m.parsed[query]; q != nil {
		return m.tx.StmtContext(ctx, q)
	}
	if !slices.Contains(m.unparsed, query) {
		m.unparsed = append(m.unparsed, query)
	}
	return nil
}

// QueryRowContext implements [querier].
func (m *maker) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if q := m.statement(ctx, query); q != nil {
		return q.QueryRowContext(ctx, args...)
	}
	return m.tx.QueryRowContext(ctx, query, args...)
}

func (m *maker) exec(ctx context.Context, query string, args ...any) (int64, error) {
	var res sql.Result
	var err error
	if q := m.statement(ctx, query); q != nil {
		res, err = q.ExecContext(ctx, args...)
	} else {
		res, err = m.tx.ExecContext(ctx, query, args...)
	}
	if err != nil {
		return 0, m.s.class(err, "write the state")
	}
	return res.RowsAffected()
}

func (m *maker) make(ctx context.Context, c sandbox.Transaction) error {
	steps := []func(context.Context, sandbox.Transaction) error{m.while, m.clock, m.sessions, m.sandboxes, m.execs, m.approvals, m.readings, m.alerts, m.tokens, m.letters, m.executions, m.functions, m.spends, m.events}
	m.gone = ""
	for _, step := range steps {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// while checks that an exec still runs, as far as anybody has told.
func (m *maker) while(ctx context.Context, c sandbox.Transaction) error {
	if c.While == "" {
		return nil
	}
	var text string
	err := m.QueryRowContext(ctx, "SELECT data FROM execs WHERE id = ?", string(c.While)).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return sandbox.Errorf(sandbox.Conflict, "the end of exec %s is recorded", c.While.Short())
	}
	if err != nil {
		return m.s.class(err, "read the state")
	}
	var e sandbox.ExecRecord
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return sandbox.Errorf(sandbox.Internal, "read exec %s: %w", c.While.Short(), err)
	}
	if !e.Ended.IsZero() {
		return sandbox.Errorf(sandbox.Conflict, "the end of exec %s is recorded", c.While.Short())
	}
	return nil
}

func (m *maker) sessions(ctx context.Context, c sandbox.Transaction) error {
	if s := c.CreateSession; s != nil {
		text, err := encode(*s)
		if err != nil {
			return err
		}
		n, err := m.exec(ctx, "INSERT INTO sessions (name, data, owner) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", s.Name, text, s.Owner)
		if err != nil {
			return err
		}
		if n == 0 {
			return sandbox.Errorf(sandbox.Conflict, "a session %s exists", s.Name)
		}
	}
	if s := c.PutSession; s != nil {
		text, err := encode(*s)
		if err != nil {
			return err
		}
		// One that was removed and made anew under its name is another.
		n, err := m.exec(ctx, "UPDATE sessions SET data = ? WHERE name = ? AND owner = ? AND json_extract(data, '$.id') = ?", text, s.Name, s.Owner, string(s.ID))
		if err != nil {
			return err
		}
		if n == 0 {
			return sandbox.Errorf(sandbox.NotFound, "no session %s", s.Name)
		}
	}
	if name := c.DeleteSession; name != "" {
		if err := m.remember(ctx, name); err != nil {
			return err
		}
		var n int
		err := m.QueryRowContext(ctx, "SELECT count(*) FROM execs WHERE session = ? AND ended = 0", name).Scan(&n)
		if err != nil {
			return m.s.class(err, "read the state")
		}
		if n > 0 {
			return sandbox.Errorf(sandbox.Conflict, "%d execs run in session %s", n, name)
		}
		for _, q := range []string{"DELETE FROM sessions WHERE name = ?", "DELETE FROM sandboxes WHERE session = ?", "DELETE FROM execs WHERE session = ?"} {
			if _, err := m.exec(ctx, q, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// live reports whether a session can hold records. "" is that of one-shots.
func (m *maker) live(ctx context.Context, session string) error {
	if session == "" {
		return nil
	}
	var one int
	err := m.QueryRowContext(ctx, "SELECT 1 FROM sessions WHERE name = ?", session).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return sandbox.Errorf(sandbox.NotFound, "no session %s", session)
	}
	return m.s.class(err, "read the state")
}

// remember keeps the owner of a session that is deleted for the event that tells
// of it.
func (m *maker) remember(ctx context.Context, session string) error {
	m.gone, m.goneOwner = "", ""
	if err := m.ownerOf(ctx, session, &m.goneOwner); err != nil {
		return err
	}
	m.gone = session
	return nil
}

// ownerOf sets the owner of what belongs to a session to that of the session,
// whatever it says itself.
func (m *maker) ownerOf(ctx context.Context, session string, owner *string) error {
	if session == "" {
		return nil
	}
	err := m.QueryRowContext(ctx, "SELECT owner FROM sessions WHERE name = ?", session).Scan(owner)
	if errors.Is(err, sql.ErrNoRows) {
		if session == m.gone {
			*owner = m.goneOwner
		}
		return nil
	}
	return m.s.class(err, "read the state")
}

func (m *maker) sandboxes(ctx context.Context, c sandbox.Transaction) error {
	for _, b := range c.PutSandboxes {
		if err := m.live(ctx, b.Session); err != nil {
			return err
		}
		text, err := encode(b)
		if err != nil {
			return err
		}
		secret := b.Secret
		if secret == nil {
			secret = []byte{} // nil would be NULL
		}
		if _, err := m.exec(ctx, "INSERT OR REPLACE INTO sandboxes VALUES (?, ?, ?, ?)", string(b.ID), b.Session, secret, text); err != nil {
			return err
		}
	}
	for _, id := range c.DeleteSandboxes {
		if _, err := m.exec(ctx, "DELETE FROM sandboxes WHERE id = ?", string(id)); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) execs(ctx context.Context, c sandbox.Transaction) error {
	for _, e := range c.PutExecs {
		if err := m.live(ctx, e.Session); err != nil {
			return err
		}
		if err := m.ownerOf(ctx, e.Session, &e.Owner); err != nil {
			return err
		}
		text, err := encode(e)
		if err != nil {
			return err
		}
		ended := int64(0)
		if !e.Ended.IsZero() {
			ended = e.Ended.UnixMilli()
		}
		if _, err := m.exec(ctx, "INSERT OR REPLACE INTO execs (id, session, data, owner, ended) VALUES (?, ?, ?, ?, ?)", string(e.ID), e.Session, text, e.Owner, ended); err != nil {
			return err
		}
		if c.KeepEnded == 0 {
			continue
		}
		const beyond = "DELETE FROM execs WHERE id IN (SELECT id FROM execs WHERE session = ? AND ended > 0 ORDER BY ended DESC LIMIT -1 OFFSET ?)"
		if _, err := m.exec(ctx, beyond, e.Session, c.KeepEnded); err != nil {
			return err
		}
	}
	for _, id := range c.DeleteExecs {
		if _, err := m.exec(ctx, "DELETE FROM execs WHERE id = ?", string(id)); err != nil {
			return err
		}
	}
	return nil
}

// events chains events to what is there.
func (m *maker) events(ctx context.Context, c sandbox.Transaction) error {
	if len(c.Events) == 0 {
		return nil
	}
	if m.head.Seq == 0 {
		head, err := readHead(ctx, m)
		if err != nil {
			return m.s.class(err, "read the audit's head")
		}
		m.head = head
		if m.start == nil {
			m.start = &head
		}
	}
	for _, e := range c.Events {
		if err := m.ownerOf(ctx, e.Session, &e.Owner); err != nil {
			return err
		}
		e.Seq, e.Prev, e.Time = m.head.Seq+1, m.head.Hash, e.Time.UTC()
		e.Hash = store.Hash(e)
		_, err := m.exec(ctx, "INSERT INTO events ("+eventColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", e.Seq, e.Time.Format(time.RFC3339Nano), e.Kind, e.Actor,
			e.Session, string(e.Sandbox), string(e.Exec), string(e.Data), e.Prev, e.Hash, e.Owner)
		if err != nil {
			return err
		}
		m.head = e
	}
	return nil
}

// querier is what reads: the database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readHead returns the last event's place in the chain, or where an empty log
// goes on.
func readHead(ctx context.Context, q querier) (sandbox.Event, error) {
	var e sandbox.Event
	err := q.QueryRowContext(ctx, "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").Scan(&e.Seq, &e.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return readCheckpoint(ctx, q)
	}
	return e, err
}

// readCheckpoint returns what a pruned beginning ended with: nothing, most
// often.
func readCheckpoint(ctx context.Context, q querier) (sandbox.Event, error) {
	e := sandbox.Event{Hash: store.Genesis}
	err := q.QueryRowContext(ctx, "SELECT (SELECT value FROM meta WHERE key = 'pruned_seq'), (SELECT value FROM meta WHERE key = 'pruned_hash')").
		Scan(&nullInt{&e.Seq}, &nullString{&e.Hash})
	return e, err
}
