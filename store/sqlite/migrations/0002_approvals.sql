CREATE TABLE approvals (
	id TEXT PRIMARY KEY, digest TEXT NOT NULL, state TEXT NOT NULL, asked TEXT NOT NULL, data TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX approvals_digest ON approvals (digest, state);
CREATE INDEX approvals_asked ON approvals (asked);
