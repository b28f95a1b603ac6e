-- data is the function without the contents of its files, which code has.
CREATE TABLE IF NOT EXISTS functions (
	owner TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, data TEXT NOT NULL, code TEXT NOT NULL,
	PRIMARY KEY (owner, name)
);
