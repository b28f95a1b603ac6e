-- executions, in the order of their seq. request has secrets, and is cut down as
-- soon as they are not needed; expires is in milliseconds, 0 before the end.
CREATE TABLE IF NOT EXISTS executions (
	seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, state TEXT NOT NULL, session TEXT NOT NULL,
	callback TEXT NOT NULL, expires INTEGER NOT NULL, data TEXT NOT NULL, run TEXT NOT NULL, result TEXT NOT NULL, request BLOB NOT NULL,
	size INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS executions_queued ON executions (owner, size) WHERE state = 'queued';
CREATE INDEX IF NOT EXISTS executions_state ON executions (state, seq);
CREATE INDEX IF NOT EXISTS executions_owner ON executions (owner, seq);
CREATE INDEX IF NOT EXISTS executions_expires ON executions (expires) WHERE expires > 0;
