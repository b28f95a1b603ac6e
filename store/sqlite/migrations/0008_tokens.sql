-- What callers of a server show. hash is of the secret, which is not kept.
CREATE TABLE tokens (
	id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, hash BLOB NOT NULL UNIQUE, data TEXT NOT NULL
) WITHOUT ROWID;
