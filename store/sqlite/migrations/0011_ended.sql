-- ended is when an exec ended, in milliseconds, 0 while it runs: who asks for what
-- runs in a session reads nothing of what ran in it.
ALTER TABLE execs ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
UPDATE execs SET ended = CAST(round((julianday(json_extract(data, '$.ended')) - 2440587.5) * 86400000) AS INTEGER) WHERE json_extract(data, '$.ended') IS NOT NULL;
DROP INDEX execs_session;
CREATE INDEX execs_session ON execs (session, ended);
