-- Readings and alerts have an owner, as sessions have, and readings an order that
-- no new sample changes: by began, the first one, in milliseconds.
ALTER TABLE readings ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE readings ADD COLUMN began INTEGER NOT NULL DEFAULT 0;
UPDATE readings SET began = CAST(round((julianday(json_extract(data, '$.first')) - 2440587.5) * 86400000) AS INTEGER);
CREATE INDEX readings_began ON readings (began);
ALTER TABLE alerts ADD COLUMN owner TEXT NOT NULL DEFAULT '';
