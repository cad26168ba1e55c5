-- What ends or lengthens leases.

-- release ends the lease and the place of a lease ID, and hands the lock over.
CREATE OR REPLACE FUNCTION holdfast.release(_name text, _id text, _keep_for bigint, _cancel boolean, _lost boolean, _history boolean,
	OUT ok boolean, OUT notices jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	s holdfast.step;
	token bigint; holder text; granted bigint; seq bigint; durable boolean;
	now bigint := holdfast.begin();
	kind integer := CASE WHEN _lost THEN 5 ELSE 3 END;
BEGIN
	-- The fast path: an exclusive lease that nobody waits for ends in one UPDATE.
	IF _keep_for = 0 AND NOT _cancel THEN
		UPDATE holdfast.lock SET lease_id = NULL, events = events + _history::integer
			WHERE name = _name AND lease_id = _id AND NOT released AND places = 0 AND expiry > now
			RETURNING last_token, holder, granted, events INTO token, holder, granted, seq;
		ok := FOUND;
		IF ok THEN
			durable := holdfast.commit(false);
			IF _history THEN notices := holdfast.note_fast(_name, seq, kind, token, holder, GREATEST(now - granted, 0), now); END IF;
			RETURN;
		END IF;
	END IF;
	s := holdfast.look(_name, _cancel, _history);
	ok := s.name IS NOT NULL;
	IF NOT ok THEN RETURN; END IF;
	IF _cancel THEN -- INVARIANT I5: whether or not there is a lease to end
		s.cancels := GREATEST(s.cancels, s.now + 60000000);
		s.changed := true;
		INSERT INTO holdfast.cancelled AS c (lease_id, expiry) VALUES (_id, s.cancels)
			ON CONFLICT (lease_id) DO UPDATE SET expiry = GREATEST(c.expiry, excluded.expiry);
	END IF;
	s := holdfast.held(holdfast.settle(s), _id);
	ok := s.own IS NOT NULL;
	IF ok THEN
		s := holdfast.end_lease(s, kind, _keep_for);
	ELSE
		s := holdfast.give_up_place(s, _id);
	END IF;
	s := holdfast.serve(s);
	IF ok AND _keep_for > 0 THEN s := holdfast.tell_head(s); END IF;
	notices := holdfast.finish(s);
END
$$;

-- tell_head tells the first of the queue to look again: the lock may become free earlier.
CREATE OR REPLACE FUNCTION holdfast.tell_head(s holdfast.step) RETURNS holdfast.step LANGUAGE plpgsql AS $$
DECLARE
	p holdfast.place;
BEGIN
	SELECT * INTO p FROM holdfast.place WHERE name = s.name AND seq >= s.head ORDER BY seq LIMIT 1;
	IF FOUND THEN s := holdfast.tell(s, p.lease_id, 0, p.inbox); END IF;
	RETURN s;
END
$$;

-- extend lengthens the leases of a batch. The answer for each is 0 done, 1 lost, 2 not looked
-- at, because another transaction has the row: only with _wait it waits for that.
CREATE OR REPLACE FUNCTION holdfast.extend(_names text[], _ids text[], _ttls bigint[], _tokens bigint[], _wait boolean) RETURNS integer[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	locked text[]; done text[];
	counted boolean; durable boolean; now bigint := holdfast.begin();
BEGIN
	IF _wait THEN
		SELECT pg_catalog.array_agg(name), pg_catalog.bool_or(leases > 0) INTO locked, counted FROM (
			SELECT name, leases FROM holdfast.lock WHERE name = ANY (_names) ORDER BY name FOR NO KEY UPDATE) AS rows;
	ELSE
		SELECT pg_catalog.array_agg(name), pg_catalog.bool_or(leases > 0) INTO locked, counted FROM (
			SELECT name, leases FROM holdfast.lock WHERE name = ANY (_names) ORDER BY name FOR NO KEY UPDATE SKIP LOCKED) AS rows;
	END IF;
	now := holdfast.clock();
	WITH wanted AS (
		SELECT name, id, token, pg_catalog.max(ttl) AS ttl FROM unnest(_names, _ids, _ttls, _tokens) AS w (name, id, ttl, token)
			WHERE name = ANY (locked) GROUP BY name, id, token
	), exclusive AS (
		UPDATE holdfast.lock AS l SET expiry = GREATEST(l.expiry, now + w.ttl) FROM wanted AS w
			WHERE l.name = w.name AND l.lease_id = w.id AND NOT l.released AND l.expiry > now AND w.token IN (0, l.last_token)
			RETURNING w.name, w.id, w.token
	), others AS (
		UPDATE holdfast.lease AS l SET expiry = GREATEST(l.expiry, now + w.ttl) FROM wanted AS w
			WHERE counted AND l.name = w.name AND l.lease_id = w.id AND NOT l.released AND l.expiry > now AND w.token IN (0, l.token)
			RETURNING w.name, w.id, w.token
	)
	SELECT pg_catalog.array_agg(id || token || ' ' || name) INTO done FROM (SELECT * FROM exclusive UNION ALL SELECT * FROM others) AS found;
	durable := holdfast.commit(done IS NOT NULL);
	RETURN ARRAY(SELECT CASE
			WHEN id || token || ' ' || name = ANY (done) THEN 0
			WHEN name = ANY (locked) OR NOT EXISTS (SELECT FROM holdfast.lock AS l WHERE l.name = w.name) THEN 1
			ELSE 2 END
		FROM unnest(_names, _ids, _tokens) WITH ORDINALITY AS w (name, id, token, i) ORDER BY i);
END
$$;

-- downgrade turns an exclusive lease into a shared one, with the same token and expiry.
CREATE OR REPLACE FUNCTION holdfast.downgrade(_name text, _id text, _history boolean, OUT ok boolean, OUT notices jsonb) LANGUAGE plpgsql AS $$
DECLARE
	s holdfast.step := holdfast.look(_name, false, _history);
BEGIN
	ok := false;
	IF s.name IS NULL THEN RETURN; END IF;
	s := holdfast.held(holdfast.settle(s), _id);
	ok := s.own IS NOT NULL AND s.permit_limit = 0;
	IF ok AND s.mode = 0 THEN
		INSERT INTO holdfast.lease (name, token, lease_id, mode, permit_limit, permits, holder, granted, expiry)
			VALUES (_name, s.own, _id, 1, 0, 0, s.holder, s.granted, s.expiry);
		s.lease_id := NULL;
		s.leases := 1;
		s.changed := true;
		s := holdfast.serve(s);
	END IF;
	notices := holdfast.finish(s);
END
$$;
