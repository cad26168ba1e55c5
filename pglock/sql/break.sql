-- Break.

-- break ends the leases that are named by their tokens, and hands the lock over. INVARIANT
-- I4: a later lease has another token. It returns those that it has ended, and those that an
-- earlier copy of the request has.
CREATE OR REPLACE FUNCTION holdfast.break(_name text, _break_id text, _token bigint, _older boolean, _closed boolean, _author text, _reason text,
	_history boolean, OUT ended jsonb, OUT notices jsonb) LANGUAGE plpgsql AS $$
DECLARE
	s holdfast.step := holdfast.look(_name, false, _history);
	l record;
	first bigint;
BEGIN
	IF s.name IS NOT NULL THEN
		s := holdfast.settle(s);
		FOR l IN SELECT s.last_token AS token, s.lease_id, 0 AS mode, 0 AS permit_limit, 0 AS permits, s.holder, s.released WHERE s.lease_id IS NOT NULL
				UNION ALL SELECT e.token, e.lease_id, e.mode, e.permit_limit, e.permits, e.holder, e.released FROM holdfast.lease AS e WHERE s.leases > 0 AND e.name = _name
				ORDER BY token LOOP
			CONTINUE WHEN l.released <> _closed OR NOT (l.token = _token OR _older AND l.token < _token);
			s.own := l.token;
			s.grants := true;
			s := holdfast.end_lease(s, 6, 0, _author, _reason);
			INSERT INTO holdfast.broken (name, break_id, lease_id, token, mode, permit_limit, permits, holder, author, reason, at)
				VALUES (_name, _break_id, l.lease_id, l.token, l.mode, l.permit_limit, l.permits, l.holder, _author, _reason, s.now);
		END LOOP;
		s := holdfast.serve(s);
	END IF;
	ended := holdfast.breaks(_name, _break_id);
	s.grants := s.grants OR ended IS NOT NULL; -- the answer to a repeat must be as durable as the first
	DELETE FROM holdfast.broken WHERE name = _name AND seq <= (SELECT seq FROM holdfast.broken WHERE name = _name ORDER BY seq DESC LIMIT 1 OFFSET 128);
	notices := holdfast.finish(s);
END
$$;

-- breaks returns the records of a name, of one request if its ID is not empty, the latest last.
CREATE OR REPLACE FUNCTION holdfast.breaks(_name text, _break_id text) RETURNS jsonb LANGUAGE sql STABLE AS $$
	SELECT pg_catalog.jsonb_agg(b ORDER BY b.seq) FROM (
		SELECT seq, name, break_id, lease_id, token, mode, permit_limit, permits, holder, author, reason, holdfast.clock() - at AS ago
			FROM holdfast.broken WHERE name = _name AND _break_id IN ('', break_id)) AS b
$$;
