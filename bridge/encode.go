package bridge

import (
	"encoding/json"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// storedRecord is a record as a [Ledger] keeps it: names are bytes.
type storedRecord struct {
	Exec    sandbox.ID     `json:"exec,omitempty"`
	Time    time.Time      `json:"time"`
	Undoes  []int64        `json:"undoes,omitempty"`
	Walked  string         `json:"walked,omitempty"`
	Partial string         `json:"partial,omitempty"`
	Changes []storedChange `json:"changes"`
}

type storedChange struct {
	Path   []byte            `json:"path"`
	From   []byte            `json:"from,omitempty"`
	Op     sandbox.ChangeOp  `json:"op"`
	By     sandbox.ChangeBy  `json:"by"`
	Execs  []sandbox.ID      `json:"execs,omitempty"`
	Before sandbox.FileState `json:"before,omitzero"`
	After  sandbox.FileState `json:"after,omitzero"`
}

// EncodeRecord is a record with all that it knows, in bytes. Its ID is left out.
func EncodeRecord(r *sandbox.ChangeRecord) ([]byte, error) {
	s := storedRecord{Exec: r.Exec, Time: r.Time, Undoes: r.Undoes, Walked: r.Walked, Partial: r.Partial, Changes: make([]storedChange, 0, len(r.Changes))}
	for _, c := range r.Changes {
		s.Changes = append(s.Changes, storedChange{
			Path: []byte(c.Path), From: []byte(c.From), Op: c.Op, By: c.By, Execs: c.Execs, Before: c.Before, After: c.After,
		})
	}
	return json.Marshal(s)
}

// DecodeRecord is the inverse of [EncodeRecord].
func DecodeRecord(id int64, b []byte) (sandbox.ChangeRecord, error) {
	var s storedRecord
	if err := json.Unmarshal(b, &s); err != nil {
		return sandbox.ChangeRecord{}, sandbox.Errorf(sandbox.Internal, "read record %d of changes: %w", id, err)
	}
	r := sandbox.ChangeRecord{ID: id, Exec: s.Exec, Time: s.Time, Undoes: s.Undoes, Walked: s.Walked, Partial: s.Partial}
	for _, c := range s.Changes {
		r.Changes = append(r.Changes, sandbox.FileChange{
			Path: string(c.Path), From: string(c.From), Op: c.Op, By: c.By, Execs: c.Execs, Before: c.Before, After: c.After,
		})
	}
	return r, nil
}

// Sharers are the execs that have, or may have, a share in a record.
func Sharers(r *sandbox.ChangeRecord) []sandbox.ID {
	seen := map[sandbox.ID]bool{r.Exec: true}
	out := []sandbox.ID{r.Exec}
	for _, c := range r.Changes {
		for _, id := range c.Execs {
			if !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	return out
}
