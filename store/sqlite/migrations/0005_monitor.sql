-- readings are what sandboxes use and have used; ended is '' while they live.
CREATE TABLE IF NOT EXISTS readings (
	sandbox TEXT PRIMARY KEY, session TEXT NOT NULL, sampled INTEGER NOT NULL, ended TEXT NOT NULL, data TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS readings_sampled ON readings (sampled);
-- alerts: resolved is '' while one fires, and of those there is one for each
-- rule, sandbox and session.
CREATE TABLE IF NOT EXISTS alerts (
	id TEXT PRIMARY KEY, rule TEXT NOT NULL, sandbox TEXT NOT NULL, session TEXT NOT NULL, fired INTEGER NOT NULL, resolved TEXT NOT NULL,
	data TEXT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS alerts_firing ON alerts (rule, sandbox, session) WHERE resolved = '';
CREATE INDEX IF NOT EXISTS alerts_fired ON alerts (fired);
-- letters wait to be delivered; next and posted are in milliseconds.
CREATE TABLE IF NOT EXISTS letters (
	id INTEGER PRIMARY KEY AUTOINCREMENT, receiver TEXT NOT NULL, body BLOB NOT NULL, posted INTEGER NOT NULL, next INTEGER NOT NULL,
	attempts INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS letters_next ON letters (receiver, next);
CREATE INDEX IF NOT EXISTS events_denied ON events (time) WHERE kind = 'exec.denied';
