-- owner is the tenant that something belongs to, '' the local user. What was called
-- so before, the process that holds a sandbox or an exec, is its holder.
ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE execs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE sandboxes SET data = json_remove(json_set(data, '$.holder', json_extract(data, '$.owner')), '$.owner') WHERE json_type(data, '$.owner') = 'text';
UPDATE execs SET data = json_remove(json_set(data, '$.holder', json_extract(data, '$.owner')), '$.owner') WHERE json_type(data, '$.owner') = 'text';
CREATE INDEX events_owner ON events (owner, seq) WHERE owner <> '';
CREATE INDEX approvals_owner ON approvals (owner, asked) WHERE owner <> '';
