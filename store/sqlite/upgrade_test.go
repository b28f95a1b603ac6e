package sqlite_test

import (
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// withoutOwners makes a state what it was before there were owners.
var withoutOwners = []string{
	"DROP INDEX execs_session", "CREATE INDEX execs_session ON execs (session)", "ALTER TABLE execs DROP COLUMN ended",
	"DROP INDEX readings_began", "ALTER TABLE readings DROP COLUMN owner", "ALTER TABLE readings DROP COLUMN began", "ALTER TABLE alerts DROP COLUMN owner",
	"DROP INDEX events_owner", "DROP INDEX approvals_owner", "ALTER TABLE sessions DROP COLUMN owner", "ALTER TABLE execs DROP COLUMN owner",
	"ALTER TABLE approvals DROP COLUMN owner", "ALTER TABLE events DROP COLUMN owner", "DROP TABLE tokens",
}

// TestUpgradeOfSessions opens a state whose sessions an older caisson wrote.
func TestUpgradeOfSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_ = openDir(t, dir).Close()
	edit(t, dir, withoutOwners...)
	edit(t, dir,
		`INSERT INTO execs VALUES ('e', 'old', '{"id":"e","session":"old","owner":"a process"}')`,
		`INSERT INTO execs VALUES ('over', 'old', '{"id":"over","session":"old","ended":"2026-01-02T03:04:05.25Z"}')`,
		`INSERT INTO sessions VALUES ('old', '{"id":"1","name":"old","limits":{"memory_bytes":64,"output_keep_bytes":1,"output_max_bytes":2},`+
			`"idle_ns":1500000000,"ttl_ns":3600000000000,"timeout_ns":30000000000}')`, "PRAGMA user_version = 3")
	edit(t, dir, `INSERT INTO readings (sandbox, session, sampled, ended, data) VALUES ('r1', '', 2000, '', '{"sandbox":"r1","first":"2026-01-02T03:04:05.5Z"}')`,
		`INSERT INTO readings (sandbox, session, sampled, ended, data) VALUES ('r0', '', 1000, '', '{"sandbox":"r0","first":"2026-01-02T03:04:05.75Z"}')`)
	s := openDir(t, dir)
	defer s.Close()
	if r, err := s.Readings(t.Context(), sandbox.ReadingFilter{}); err != nil || len(r) != 2 || r[0].Sandbox != "r0" {
		t.Errorf("readings, by when they began: %v, %+v", err, r)
	}
	v, err := s.Session(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	if v.Idle != sandbox.Duration(1500*time.Millisecond) || v.TTL != sandbox.Duration(time.Hour) || v.Limits != (sandbox.Limits{Memory: 64}) {
		t.Errorf("%+v", v.Session)
	}
	if len(v.Execs) != 2 || v.Execs[0].Holder != "a process" || v.Execs[0].Owner != "" || v.Owner != "" {
		t.Errorf("holders and owners: %+v", v)
	}
	if now, err := s.Sessions(t.Context(), sandbox.SessionFilter{Running: true}); err != nil || len(now) != 1 || len(now[0].Execs) != 1 || now[0].Execs[0].ID != "e" {
		t.Errorf("what runs: %v, %+v", err, now)
	}
}
