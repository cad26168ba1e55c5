-- Refresh.

-- refresh lengthens places, gives up those with a ttl of 0, and reports each: outcome 0 with
-- the place, 1 with the token, 100 for ErrLost, 102 if there is no token left for the head,
-- and 103 if another transaction has the row; only with _wait it waits for that. A lease is
-- not lengthened: its holder does not know of it yet.
CREATE OR REPLACE FUNCTION holdfast.refresh(_names text[], _ids text[], _ttls bigint[], _wait boolean, _history boolean,
	OUT replies jsonb, OUT notices jsonb) LANGUAGE plpgsql AS $$
DECLARE
	s holdfast.step;
	_name text; r record; answers jsonb[]; durable boolean := false;
BEGIN
	FOR _name IN SELECT DISTINCT w.name COLLATE "C" FROM pg_catalog.unnest(_names) AS w (name) ORDER BY 1 LOOP
		IF NOT _wait THEN
			PERFORM FROM holdfast.lock WHERE name = _name FOR NO KEY UPDATE SKIP LOCKED;
			IF NOT FOUND AND EXISTS (SELECT FROM holdfast.lock WHERE name = _name) THEN
				FOR i IN 1 .. pg_catalog.cardinality(_names) LOOP
					IF _names[i] = _name THEN answers[i] := '{"outcome": 103}'; END IF;
				END LOOP;
				CONTINUE;
			END IF;
		END IF;
		s := holdfast.look(_name, false, _history);
		IF s.name IS NOT NULL THEN s := holdfast.settle(s); END IF;
		FOR i IN 1 .. pg_catalog.cardinality(_names) LOOP
			CONTINUE WHEN _names[i] <> _name;
			answers[i] := '{"outcome": 100}';
			IF s.name IS NOT NULL THEN
				SELECT f.s, f.answer INTO r FROM holdfast.refresh_one(s, _ids[i], _ttls[i]) AS f;
				s := r.s;
				answers[i] := r.answer;
			END IF;
		END LOOP;
		IF s.name IS NOT NULL THEN
			-- The ranks are counted once for all places of the name.
			FOR r IN SELECT w.i, p.rank FROM (
					SELECT lease_id, pg_catalog.row_number() OVER (ORDER BY seq) AS rank FROM holdfast.place WHERE name = _name AND seq >= s.head) AS p
				JOIN unnest(_names, _ids) WITH ORDINALITY AS w (name, id, i) ON w.name = _name AND w.id = p.lease_id
			LOOP
				answers[r.i] := answers[r.i] || pg_catalog.jsonb_build_object('place', r.rank, 'queue', s.places);
			END LOOP;
			PERFORM holdfast.put(s);
			durable := durable OR s.grants;
			notices := holdfast.and_notices(notices, s);
		END IF;
	END LOOP;
	durable := holdfast.commit(durable);
	replies := pg_catalog.to_jsonb(answers);
END
$$;

-- refresh_one answers one request of a name that is settled.
CREATE OR REPLACE FUNCTION holdfast.refresh_one(INOUT s holdfast.step, _id text, _ttl bigint, OUT answer jsonb) LANGUAGE plpgsql AS $$
DECLARE
	before integer := s.places; stuck boolean := s.stuck;
BEGIN
	s := holdfast.held(s, _id);
	IF s.own IS NOT NULL THEN
		s.grants := true; -- the answer must be as durable as the hand-over
		answer := pg_catalog.jsonb_build_object('outcome', 1, 'token', s.own);
		RETURN;
	END IF;
	IF _ttl = 0 THEN
		s := holdfast.give_up_place(s, _id);
		IF s.places = before THEN
			answer := '{"outcome": 100}';
			RETURN;
		END IF;
		s := holdfast.serve(s); -- the others may have waited for it
		stuck := false;
	ELSE
		UPDATE holdfast.place SET expiry = GREATEST(expiry, s.now + _ttl) WHERE name = s.name AND lease_id = _id;
		IF NOT FOUND THEN
			answer := '{"outcome": 100}';
			RETURN;
		END IF;
	END IF;
	answer := holdfast.answer(s, CASE WHEN stuck THEN 102 ELSE 0 END);
END
$$;
