-- The steps that requests are made of. Package driver explains the words, and package
-- driver/rules has the rules that seen, due, judge and serve repeat here; rules_test.go
-- compares them.

-- look locks the row of a name and reads it, and the clock after that. With _make it makes
-- the row if it is missing; else the name of the step is NULL then. INVARIANT I1: who has
-- the row lock decides alone.
CREATE OR REPLACE FUNCTION holdfast.look(_name text, _make boolean, _history boolean) RETURNS holdfast.step LANGUAGE plpgsql AS $$
DECLARE
	s holdfast.step;
BEGIN
	s.now := holdfast.begin();
	LOOP
		SELECT name, last_token, lease_id, granted, expiry, released, cancels, holder, leases, places, head, tail, events
			INTO s.name, s.last_token, s.lease_id, s.granted, s.expiry, s.released, s.cancels, s.holder, s.leases, s.places, s.head, s.tail, s.events
			FROM holdfast.lock WHERE name = _name FOR NO KEY UPDATE;
		EXIT WHEN FOUND OR NOT _make;
		-- A sweep may have deleted it, or another request may make it.
		INSERT INTO holdfast.lock (name) VALUES (_name) ON CONFLICT DO NOTHING;
	END LOOP;
	s.now := holdfast.clock();
	s.history := _history;
	s.changed := false; s.grants := false; s.stuck := false;
	RETURN s;
END
$$;

-- put writes the row, if it has changed.
CREATE OR REPLACE FUNCTION holdfast.put(s holdfast.step) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF s.changed THEN
		UPDATE holdfast.lock SET last_token = s.last_token, lease_id = s.lease_id, granted = s.granted, expiry = s.expiry,
				released = s.released, cancels = s.cancels, holder = s.holder, leases = s.leases, places = s.places, head = s.head, tail = s.tail,
				events = s.events
			WHERE name = s.name;
	END IF;
END
$$;

-- notices returns what the engine has to send after the commit; NULL if nothing: whom to tell,
-- and, if anybody listens, which events were written.
CREATE OR REPLACE FUNCTION holdfast.notices(s holdfast.step) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	heard boolean := s.first_event IS NOT NULL AND holdfast.heard();
BEGIN
	IF s.notices IS NULL AND NOT heard THEN RETURN NULL; END IF;
	RETURN pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object('notices', s.notices, 'name', s.name,
		'from', CASE WHEN heard THEN s.first_event ELSE 0 END, 'to', s.events));
END
$$;

-- finish writes the row of a step, chooses how its transaction commits, and returns its
-- notices. A name without a row has nothing to write.
CREATE OR REPLACE FUNCTION holdfast.finish(s holdfast.step) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
	PERFORM holdfast.put(s);
	s.grants := holdfast.commit(COALESCE(s.grants, false));
	RETURN holdfast.notices(s);
END
$$;

-- and_notices adds the notices of one more name.
CREATE OR REPLACE FUNCTION holdfast.and_notices(_notices jsonb, s holdfast.step) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	more jsonb := holdfast.notices(s);
BEGIN
	RETURN COALESCE(_notices || more, _notices, more);
END
$$;

-- tell notes a notice to a waiter, to be sent after the commit: 0 to look again, else its token.
CREATE OR REPLACE FUNCTION holdfast.tell(s holdfast.step, _id text, _token bigint, _inbox text) RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	s.notices := COALESCE(s.notices, '[]') || pg_catalog.jsonb_build_object('id', _id, 'token', _token, 'inbox', _inbox);
	RETURN s;
END
$$;

-- note writes an event, if the engine has history. Every 16th time it deletes those that
-- are too many, each sort of its own: see driver.KeepHistory. INVARIANT I11.
CREATE OR REPLACE FUNCTION holdfast.note(s holdfast.step, _kind integer, _mode integer, _limit integer, _permits integer, _token bigint,
	_holder text, _waited bigint, _held bigint, _at bigint, _author text DEFAULT '', _reason text DEFAULT '') RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	IF NOT s.history THEN RETURN s; END IF;
	s.events := s.events + 1;
	s.first_event := COALESCE(s.first_event, s.events);
	s.changed := true;
	INSERT INTO holdfast.event (name, seq, kind, mode, permit_limit, permits, token, holder, waited, held, author, reason, at)
		VALUES (s.name, s.events, _kind, _mode, _limit, _permits, _token, _holder, GREATEST(_waited, 0), GREATEST(_held, 0), _author, _reason, _at);
	IF s.events % 16 = 0 THEN PERFORM holdfast.trim_events(s.name, s.now); END IF;
	RETURN s;
END
$$;

-- trim_events leaves the events of the last seconds, which listeners may not have read.
CREATE OR REPLACE FUNCTION holdfast.trim_events(_name text, _now bigint) RETURNS void LANGUAGE sql AS $$
	DELETE FROM holdfast.event WHERE name = _name AND seq IN (
		SELECT seq FROM (SELECT seq, at, pg_catalog.row_number() OVER (
				PARTITION BY CASE kind WHEN 6 THEN 0 WHEN 7 THEN 1 WHEN 8 THEN 1 ELSE 2 END ORDER BY seq DESC) AS nr
			FROM holdfast.event WHERE name = _name) AS ranked
		WHERE nr > 64 AND at < _now - 5000000)
$$;

-- settle purges a name and serves its queue. INVARIANT I7: no request is decided before its
-- name is settled.
CREATE OR REPLACE FUNCTION holdfast.settle(s holdfast.step) RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	RETURN holdfast.serve(holdfast.purge(s));
END
$$;

-- purge removes what has expired, and the places whose work is done.
CREATE OR REPLACE FUNCTION holdfast.purge(s holdfast.step) RETURNS holdfast.step LANGUAGE plpgsql AS $$
DECLARE
	r holdfast.lease;
	p holdfast.place;
BEGIN
	IF s.lease_id IS NOT NULL AND s.expiry <= s.now THEN
		IF NOT s.released THEN
			s := holdfast.note(s, 4, 0, 0, 0, s.last_token, s.holder, 0, s.expiry - s.granted, s.expiry);
		END IF;
		s.lease_id := NULL;
		s.changed := true;
	END IF;
	IF s.leases > 0 THEN
		FOR r IN WITH over AS (DELETE FROM holdfast.lease WHERE name = s.name AND expiry <= s.now RETURNING *) SELECT * FROM over ORDER BY token LOOP
			IF NOT r.released THEN
				s := holdfast.note(s, 4, r.mode, r.permit_limit, r.permits, r.token, r.holder, 0, r.expiry - r.granted, r.expiry);
			END IF;
			s.leases := s.leases - 1;
			s.changed := true;
		END LOOP;
	END IF;
	IF s.places > 0 THEN
		FOR p IN WITH over AS (DELETE FROM holdfast.place WHERE name = s.name AND seq >= s.head AND (expiry <= s.now
					OR once AND EXISTS (SELECT FROM holdfast.record AS done WHERE done.name = s.name AND done.expiry > s.now)) RETURNING *)
				SELECT * FROM over ORDER BY seq LOOP
			IF p.expiry > s.now THEN s := holdfast.tell(s, p.lease_id, 0, p.inbox); END IF;
			s := holdfast.left_queue(s, p);
		END LOOP;
	END IF;
	RETURN s;
END
$$;

-- left_queue notes that a place, which was deleted, ended without a lease.
CREATE OR REPLACE FUNCTION holdfast.left_queue(s holdfast.step, r holdfast.place) RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	s.places := s.places - 1;
	s.changed := true;
	RETURN holdfast.note(s, 8, r.mode, r.permit_limit, r.permits, 0, r.holder, LEAST(s.now, r.expiry) - r.asked, 0, LEAST(s.now, r.expiry));
END
$$;

-- seen adds up the live leases of a name that was purged: see rules.View.AddLease.
CREATE OR REPLACE FUNCTION holdfast.seen(s holdfast.step) RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	s.mode := NULL;
	IF s.lease_id IS NOT NULL THEN
		s.mode := 0; s.permit_limit := 0; s.permits := 0;
		s.first_holder := s.holder; s.first_granted := s.granted; s.first_expiry := s.expiry; s.first_released := s.released;
	ELSIF s.leases > 0 THEN
		SELECT mode, permit_limit, pg_catalog.sum(permits) OVER (), holder, granted, expiry, released
			INTO s.mode, s.permit_limit, s.permits, s.first_holder, s.first_granted, s.first_expiry, s.first_released
			FROM holdfast.lease WHERE name = s.name ORDER BY expiry, token LIMIT 1;
	END IF;
	RETURN s;
END
$$;

-- fits reports whether a mode may be granted beside the live leases: see rules.View.Fits.
-- INVARIANT I1.
CREATE OR REPLACE FUNCTION holdfast.fits(s holdfast.step, _mode integer, _limit integer, _permits integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RETURN CASE
		WHEN s.mode IS NULL THEN true
		WHEN s.permit_limit <> _limit THEN false
		WHEN _limit <> 0 THEN s.permits + _permits <= _limit
		ELSE s.mode = 1 AND _mode = 1
	END;
END
$$;

-- guard looks whether a transaction keeps the name closed: it has FOR KEY SHARE on the row,
-- and so this FOR UPDATE would wait for it. Who asks for it later waits for us.
CREATE OR REPLACE FUNCTION holdfast.guard(s holdfast.step) RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	IF s.guarded IS NULL THEN
		PERFORM FROM holdfast.lock WHERE name = s.name FOR UPDATE SKIP LOCKED;
		s.guarded := NOT FOUND;
	END IF;
	RETURN s;
END
$$;

-- serve looks at what is there, and hands the lock over in the order of the queue, for as
-- long as the live leases allow it. INVARIANT I7: a smaller request does not overtake.
CREATE OR REPLACE FUNCTION holdfast.serve(s holdfast.step) RETURNS holdfast.step LANGUAGE plpgsql AS $$
DECLARE
	p holdfast.place;
	next_token bigint;
BEGIN
	s := holdfast.seen(s);
	WHILE s.places > 0 AND s.mode IS DISTINCT FROM 0 LOOP -- nothing fits beside an exclusive lease
		SELECT * INTO p FROM holdfast.place WHERE name = s.name AND seq >= s.head ORDER BY seq LIMIT 1;
		EXIT WHEN NOT FOUND;
		IF p.seq > s.head THEN
			s.head := p.seq;
			s.changed := true;
		END IF;
		EXIT WHEN NOT holdfast.fits(s, p.mode, p.permit_limit, p.permits);
		s := holdfast.guard(s);
		EXIT WHEN s.guarded;
		next_token := GREATEST(s.last_token + 4, s.now, p.min_token + 1);
		IF next_token > 9007199254740990 THEN -- the head waits, and its refresh has the error
			s.stuck := true;
			EXIT;
		END IF;
		DELETE FROM holdfast.place WHERE name = s.name AND seq = p.seq;
		s.places := s.places - 1;
		-- The lease ends with the place, so that a dead waiter causes no longer delay.
		s := holdfast.grant(s, p.lease_id, p.mode, p.permit_limit, p.permits, p.holder, next_token, p.expiry);
		s := holdfast.note(s, 2, p.mode, p.permit_limit, p.permits, next_token, p.holder, s.now - p.asked, 0, s.now);
		s := holdfast.tell(s, p.lease_id, next_token, p.inbox);
	END LOOP;
	RETURN s;
END
$$;

-- grant records a lease. INVARIANT I2: the token is above the last one of the name.
CREATE OR REPLACE FUNCTION holdfast.grant(s holdfast.step, _id text, _mode integer, _limit integer, _permits integer, _holder text, _token bigint, _expiry bigint)
	RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	IF _mode = 0 THEN
		s.lease_id := _id; s.granted := s.now; s.expiry := _expiry; s.released := false; s.holder := _holder;
	ELSE
		INSERT INTO holdfast.lease (name, token, lease_id, mode, permit_limit, permits, holder, granted, expiry)
			VALUES (s.name, _token, _id, _mode, _limit, _permits, _holder, s.now, _expiry);
		s.leases := s.leases + 1;
	END IF;
	s.last_token := _token; s.changed := true;
	s.grants := true;
	RETURN holdfast.seen(s);
END
$$;

-- held returns the step with the token of the live lease of an ID. INVARIANT I4: the whole
-- ID is compared, and a lease that was released is not live.
CREATE OR REPLACE FUNCTION holdfast.held(s holdfast.step, _id text) RETURNS holdfast.step LANGUAGE plpgsql AS $$
BEGIN
	s.own := NULL;
	IF s.lease_id = _id AND NOT s.released THEN
		s.own := s.last_token;
	ELSIF s.leases > 0 THEN
		SELECT token INTO s.own FROM holdfast.lease WHERE name = s.name AND lease_id = _id AND NOT released AND expiry > s.now;
	END IF;
	RETURN s;
END
$$;

-- give_up_place removes the place of a lease ID, if it has one. Later places move up.
CREATE OR REPLACE FUNCTION holdfast.give_up_place(s holdfast.step, _id text) RETURNS holdfast.step LANGUAGE plpgsql AS $$
DECLARE
	p holdfast.place;
BEGIN
	IF s.places > 0 THEN
		DELETE FROM holdfast.place WHERE name = s.name AND lease_id = _id RETURNING * INTO p;
		IF FOUND THEN s := holdfast.left_queue(s, p); END IF;
	END IF;
	RETURN s;
END
$$;

-- end_lease ends the lease with the token in own, and notes the kind of its end. With
-- _keep_for it keeps the name closed instead.
CREATE OR REPLACE FUNCTION holdfast.end_lease(s holdfast.step, _kind integer, _keep_for bigint, _author text DEFAULT '', _reason text DEFAULT '')
	RETURNS holdfast.step LANGUAGE plpgsql AS $$
DECLARE
	l holdfast.lease;
BEGIN
	s.changed := true;
	IF s.lease_id IS NOT NULL THEN
		s := holdfast.note(s, _kind, 0, 0, 0, s.last_token, s.holder, 0, s.now - s.granted, s.now, _author, _reason);
		IF _keep_for > 0 THEN
			s.released := true;
			s.expiry := s.now + _keep_for;
		ELSE
			s.lease_id := NULL;
		END IF;
		RETURN s;
	END IF;
	IF _keep_for > 0 THEN
		UPDATE holdfast.lease SET released = true, expiry = s.now + _keep_for WHERE name = s.name AND token = s.own RETURNING * INTO l;
	ELSE
		DELETE FROM holdfast.lease WHERE name = s.name AND token = s.own RETURNING * INTO l;
		s.leases := s.leases - 1;
	END IF;
	RETURN holdfast.note(s, _kind, l.mode, l.permit_limit, l.permits, l.token, l.holder, 0, s.now - l.granted, s.now, _author, _reason);
END
$$;
