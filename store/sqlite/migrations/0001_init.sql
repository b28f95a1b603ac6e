CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (name TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sandboxes (id TEXT PRIMARY KEY, session TEXT NOT NULL, secret BLOB NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX sandboxes_session ON sandboxes (session);
CREATE TABLE execs (id TEXT PRIMARY KEY, session TEXT NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX execs_session ON execs (session);
-- AUTOINCREMENT never uses a number again, and keeps the largest in
-- sqlite_sequence: a tail that was cut off shows.
CREATE TABLE events (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	time TEXT NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL, session TEXT NOT NULL, sandbox TEXT NOT NULL, exec TEXT NOT NULL,
	data TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX events_session ON events (session, seq) WHERE session <> '';
CREATE INDEX events_exec ON events (exec, seq) WHERE exec <> '';
