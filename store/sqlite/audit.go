package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store"
)

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
	if c.issued, err = readIssued(ctx, tx); err != nil {
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
	case !c.anchor:
		c.problem(c.last.Seq, "unanchored: what the file audit.head held is lost, and nobody can tell whether events after this one were cut off")
	case c.anchor && c.anchored > c.last.Seq:
		c.problem(c.last.Seq, "truncated: the anchor is at event %d", c.anchored)
	case c.issued > c.last.Seq:
		c.problem(c.last.Seq, "truncated: events up to %d were written", c.issued)
	}
	r.OK = len(r.Problems) == 0
	return *r
}

// Prune drops the oldest events that the retention does not keep, and with them
// questions that are over. The last of the events stays known by its number and
// hash, which an event records too.
func (s *Store) Prune(ctx context.Context, keep sandbox.Retention) (sandbox.Pruned, error) {
	var gone sandbox.Pruned
	if err := s.usable(); err != nil {
		return gone, err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return gone, s.class(err, "prune the audit")
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	m := &maker{s: s, tx: tx}
	if gone.Questions, err = m.dropQuestions(ctx, time.Duration(keep.Age), 0, int64(keep.Bytes)); err != nil {
		return sandbox.Pruned{}, err
	}
	if gone.Events, err = m.pruneEvents(ctx, keep); err != nil {
		return sandbox.Pruned{}, s.class(err, "prune the audit")
	}
	if err := tx.Commit(); err != nil {
		return sandbox.Pruned{}, s.class(err, "prune the audit")
	}
	if m.anchored {
		s.anchor.set(m.head)
	}
	return gone, nil
}

// pruneEvents drops the oldest events, and says so by another.
func (m *maker) pruneEvents(ctx context.Context, keep sandbox.Retention) (int64, error) {
	through, err := pruneThrough(ctx, m.tx, keep)
	if err != nil || through == 0 {
		return 0, err
	}
	var hash string
	if err := m.tx.QueryRowContext(ctx, "SELECT hash FROM events WHERE seq = ?", through).Scan(&hash); err != nil {
		return 0, err
	}
	data, err := json.Marshal(prunedData{Through: through, Hash: hash})
	if err != nil {
		return 0, err
	}
	if err := m.events(ctx, sandbox.Transaction{Events: []sandbox.Event{{Time: time.Now(), Kind: sandbox.EventAuditPruned, Actor: "caisson", Data: data}}}); err != nil {
		return 0, err
	}
	// While what the anchor names is still there.
	if err := m.checkAnchor(ctx); err != nil {
		return 0, err
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
	return n, nil
}

// pruneThrough returns the last event to drop, or 0. The order is that of the
// chain: a clock that jumped decides nothing but where to stop.
func pruneThrough(ctx context.Context, tx *sql.Tx, keep sandbox.Retention) (int64, error) {
	var through int64
	if keep.Age > 0 {
		var young sql.NullInt64
		cut := time.Now().Add(-time.Duration(keep.Age)).UTC().Format(time.RFC3339Nano)
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
