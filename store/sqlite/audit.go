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
	return seq, hash, err
}

func (a *anchor) close() error { return a.f.Close() }

// problemsMost bounds a report: what follows the first few is the same news.
const problemsMost = 100

// Verify reads all events and checks that each follows the one before, that the
// first follows what was pruned, and that nothing is missing at the end.
func (s *Store) Verify(ctx context.Context) (sandbox.AuditReport, error) {
	// The anchor is read first: what is committed after is only longer.
	s.anchor.mu.Lock()
	anchored, anchoredHash, anchorErr := s.anchor.readLocked()
	s.anchor.mu.Unlock()
	last, err := readCheckpoint(s.read)
	if err != nil {
		return sandbox.AuditReport{}, s.class(err, "read the audit's checkpoint")
	}
	var r sandbox.AuditReport
	problem := func(seq int64, format string, args ...any) {
		if len(r.Problems) < problemsMost {
			r.Problems = append(r.Problems, sandbox.AuditProblem{Seq: seq, What: fmt.Sprintf(format, args...)})
		}
	}
	for e, err := range s.Events(ctx, sandbox.EventFilter{After: -1 << 62}) {
		if err != nil {
			return r, err
		}
		r.Events++
		if r.First == 0 {
			r.First = e.Seq
		}
		switch {
		case e.Seq != last.Seq+1:
			problem(e.Seq, "missing: events %d to %d before it", last.Seq+1, e.Seq-1)
		case e.Prev != last.Hash:
			problem(e.Seq, "it does not follow event %d", last.Seq)
		}
		if store.Hash(e) != e.Hash {
			problem(e.Seq, "changed: its content does not fit its hash")
		}
		if anchorErr == nil && e.Seq == anchored && e.Hash != anchoredHash {
			problem(e.Seq, "changed: the anchor has another hash")
		}
		last = e
	}
	r.Last, r.Head = last.Seq, last.Hash
	if anchorErr == nil && anchored > last.Seq {
		problem(last.Seq, "truncated: the anchor is at event %d", anchored)
	}
	var issued int64
	err = s.read.QueryRowContext(ctx, "SELECT seq FROM sqlite_sequence WHERE name = 'events'").Scan(&issued)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return r, s.class(err, "read the audit's numbers")
	}
	if issued > last.Seq && anchored <= last.Seq {
		problem(last.Seq, "truncated: events up to %d were written", issued)
	}
	r.OK = len(r.Problems) == 0
	return r, nil
}

// Prune drops the oldest events that the retention does not keep. The last of
// them stays known by its number and hash, which an event records too.
func (s *Store) Prune(ctx context.Context, keep sandbox.Retention) (int64, error) {
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
	if err := tx.QueryRow("SELECT hash FROM events WHERE seq = ?", through).Scan(&hash); err != nil {
		return 0, s.class(err, "prune the audit")
	}
	m := &maker{s: s, tx: tx}
	data, err := json.Marshal(map[string]any{"through": through, "hash": hash})
	if err != nil {
		return 0, err
	}
	if err := m.events(sandbox.Change{Events: []sandbox.Event{{Time: time.Now(), Kind: sandbox.EventAuditPruned, Actor: "caisson", Data: data}}}); err != nil {
		return 0, err
	}
	n, err := m.exec("DELETE FROM events WHERE seq <= ?", through)
	if err != nil {
		return 0, err
	}
	for key, v := range map[string]string{"pruned_seq": strconv.FormatInt(through, 10), "pruned_hash": hash} {
		if _, err := m.exec("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, v); err != nil {
			return 0, err
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, s.class(err, "prune the audit")
	}
	s.anchor.set(m.head)
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
