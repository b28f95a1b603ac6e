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
	_ = a.putLocked(head) // a full disk makes it lag, which verify allows
}

func (a *anchor) putLocked(head sandbox.Event) error {
	_, err := a.f.WriteAt(fmt.Appendf(nil, anchorFormat, head.Seq, head.Hash), 0)
	return err
}

// fix puts the anchor at a place for good, whatever stood there.
func (a *anchor) fix(head sandbox.Event) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.putLocked(head), a.f.Sync())
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

// begin anchors a log that is being made, and no other: one without an anchor
// has lost it. What stands there already is that of a log that is gone.
func (a *anchor) begin() error {
	if _, _, err := a.read(); err == nil {
		return nil
	}
	return a.fix(sandbox.Event{Hash: store.Genesis})
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

// reanchoredData is what the event of a new anchor says: what stood there before,
// and the largest number that an event ever had.
type reanchoredData struct {
	Reason string `json:"reason"`
	Anchor int64  `json:"anchor,omitempty"`
	Hash   string `json:"anchor_hash,omitempty"`
	Issued int64  `json:"issued"`
}

// Reanchor gives a log whose anchor is lost, or disagrees, a new one at its end.
// It takes the log as it is: what was cut off before stays unknown, and the
// event tells who said so.
func (s *Store) Reanchor(ctx context.Context, actor, reason string) (int64, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return 0, s.class(err, "anchor the audit")
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	d := reanchoredData{Reason: reason}
	if d.Issued, err = readIssued(ctx, tx); err != nil {
		return 0, s.class(err, "anchor the audit")
	}
	seq, hash, lost := s.anchor.read()
	if lost == nil {
		d.Anchor, d.Hash = seq, hash
	}
	data, err := json.Marshal(d)
	if err != nil {
		return 0, err
	}
	m := &maker{s: s, tx: tx}
	if err := m.events(ctx, sandbox.Transaction{Events: []sandbox.Event{{Time: time.Now(), Kind: sandbox.EventAuditReanchored, Actor: actor, Data: data}}}); err != nil {
		return 0, err
	}
	if err := m.checkAnchor(ctx); err != nil {
		return 0, s.class(err, "check the audit's anchor")
	}
	if m.anchored && d.Issued <= m.start.Seq {
		return 0, sandbox.Errorf(sandbox.Conflict, "the audit's anchor is there and agrees").WithHint("see what is wrong with: caisson audit verify")
	}
	if _, err := m.exec(ctx, "UPDATE sqlite_sequence SET seq = ? WHERE name = 'events'", m.head.Seq); err != nil {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, s.class(err, "anchor the audit")
	}
	return m.head.Seq, s.unwritable(s.anchor.fix(m.head), "anchor the audit")
}

// readIssued returns the largest number that was ever given to an event.
func readIssued(ctx context.Context, q querier) (int64, error) {
	var n int64
	err := q.QueryRowContext(ctx, "SELECT seq FROM sqlite_sequence WHERE name = 'events'").Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}
