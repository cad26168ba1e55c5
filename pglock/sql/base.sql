-- What all functions use. This file comes before those whose functions the server checks
-- when it makes them: files are installed in the order of their names.
--
-- An assignment calls a function directly, and one expression in SQL is a part of its caller.
-- PERFORM, and an expression with a subquery, are statements of their own, which take the server
-- 10 to 60 µs.

-- clock returns the server's clock in microseconds since 1970. It goes on within a
-- transaction.
CREATE OR REPLACE FUNCTION holdfast.clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$
	SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint
$$;

-- begin prepares a transaction, and returns the clock: it must see what others have committed
-- while it waited, and a row that a foreign transaction holds must not keep it for ever. The
-- client must receive the warning that a standby lacks the commit, whatever its role hides.
CREATE OR REPLACE FUNCTION holdfast.begin() RETURNS bigint LANGUAGE sql VOLATILE AS $$
	SELECT CASE
		WHEN pg_catalog.current_setting('transaction_isolation') <> 'read committed' THEN holdfast.wrong_isolation()
		WHEN pg_catalog.set_config('client_min_messages', 'warning', true) = 'warning'
			AND pg_catalog.set_config('lock_timeout', '5s', true) = '5s' THEN holdfast.clock()
	END
$$;

CREATE OR REPLACE FUNCTION holdfast.wrong_isolation() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RAISE 'holdfast needs the isolation level read committed' USING ERRCODE = 'invalid_transaction_state';
END
$$;

-- commit decides how the commit is done: what grants something is durable, on this server
-- at least. The loss of anything else costs time and never exclusion. It returns its argument.
CREATE OR REPLACE FUNCTION holdfast.commit(_durable boolean) RETURNS boolean LANGUAGE sql VOLATILE AS $$
	SELECT CASE
		WHEN NOT _durable THEN pg_catalog.set_config('synchronous_commit', 'off', true) <> 'off'
		WHEN pg_catalog.current_setting('synchronous_commit') = 'off' THEN pg_catalog.set_config('synchronous_commit', 'local', true) = 'local'
		ELSE true
	END
$$;

-- hex makes the bytes of a reply readable whatever bytea_output the role has. Behind a pooler
-- they are text. It returns true.
CREATE OR REPLACE FUNCTION holdfast.hex() RETURNS boolean LANGUAGE sql VOLATILE AS $$
	SELECT pg_catalog.set_config('bytea_output', 'hex', true) = 'hex'
$$;

-- heard reports whether anybody listens for events.
CREATE OR REPLACE FUNCTION holdfast.heard() RETURNS boolean LANGUAGE sql VOLATILE AS $$
	SELECT EXISTS (SELECT FROM holdfast.listener WHERE expiry > holdfast.clock())
$$;
