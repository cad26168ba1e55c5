-- The lock inside a transaction of the caller's.

-- hold makes the transaction a guard of a lease that is live, and reports whether it is.
-- Locking and looking are two statements, because the row lock does not wait for a
-- release, and the look has to see each that came before the guard: therefore the second
-- one needs a snapshot of its own. It leaves the settings of the transaction alone.
CREATE OR REPLACE FUNCTION holdfast.hold(_name text, _id text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF pg_catalog.current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE 'the isolation level of the transaction is not read committed' USING ERRCODE = 'invalid_transaction_state';
	END IF;
	PERFORM FROM holdfast.lock WHERE name = _name FOR KEY SHARE;
	RETURN EXISTS (SELECT FROM holdfast.lock WHERE name = _name AND lease_id = _id AND NOT released AND expiry > holdfast.clock())
		OR EXISTS (SELECT FROM holdfast.lease WHERE name = _name AND lease_id = _id AND NOT released AND expiry > holdfast.clock());
END
$$;
