-- History, and what feeds need.

-- history returns the events of a name. It writes only if something has expired.
CREATE OR REPLACE FUNCTION holdfast.history(_name text, OUT events jsonb, OUT notices jsonb) LANGUAGE plpgsql AS $$
DECLARE
	s holdfast.step;
	now bigint := holdfast.clock();
BEGIN
	IF EXISTS (SELECT FROM holdfast.lock WHERE name = _name AND lease_id IS NOT NULL AND expiry <= now)
			OR EXISTS (SELECT FROM holdfast.lease WHERE name = _name AND expiry <= now)
			OR EXISTS (SELECT FROM holdfast.place WHERE name = _name AND expiry <= now) THEN
		s := holdfast.look(_name, false, true);
		IF s.name IS NOT NULL THEN
			s := holdfast.settle(s);
			notices := holdfast.finish(s);
		END IF;
	END IF;
	events := holdfast.events_of(_name, 0, 0, 0);
END
$$;

-- events_of returns the events of a name after a number that are not older than an instant,
-- and those from another number on however old they are.
CREATE OR REPLACE FUNCTION holdfast.events_of(_name text, _after bigint, _since bigint, _from bigint) RETURNS jsonb LANGUAGE sql STABLE AS $$
	SELECT pg_catalog.jsonb_agg(e ORDER BY e.seq) FROM (
		SELECT *, holdfast.clock() - at AS ago FROM holdfast.event WHERE name = _name AND seq > _after AND (at >= _since OR seq >= _from)) AS e
$$;

-- listen keeps the row of a listener for a minute, and returns the clock.
CREATE OR REPLACE FUNCTION holdfast.listen(_inbox text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	now bigint := holdfast.clock();
BEGIN
	INSERT INTO holdfast.listener (inbox, expiry) VALUES (_inbox, now + 60000000)
		ON CONFLICT (inbox) DO UPDATE SET expiry = excluded.expiry;
	DELETE FROM holdfast.listener WHERE inbox IN (SELECT inbox FROM holdfast.listener WHERE expiry <= now LIMIT 16 FOR UPDATE SKIP LOCKED);
	PERFORM holdfast.commit(false);
	RETURN now;
END
$$;
