-- One-time tokens: see driver.Vault. Instants are compared behind the row lock.

-- deposit stores a token. The answer is 0 done, or a repeat; 1 if another request has stored
-- one under the digest.
CREATE OR REPLACE FUNCTION holdfast.deposit(_digest text, _by text, _payload bytea, _ttl bigint, _memory bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
	now bigint := holdfast.begin();
	stored boolean;
BEGIN
	INSERT INTO holdfast.onetime AS o (digest, lease_id, state, taker, payload, due, forget) VALUES (_digest, _by, 1, '', _payload, now + _ttl, now + _ttl + _memory)
		ON CONFLICT (digest) DO UPDATE SET lease_id = excluded.lease_id, state = 1, taker = '', payload = excluded.payload, due = excluded.due, forget = excluded.forget
		WHERE o.forget <= now;
	stored := FOUND;
	PERFORM holdfast.commit(true);
	RETURN CASE WHEN stored OR EXISTS (SELECT FROM holdfast.onetime WHERE digest = _digest AND lease_id = _by) THEN 0 ELSE 1 END;
END
$$;

-- token reads a token, with its state as Vault knows it, 4 if the TTL has ended. left is the
-- time for which the payload is handed out.
CREATE OR REPLACE FUNCTION holdfast.token(_digest text, _now bigint, OUT state integer, OUT taker text, OUT payload bytea, OUT expires_in bigint) LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN state = 1 AND (payload IS NULL OR due <= _now) THEN 4 ELSE state END, taker,
			CASE WHEN due > _now THEN payload END, due - _now
		FROM holdfast.onetime WHERE digest = _digest AND forget > _now AND holdfast.hex()
$$;

-- redeem hands out the payload of a fresh token, and for 30 seconds to the same request.
CREATE OR REPLACE FUNCTION holdfast.redeem(_digest text, _by text, OUT state integer, OUT granted boolean, OUT payload bytea) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	now bigint;
	t record;
BEGIN
	PERFORM holdfast.begin();
	PERFORM FROM holdfast.onetime WHERE digest = _digest FOR UPDATE;
	now := holdfast.clock();
	SELECT * INTO t FROM holdfast.token(_digest, now);
	state := COALESCE(t.state, 0);
	granted := state = 1 OR state = 2 AND t.taker = _by AND t.payload IS NOT NULL; -- INVARIANT I6
	IF granted THEN payload := t.payload; END IF;
	IF state = 1 THEN
		UPDATE holdfast.onetime SET state = 2, taker = _by, due = LEAST(forget, now + 30000000) WHERE digest = _digest;
		state := 2;
	END IF;
	PERFORM holdfast.commit(granted);
END
$$;

-- revoke revokes a fresh token, and returns the state before.
CREATE OR REPLACE FUNCTION holdfast.revoke(_digest text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
	before integer;
BEGIN
	PERFORM holdfast.begin();
	PERFORM FROM holdfast.onetime WHERE digest = _digest FOR UPDATE;
	before := (SELECT state FROM holdfast.token(_digest, holdfast.clock()));
	IF before = 1 THEN
		UPDATE holdfast.onetime SET state = 3, payload = NULL, due = forget WHERE digest = _digest;
	END IF;
	PERFORM holdfast.commit(true);
	RETURN COALESCE(before, 0);
END
$$;

-- prune deletes tokens that are past their memory, and payloads that nobody can be handed,
-- _limit together. INVARIANT I11.
CREATE OR REPLACE FUNCTION holdfast.prune(_limit integer, OUT deleted integer, OUT more boolean) LANGUAGE plpgsql AS $$
DECLARE
	now bigint := holdfast.begin();
	digests text[];
BEGIN
	digests := ARRAY(SELECT digest FROM holdfast.onetime WHERE due <= now ORDER BY due LIMIT _limit FOR UPDATE SKIP LOCKED);
	DELETE FROM holdfast.onetime WHERE digest = ANY (digests) AND forget <= now;
	GET DIAGNOSTICS deleted = ROW_COUNT;
	UPDATE holdfast.onetime SET payload = NULL, due = forget WHERE digest = ANY (digests);
	PERFORM holdfast.commit(false);
	more := EXISTS (SELECT FROM holdfast.onetime WHERE due <= now);
END
$$;
