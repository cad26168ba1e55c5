-- Records of do-once work.

-- complete stores a record and, unless _keep is set, ends the lease with it.
CREATE OR REPLACE FUNCTION holdfast.complete(_name text, _id text, _data bytea, _retention bigint, _keep boolean, _history boolean,
	OUT ok boolean, OUT notices jsonb) LANGUAGE plpgsql AS $$
DECLARE
	s holdfast.step := holdfast.look(_name, false, _history);
	earlier text;
BEGIN
	ok := true;
	IF s.name IS NOT NULL THEN s := holdfast.settle(s); END IF;
	SELECT lease_id INTO earlier FROM holdfast.record WHERE name = _name AND expiry > holdfast.clock();
	IF earlier = _id THEN
		s.grants := true; -- INVARIANT I6: a repeat, whose answer must be as durable as the first
	ELSE
		IF s.name IS NOT NULL THEN s := holdfast.held(s, _id); END IF;
		ok := s.own IS NOT NULL; -- INVARIANT I4
		IF ok THEN
			s.grants := true;
			INSERT INTO holdfast.record AS r (name, lease_id, expiry, data) VALUES (_name, CASE WHEN _keep THEN '' ELSE _id END, s.now + _retention, _data)
				ON CONFLICT (name) DO UPDATE SET lease_id = excluded.lease_id, expiry = excluded.expiry, data = excluded.data;
			IF NOT _keep THEN s := holdfast.end_lease(s, 9, 0); END IF;
			s := holdfast.settle(s); -- places whose work is done with this go, even if the lease stays
		END IF;
	END IF;
	notices := holdfast.finish(s);
END
$$;

-- records describes up to 500 records after a name, each by its first bytes.
CREATE OR REPLACE FUNCTION holdfast.records(_from text, _after text, _limit integer)
	RETURNS TABLE (name text, head bytea, length integer, expires_in bigint) LANGUAGE sql STABLE AS $$
	SELECT r.name, pg_catalog.substr(r.data, 1, 2048), pg_catalog.octet_length(r.data), r.expiry - holdfast.clock()
		FROM holdfast.record AS r WHERE r.name >= _from AND r.name > _after AND holdfast.hex() ORDER BY r.name LIMIT _limit
$$;

CREATE OR REPLACE FUNCTION holdfast.recall(_name text) RETURNS TABLE (data bytea, expires_in bigint) LANGUAGE sql STABLE AS $$
	SELECT r.data, r.expiry - c.now FROM holdfast.record AS r, (SELECT holdfast.clock() AS now OFFSET 0) AS c WHERE r.name = _name AND r.expiry > c.now AND holdfast.hex()
$$;

CREATE OR REPLACE FUNCTION holdfast.forget(_name text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM holdfast.begin();
	DELETE FROM holdfast.record WHERE name = _name AND expiry > holdfast.clock();
	RETURN FOUND;
END
$$;
