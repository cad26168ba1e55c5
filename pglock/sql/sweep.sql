-- The sweep. INVARIANT I11: what is kept for a name that is not used goes away.

-- sweep looks at up to 500 names after the last one, settles and deletes up to 100 of those
-- whose last token is older than _memory, and up to 100 of each kind that has expired. The
-- last name of the step is NULL if there are no more. deleted tells whether it has deleted
-- anything.
CREATE OR REPLACE FUNCTION holdfast.sweep(_after text, _memory bigint, _history boolean, OUT last text, OUT deleted boolean, OUT notices jsonb) LANGUAGE plpgsql AS $$
DECLARE
	now bigint := holdfast.clock();
	old text[]; number integer; _name text; durable boolean := false;
	s holdfast.step;
BEGIN
	deleted := false;
	SELECT (pg_catalog.array_agg(name ORDER BY name) FILTER (WHERE last_token <= now - _memory))[:100], pg_catalog.max(name), pg_catalog.count(*)
		INTO old, last, number
		FROM (SELECT name, last_token FROM holdfast.lock WHERE name > _after ORDER BY name LIMIT 500) AS page;
	IF pg_catalog.cardinality(old) = 100 THEN
		last := old[100];
	ELSIF number < 500 THEN
		last := NULL;
	END IF;
	FOR _name IN SELECT name FROM holdfast.lock WHERE name = ANY (old) ORDER BY name FOR UPDATE SKIP LOCKED LOOP
		s := holdfast.settle(holdfast.look(_name, false, _history));
		DELETE FROM holdfast.event WHERE name = _name AND at <= s.now - 86400000000;
		IF s.lease_id IS NULL AND s.leases = 0 AND s.places = 0 AND s.last_token <= now - _memory AND s.cancels <= now
				AND NOT EXISTS (SELECT FROM holdfast.event WHERE name = _name) THEN
			DELETE FROM holdfast.lock WHERE name = _name;
			deleted := true;
		ELSE
			PERFORM holdfast.put(s);
			durable := durable OR s.grants;
		END IF;
		notices := holdfast.and_notices(notices, s);
	END LOOP;
	DELETE FROM holdfast.cancelled WHERE lease_id IN (SELECT lease_id FROM holdfast.cancelled WHERE expiry <= now LIMIT 100 FOR UPDATE SKIP LOCKED);
	deleted := deleted OR FOUND;
	DELETE FROM holdfast.record WHERE name IN (SELECT name FROM holdfast.record WHERE expiry <= now LIMIT 100 FOR UPDATE SKIP LOCKED);
	deleted := deleted OR FOUND;
	DELETE FROM holdfast.broken WHERE seq IN (SELECT seq FROM (SELECT seq, at FROM holdfast.broken ORDER BY seq LIMIT 100) AS first
		WHERE at <= now - 86400000000);
	deleted := deleted OR FOUND;
	durable := holdfast.commit(durable);
END
$$;
