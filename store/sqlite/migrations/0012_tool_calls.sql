-- What owners have called of tools with a budget, until it begins anew: in milliseconds.
CREATE TABLE IF NOT EXISTS tool_calls (
	owner TEXT NOT NULL, tool TEXT NOT NULL, until INTEGER NOT NULL, calls INTEGER NOT NULL,
	PRIMARY KEY (owner, tool)
) WITHOUT ROWID;
