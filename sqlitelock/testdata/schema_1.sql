-- Schema version 1 of a holdfast lock database (PRAGMA user_version).
--
-- Instants are nanoseconds of the host's boot-time clock and mean something
-- only together with boot_id: a row of another boot is over.

-- One row for each lease that was not given back. A row whose expiry has
-- passed is over and waits to be swept.
CREATE TABLE lease (
	name     TEXT    NOT NULL PRIMARY KEY,
	lease_id TEXT    NOT NULL,
	token    INTEGER NOT NULL,
	holder   TEXT    NOT NULL, -- JSON, for people
	boot_id  TEXT    NOT NULL,
	expiry   INTEGER NOT NULL,
	released INTEGER NOT NULL  -- 1: over, and kept closed until the expiry
) STRICT, WITHOUT ROWID;

CREATE INDEX lease_by_expiry ON lease (boot_id, expiry);

-- The last fencing token of each name: it outlives the lease. A token is in
-- microseconds of the wall clock, which is why its age can be read from it.
CREATE TABLE token (
	name       TEXT    NOT NULL PRIMARY KEY,
	last_token INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX token_by_age ON token (last_token);

-- Tombstones: lease IDs whose acquire was cancelled and must not be granted
-- if it arrives late.
CREATE TABLE cancelled (
	lease_id TEXT    NOT NULL PRIMARY KEY,
	boot_id  TEXT    NOT NULL,
	expiry   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX cancelled_by_expiry ON cancelled (boot_id, expiry);
