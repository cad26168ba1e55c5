-- What is shown to people. Nothing here writes, or waits for a row.

-- state describes the names of an array that are there: the live leases and, with _queue, the
-- first places. Instants are durations here, from now in microseconds.
CREATE OR REPLACE FUNCTION holdfast.state(_names text[], _queue integer) RETURNS jsonb LANGUAGE sql STABLE AS $$
	SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('name', l.name, 'last_token', l.last_token,
			'queue_length', CASE WHEN l.places > 0 THEN (SELECT pg_catalog.count(*) FROM holdfast.place AS p WHERE p.name = l.name AND p.expiry > c.now) ELSE 0 END,
			'leases', (SELECT pg_catalog.jsonb_agg(h ORDER BY h.token) FROM (
				SELECT l.lease_id, l.last_token AS token, 0 AS mode, 0 AS permit_limit, 0 AS permits, l.holder,
						c.now - l.granted AS since, l.expiry - c.now AS expires_in, l.released
					WHERE l.lease_id IS NOT NULL AND l.expiry > c.now
				UNION ALL SELECT e.lease_id, e.token, e.mode, e.permit_limit, e.permits, e.holder, c.now - e.granted, e.expiry - c.now, e.released
					FROM holdfast.lease AS e WHERE l.leases > 0 AND e.name = l.name AND e.expiry > c.now) AS h),
			'queue', CASE WHEN l.places > 0 AND _queue > 0 THEN (SELECT pg_catalog.jsonb_agg(q ORDER BY q.seq) FROM (
				SELECT p.seq, p.lease_id, p.mode, p.permit_limit, p.permits, p.holder, c.now - p.asked AS since, p.expiry - c.now AS expires_in
					FROM holdfast.place AS p WHERE p.name = l.name AND p.expiry > c.now ORDER BY p.seq LIMIT _queue) AS q) END
		) ORDER BY l.name)
	FROM (SELECT holdfast.clock() AS now OFFSET 0) AS c, holdfast.lock AS l WHERE l.name = ANY (_names)
$$;

-- page is one step of List: it reads 500 names after the last one, and describes those that
-- are in use. The last name of the step is NULL if there are no more.
CREATE OR REPLACE FUNCTION holdfast.page(_prefix text, _after text, OUT locks jsonb, OUT last text) LANGUAGE plpgsql STABLE AS $$
DECLARE
	used text[];
	number integer;
BEGIN
	SELECT pg_catalog.array_agg(name) FILTER (WHERE lease_id IS NOT NULL OR leases > 0 OR places > 0), pg_catalog.max(name), pg_catalog.count(*)
		INTO used, last, number FROM (
			SELECT name, lease_id, leases, places FROM holdfast.lock WHERE name > _after AND name >= _prefix ORDER BY name LIMIT 500) AS names
		WHERE pg_catalog.starts_with(name, _prefix);
	IF number < 500 THEN last := NULL; END IF;
	locks := holdfast.state(used, 0);
END
$$;
