-- over is the second from which on a question is of no use to anybody, and 0 for
-- what holds until it is taken back; size is about what it takes.
ALTER TABLE approvals ADD COLUMN over INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
UPDATE approvals SET size = octet_length(data) + 200, over = CASE
	WHEN state = 'approved' AND json_extract(data, '$.always') THEN 0
	WHEN state IN ('pending', 'approved') THEN CAST(strftime('%s', json_extract(data, '$.expires')) AS INTEGER)
	ELSE CAST(strftime('%s', coalesce(json_extract(data, '$.answered'), asked)) AS INTEGER)
END;
CREATE INDEX approvals_over ON approvals (over, size);
