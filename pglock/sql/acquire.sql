-- Acquire, of one name and of several.

-- acquire decides about one request. It returns the token, or why there is none: see
-- answer.
CREATE OR REPLACE FUNCTION holdfast.acquire(_name text, _id text, _mode integer, _limit integer, _permits integer, _ttl bigint, _holder text,
	_min bigint, _first boolean, _once boolean, _queue boolean, _waiter_ttl bigint, _inbox text, _history boolean,
	OUT token bigint, OUT answer jsonb, OUT data bytea, OUT notices jsonb)
	LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	s holdfast.step;
	outcome integer; guarded boolean; durable boolean; seq bigint; clock bigint;
	started bigint := holdfast.begin();
BEGIN
	-- The fast path: an exclusive lock that is free is taken in one UPDATE, or by one INSERT
	-- if the name is new. INVARIANT I5: a cancel writes the row, so that the UPDATE sees it
	-- even if it waited for the row behind that. INVARIANT I2: a token reserves four, as
	-- driver.TokenRange says.
	IF _mode = 0 AND NOT _once AND _min < started AND started < 9007199254740990 THEN
		UPDATE holdfast.lock SET lease_id = _id, last_token = GREATEST(last_token + 4, started), granted = started, expiry = started + _ttl,
				released = false, holder = _holder, events = events + _history::integer
			WHERE name = _name AND lease_id IS NULL AND leases = 0 AND places = 0 AND cancels <= started AND GREATEST(last_token + 3, started) < 9007199254740990
			RETURNING last_token, xmax <> '0'::xid, events INTO token, guarded, seq;
		IF NOT FOUND THEN
			INSERT INTO holdfast.lock (name, last_token, lease_id, granted, expiry, holder, events)
				VALUES (_name, started, _id, started, started + _ttl, _holder, _history::integer)
				ON CONFLICT DO NOTHING RETURNING last_token, false, events INTO token, guarded, seq;
		END IF;
		IF guarded THEN -- a guard is a locker of the row
			UPDATE holdfast.lock SET lease_id = NULL, events = events - _history::integer WHERE name = _name;
			token := NULL;
		ELSIF token IS NOT NULL THEN
			clock := holdfast.clock();
			IF clock > started + 1000 THEN -- it has waited for the row: the lease begins now
				token := GREATEST(token, clock);
				UPDATE holdfast.lock SET last_token = token, granted = clock, expiry = clock + _ttl WHERE name = _name;
			END IF;
			durable := holdfast.commit(true);
			IF _history THEN notices := holdfast.note_fast(_name, seq, 1, token, _holder, 0, clock); END IF;
			RETURN;
		END IF;
	END IF;
	s := holdfast.settle(holdfast.look(_name, true, _history));
	s := holdfast.held(s, _id);
	outcome := holdfast.judge(s, _id, _mode, _limit, _permits, _min, _first, _once);
	IF outcome = 1 AND s.own IS NULL THEN
		s := holdfast.guard(s);
		outcome := CASE WHEN s.guarded THEN 0 ELSE 1 END;
	END IF;
	IF outcome = 1 THEN
		s := holdfast.take(s, _id, _mode, _limit, _permits, _ttl, _holder, _min);
		token := s.own;
	ELSE
		IF outcome = 0 AND _queue THEN
			s := holdfast.give_place(s, _id, _mode, _limit, _permits, _holder, _min, _once, _waiter_ttl, _inbox);
		END IF;
		answer := holdfast.answer(s, outcome);
		IF outcome = 0 AND _queue THEN
			answer := answer || pg_catalog.jsonb_build_object('place', holdfast.rank(s, _id));
		ELSIF outcome = 3 THEN
			data := (SELECT data FROM holdfast.record WHERE name = _name AND holdfast.hex());
		END IF;
	END IF;
	notices := holdfast.finish(s);
END
$$;

-- answer says why a request of a settled name was not granted. The outcome is that of
-- driver.Outcome, or 100 for another kind, which is the mode of what is there; 101 for a
-- MinToken or a clock that is too far ahead; 102 if there is no token left. The rest is
-- driver.Blocker: behind a guard a lock that was released, and worth another look soon.
CREATE OR REPLACE FUNCTION holdfast.answer(s holdfast.step, _outcome integer) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	p holdfast.place;
BEGIN
	IF _outcome = 100 AND s.mode IS NULL THEN
		SELECT * INTO p FROM holdfast.place WHERE name = s.name AND seq >= s.head ORDER BY seq LIMIT 1;
		RETURN pg_catalog.jsonb_build_object('outcome', 100, 'mode', p.mode, 'permit_limit', p.permit_limit, 'permits', p.permits);
	ELSIF s.mode IS NULL THEN
		RETURN pg_catalog.jsonb_build_object('outcome', _outcome, 'clock', s.now, 'queue', s.places,
			'released', s.guarded, 'expires_in', CASE WHEN s.guarded THEN 100000 ELSE 0 END);
	END IF;
	RETURN pg_catalog.jsonb_build_object('outcome', _outcome, 'clock', s.now, 'queue', s.places,
		'mode', s.mode, 'permit_limit', s.permit_limit, 'permits', s.permits, 'holder', s.first_holder,
		'since', GREATEST(s.now - s.first_granted, 0), 'expires_in', s.first_expiry - s.now, 'released', s.first_released);
END
$$;

-- note_fast does for a fast path what note and notices do.
CREATE OR REPLACE FUNCTION holdfast.note_fast(_name text, _seq bigint, _kind integer, _token bigint, _holder text, _held bigint, _now bigint)
	RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	heard boolean;
BEGIN
	INSERT INTO holdfast.event (name, seq, kind, mode, permit_limit, permits, token, holder, waited, held, author, reason, at)
		VALUES (_name, _seq, _kind, 0, 0, 0, _token, _holder, 0, _held, '', '', _now)
		RETURNING EXISTS (SELECT FROM holdfast.listener WHERE expiry > _now) INTO heard;
	IF _seq % 16 = 0 THEN PERFORM holdfast.trim_events(_name, _now); END IF;
	IF NOT heard THEN RETURN NULL; END IF;
	RETURN pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object('name', _name, 'from', _seq, 'to', _seq));
END
$$;

-- judge is rules.View.Judge, with the outcomes of acquire. The name is settled, and own is
-- that of the lease ID.
CREATE OR REPLACE FUNCTION holdfast.judge(s holdfast.step, _id text, _mode integer, _limit integer, _permits integer, _min bigint,
	_first boolean, _once boolean) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
	there integer := s.permit_limit; -- the limit of what is there: it tells the kind
BEGIN
	IF s.cancels > s.now THEN
		IF EXISTS (SELECT FROM holdfast.cancelled WHERE lease_id = _id AND expiry > s.now) THEN RETURN 2; END IF; -- INVARIANT I5
	END IF;
	IF _first AND (s.own IS NOT NULL OR s.places > 0 AND EXISTS (SELECT FROM holdfast.place WHERE name = s.name AND lease_id = _id)) THEN
		RETURN 5;
	ELSIF s.own IS NOT NULL THEN
		RETURN 1; -- INVARIANT I6: a repeat
	ELSIF _once THEN
		IF EXISTS (SELECT FROM holdfast.record WHERE name = s.name AND expiry > s.now) THEN RETURN 3; END IF;
	END IF;
	IF s.mode IS NULL AND s.places > 0 THEN
		SELECT permit_limit INTO there FROM holdfast.place WHERE name = s.name AND seq >= s.head ORDER BY seq LIMIT 1;
	END IF;
	RETURN CASE
		WHEN (s.mode IS NOT NULL OR s.places > 0) AND there <> _limit THEN 100 -- INVARIANT I12
		WHEN _min > s.now + 3600000000 OR GREATEST(s.now, _min + 1) > 9007199254740990 THEN 101
		WHEN s.stuck THEN 102
		WHEN s.places > 0 OR NOT holdfast.fits(s, _mode, _limit, _permits) THEN 0 -- INVARIANT I7
		WHEN s.last_token + 4 > 9007199254740990 THEN 102
		ELSE 1
	END;
END
$$;

-- take records the lease of a request that is granted, or lengthens the one that it has;
-- own is its token.
CREATE OR REPLACE FUNCTION holdfast.take(s holdfast.step, _id text, _mode integer, _limit integer, _permits integer, _ttl bigint, _holder text, _min bigint)
	RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	IF s.own IS NOT NULL THEN RETURN holdfast.lengthen(s, _ttl); END IF;
	s.own := GREATEST(s.last_token + 4, s.now, _min + 1);
	s := holdfast.grant(s, _id, _mode, _limit, _permits, _holder, s.own, s.now + _ttl);
	RETURN holdfast.note(s, 1, _mode, _limit, _permits, s.own, _holder, 0, 0, s.now);
END
$$;

-- lengthen moves the end of the lease with the token in own, but never to an earlier time.
CREATE OR REPLACE FUNCTION holdfast.lengthen(s holdfast.step, _ttl bigint) RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	s.grants := true;
	IF s.lease_id IS NOT NULL THEN
		s.expiry := GREATEST(s.expiry, s.now + _ttl);
		s.changed := true;
	ELSE
		UPDATE holdfast.lease SET expiry = GREATEST(expiry, s.now + _ttl) WHERE name = s.name AND token = s.own;
	END IF;
	RETURN s;
END
$$;

-- give_place puts a request at the end of the queue, or lengthens the place that it has.
-- Notices about it go to the engine that requested it last.
CREATE OR REPLACE FUNCTION holdfast.give_place(s holdfast.step, _id text, _mode integer, _limit integer, _permits integer, _holder text,
	_min bigint, _once boolean, _waiter_ttl bigint, _inbox text) RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	IF s.places > 0 THEN
		UPDATE holdfast.place SET expiry = GREATEST(expiry, s.now + _waiter_ttl), inbox = _inbox WHERE name = s.name AND lease_id = _id;
		IF FOUND THEN RETURN s; END IF;
	END IF;
	s.tail := s.tail + 1;
	s.places := s.places + 1;
	s.changed := true;
	INSERT INTO holdfast.place (name, seq, lease_id, mode, permit_limit, permits, min_token, once, holder, asked, expiry, inbox)
		VALUES (s.name, s.tail, _id, _mode, _limit, _permits, _min, _once, _holder, s.now, s.now + _waiter_ttl, _inbox);
	RETURN holdfast.note(s, 7, _mode, _limit, _permits, 0, _holder, 0, 0, s.now);
END
$$;

-- rank returns which place a lease ID has, 1 for the first; NULL if it has none.
CREATE OR REPLACE FUNCTION holdfast.rank(s holdfast.step, _id text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	mine bigint := (SELECT seq FROM holdfast.place WHERE name = s.name AND lease_id = _id);
BEGIN
	IF mine = s.tail THEN RETURN s.places; END IF;
	RETURN (SELECT pg_catalog.count(*) FROM holdfast.place WHERE name = s.name AND seq >= s.head AND seq <= mine HAVING mine IS NOT NULL);
END
$$;

-- acquire_all takes all of several locks or none. It decides in the order of the requests,
-- and locks in that of the names. In the answer refused counts from 0.
CREATE OR REPLACE FUNCTION holdfast.acquire_all(_names text[], _ids text[], _modes integer[], _limits integer[], _permits integer[], _ttls bigint[],
	_holders text[], _mins bigint[], _firsts boolean[], _history boolean,
	OUT tokens bigint[], OUT answer jsonb, OUT notices jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	steps holdfast.step[];
	s holdfast.step;
	i integer; outcome integer := 1; durable boolean := false;
BEGIN
	FOR i IN SELECT w.i FROM pg_catalog.unnest(_names) WITH ORDINALITY AS w (name, i) ORDER BY w.name COLLATE "C" LOOP
		steps[i] := holdfast.look(_names[i], true, _history);
	END LOOP;
	FOR i IN 1 .. pg_catalog.cardinality(_names) LOOP
		s := steps[i];
		s.now := holdfast.clock(); -- it may have waited for the others
		s := holdfast.held(holdfast.settle(s), _ids[i]);
		IF outcome = 1 THEN
			outcome := holdfast.judge(s, _ids[i], _modes[i], _limits[i], _permits[i], _mins[i], _firsts[i], false);
			IF outcome = 1 AND s.own IS NULL THEN
				s := holdfast.guard(s);
				outcome := CASE WHEN s.guarded THEN 0 ELSE 1 END;
			END IF;
			IF outcome <> 1 THEN
				answer := holdfast.answer(s, outcome) || pg_catalog.jsonb_build_object('refused', i - 1);
			END IF;
		END IF;
		steps[i] := s;
	END LOOP;
	FOR i IN 1 .. pg_catalog.cardinality(_names) LOOP
		s := steps[i];
		IF outcome = 1 THEN
			s := holdfast.take(s, _ids[i], _modes[i], _limits[i], _permits[i], _ttls[i], _holders[i], _mins[i]);
			tokens[i] := s.own;
		END IF;
		notices := holdfast.and_notices(notices, s);
		durable := durable OR s.grants;
		PERFORM holdfast.put(s);
	END LOOP;
	durable := holdfast.commit(durable);
END
$$;
