package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestQuestionsBounded asks once more than is kept: the oldest that are over go
// by themselves.
func TestQuestionsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size string // of each
		want int64
	}{
		"many":  {"1", 10_000},
		"large": {"20000", (128 << 20) / 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openDir(t, dir)
			edit(t, dir, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
				INSERT INTO approvals (id, digest, state, asked, data, over, size) SELECT printf('%032x', i), 'd', 'used', '', '{}', i, `+c.size+` FROM n`)
			id := sandbox.ID("0123456789abcdef0123456789abcdef")
			mustApply(t, s, sandbox.Transaction{AskApproval: &sandbox.Approval{ID: id, State: sandbox.ApprovalPending, Expires: time.Now().Add(time.Hour)}})
			sizes, err := s.Sizes(t.Context())
			if err != nil || sizes[1].Count != c.want+1 {
				t.Errorf("%+v, %v", sizes, err)
			}
			for _, still := range []sandbox.ID{id, "00000000000000000000000000002ee0"} {
				if _, err := s.Approval(t.Context(), still); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestQuestionsMigrated opens a state of before questions had an end and a size.
func TestQuestionsMigrated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	now := time.Now()
	for _, a := range []sandbox.Approval{
		{State: sandbox.ApprovalPending, Expires: now.Add(time.Hour)},
		{State: sandbox.ApprovalApproved, Expires: now.Add(2 * time.Hour), Answered: now},
		{State: sandbox.ApprovalApproved, Expires: now, Always: true, Answered: now},
		{State: sandbox.ApprovalUsed, Expires: now, Answered: now.Add(-time.Hour)},
		{State: sandbox.ApprovalWithdrawn, Asked: now.Add(-2 * time.Hour)},
	} {
		a.ID = sandbox.NewID()
		mustApply(t, s, sandbox.Transaction{AskApproval: &a})
	}
	_ = s.Close()
	ends := func() map[string][2]int64 {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		rows, err := db.QueryContext(t.Context(), "SELECT id, over, size FROM approvals")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		all := map[string][2]int64{}
		for rows.Next() {
			var id string
			var over, size int64
			if err := rows.Scan(&id, &over, &size); err != nil {
				t.Fatal(err)
			}
			all[id] = [2]int64{over, size}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := ends()
	edit(t, dir, withoutOwners...)
	edit(t, dir, "DROP INDEX approvals_over", "ALTER TABLE approvals DROP COLUMN over", "ALTER TABLE approvals DROP COLUMN size", "PRAGMA user_version = 2")
	_ = openDir(t, dir).Close()
	if d := cmp.Diff(want, ends()); d != "" || len(want) != 5 {
		t.Error(d)
	}
}
