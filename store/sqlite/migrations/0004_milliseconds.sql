-- Times of a session are kept as they are told, in milliseconds; the limits of an
-- exec are no longer the session's.
UPDATE sessions SET data = json_remove(
	json_set(data, '$.idle_ms', json_extract(data, '$.idle_ns') / 1000000, '$.ttl_ms', json_extract(data, '$.ttl_ns') / 1000000),
	'$.idle_ns', '$.ttl_ns', '$.timeout_ns', '$.limits.output_keep_bytes', '$.limits.output_max_bytes'
);
