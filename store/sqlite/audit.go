package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store"
)

// anchor is a copy of the chain's head outside the database. It may lag behind
// by what was committed at the moment of a crash, and never runs ahead.
type anchor struct {
	mu sync.Mutex
	f  *os.File
}

func openAnchor(path string) (*anchor, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &anchor{f: f}, nil
}

// anchorFormat has a fixed width, so that a write replaces all of the last one.
const anchorFormat = "%020d %064s\n"

// set moves the anchor on. Several processes do: one that is late must not move
// it back by more than what it wrote itself, which only makes it lag.
func (a *anchor) set(head sandbox.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if seq, _, err := a.readLocked(); err == nil && seq >= head.Seq {
		return
	}
	_, _ = a.f.WriteAt(fmt.Appendf(nil, anchorFormat, head.Seq, head.Hash), 0) // a full disk makes it lag, which verify allows
}

func (a *anchor) readLocked() (int64, string, error) {
	buf := make([]byte, len(fmt.Sprintf(anchorFormat, 0, "")))
	if _, err := a.f.ReadAt(buf, 0); err != nil {
		return 0, "", err
	}
	left, hash, _ := strings.Cut(strings.TrimSpace(string(buf)), " ")
	seq, err := strconv.ParseInt(left, 10, 64)
	if seq == 0 {
		hash = store.Genesis
	}
	return seq, hash, err
}

// anchorEmpty anchors a log that has no event yet, so that one without an
// anchor is one that has lost it.
func (s *Store) anchorEmpty(ctx context.Context) error {
	if _, _, err := s.anchor.read(); err == nil {
		return nil
	}
	head, err := readHead(ctx, s.read)
	if err == nil && head.Seq == 0 {
		s.anchor.set(head)
	}
	return err
}

// read returns the anchor as it stands. Another process may be writing it: what
// two looks agree on is whole.
func (a *anchor) read() (seq int64, hash string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range 10 {
		if seq, hash, err = a.readLocked(); err != nil {
			return seq, hash, err
		}
		again, sameHash, err := a.readLocked()
		if err == nil && again == seq && sameHash == hash {
			return seq, hash, nil
		}
	}
	return 0, "", errors.New("the anchor is being written")
}

func (a *anchor) close() error { return a.f.Close() }

// problemsMost bounds a report: what follows the first few is the same news.
const problemsMost = 100

// Verify reads all events and checks that each follows the one before, that the
// first follows what was pruned, and that nothing is missing at the end. It
// looks at one state of the log, whatever is written meanwhile.
func (s *Store) Verify(ctx context.Context) (sandbox.AuditReport, error) {
	// The anchor is read first: what is committed after is only longer.
	if err := s.usable(); err != nil {
		return sandbox.AuditReport{}, err
	}
	at, hash, err := s.anchor.read()
	c := checker{anchored: at, anchoredHash: hash, anchor: err == nil}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return c.report, s.class(err, "verify the audit")
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	if c.last, err = readCheckpoint(ctx, tx); err != nil {
		return c.report, s.class(err, "read the audit's checkpoint")
	}
	c.pruned = c.last
	if c.anchor && c.anchored == c.pruned.Seq && c.anchoredHash != c.pruned.Hash {
		c.problem(c.pruned.Seq, "changed: the anchor has another hash")
	}
	err = tx.QueryRowContext(ctx, "SELECT seq FROM sqlite_sequence WHERE name = 'events'").Scan(&c.issued)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return c.report, s.class(err, "read the audit's numbers")
	}
	rows, err := tx.QueryContext(ctx, "SELECT "+eventColumns+" FROM events ORDER BY seq")
	if err != nil {
		return c.report, s.class(err, "verify the audit")
	}
	defer rows.Close()
	for rows.Next() {
		e, err := scanEvent(rows)
		if err != nil {
			return c.report, s.class(err, "verify the audit")
		}
		c.next(e)
	}
	if err := rows.Err(); err != nil {
		return c.report, s.class(err, "verify the audit")
	}
	return c.end(), nil
}

// checker goes along the chain of events.
type checker struct {
	report       sandbox.AuditReport
	last         sandbox.Event // before the next
	pruned       sandbox.Event // the checkpoint
	vouched      bool          // an event tells of that pruning
	issued       int64         // the largest number ever given
	anchor       bool          // there is one
	anchored     int64
	anchoredHash string
}

func (c *checker) problem(seq int64, format string, args ...any) {
	if len(c.report.Problems) < problemsMost {
		c.report.Problems = append(c.report.Problems, sandbox.AuditProblem{Seq: seq, What: fmt.Sprintf(format, args...)})
	}
}

func (c *checker) next(e sandbox.Event) {
	c.report.Events++
	if c.report.First == 0 {
		c.report.First = e.Seq
	}
	switch {
	case e.Seq <= c.last.Seq:
		c.problem(e.Seq, "inserted: events up to %d were pruned", c.last.Seq)
	case e.Seq != c.last.Seq+1:
		c.problem(e.Seq, "missing: events %d to %d before it", c.last.Seq+1, e.Seq-1)
	case e.Prev != c.last.Hash:
		c.problem(e.Seq, "it does not follow event %d", c.last.Seq)
	}
	if store.Hash(e) != e.Hash {
		c.problem(e.Seq, "changed: its content does not fit its hash")
	}
	if c.anchor && e.Seq == c.anchored && e.Hash != c.anchoredHash {
		c.problem(e.Seq, "changed: the anchor has another hash")
	}
	if e.Kind == sandbox.EventAuditPruned {
		var p prunedData
		if json.Unmarshal(e.Data, &p) == nil && p.Through == c.pruned.Seq && p.Hash == c.pruned.Hash {
			c.vouched = true
		}
	}
	c.last = e
}

// prunedData is what the event of a pruning says: the last event that went.
type prunedData struct {
	Hash    string `json:"hash"`
	Through int64  `json:"through"`
}

func (c *checker) end() sandbox.AuditReport {
	r := &c.report
	r.Last, r.Head = c.last.Seq, c.last.Hash
	if c.pruned.Seq > 0 && !c.vouched {
		c.problem(c.pruned.Seq, "missing: events up to %d are gone, and none tells of their pruning", c.pruned.Seq)
	}
	switch {
	case !c.anchor && c.last.Seq > 0:
		c.problem(c.last.Seq, "unanchored: without the file audit.head nobody can tell whether events after this one were cut off")
	case c.anchor && c.anchored > c.last.Seq:
		c.problem(c.last.Seq, "truncated: the anchor is at event %d", c.anchored)
	case c.issued > c.last.Seq:
		c.problem(c.last.Seq, "truncated: events up to %d were written", c.issued)
	}
	r.OK = len(r.Problems) == 0
	return *r
}

// Prune drops the oldest events that the retention does not keep. The last of
// them stays known by its number and hash, which an event records too.
func (s *Store) Prune(ctx context.Context, keep sandbox.Retention) (int64, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return 0, s.class(err, "prune the audit")
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	through, err := pruneThrough(ctx, tx, keep)
	if err != nil || through == 0 {
		return 0, s.class(err, "prune the audit")
	}
	var hash string
	if err := tx.QueryRowContext(ctx, "SELECT hash FROM events WHERE seq = ?", through).Scan(&hash); err != nil {
		return 0, s.class(err, "prune the audit")
	}
	m := &maker{s: s, tx: tx}
	data, err := json.Marshal(prunedData{Through: through, Hash: hash})
	if err != nil {
		return 0, err
	}
	if err := m.events(ctx, sandbox.Change{Events: []sandbox.Event{{Time: time.Now(), Kind: sandbox.EventAuditPruned, Actor: "caisson", Data: data}}}); err != nil {
		return 0, err
	}
	// While what the anchor names is still there.
	if err := m.checkAnchor(ctx); err != nil {
		return 0, s.class(err, "prune the audit")
	}
	n, err := m.exec(ctx, "DELETE FROM events WHERE seq <= ?", through)
	if err != nil {
		return 0, err
	}
	for key, v := range map[string]string{"pruned_seq": strconv.FormatInt(through, 10), "pruned_hash": hash} {
		if _, err := m.exec(ctx, "INSERT OR REPLACE INTO meta VALUES (?, ?)", key, v); err != nil {
			return 0, err
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, s.class(err, "prune the audit")
	}
	if m.anchored {
		s.anchor.set(m.head)
	}
	return n, nil
}

// pruneThrough returns the last event to drop, or 0. The order is that of the
// chain: a clock that jumped decides nothing but where to stop.
func pruneThrough(ctx context.Context, tx *sql.Tx, keep sandbox.Retention) (int64, error) {
	var through int64
	if keep.Age > 0 {
		var young sql.NullInt64
		cut := time.Now().Add(-keep.Age).UTC().Format(time.RFC3339Nano)
		err := tx.QueryRowContext(ctx, "SELECT min(seq) FROM events WHERE julianday(time) >= julianday(?)", cut).Scan(&young)
		if err != nil {
			return 0, err
		}
		if young.Valid {
			err = tx.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM events WHERE seq < ?", young.Int64).Scan(&through)
		} else {
			err = tx.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM events").Scan(&through)
		}
		if err != nil {
			return 0, err
		}
	}
	if keep.Bytes > 0 {
		const overhead = 200 // of a row, beside its data: names, times, two hashes
		var bySize int64
		err := tx.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM
			(SELECT seq, sum(length(data) + ?) OVER (ORDER BY seq DESC) AS size FROM events) WHERE size > ?`, overhead, int64(keep.Bytes)).Scan(&bySize)
		if err != nil {
			return 0, err
		}
		through = max(through, bySize)
	}
	return through, nil
}
