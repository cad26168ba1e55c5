-- From schema version 1 to 2, inside one transaction: all leases become
-- exclusive ones with the token and the expiry that they have.

ALTER TABLE lease RENAME TO lease_1;
DROP INDEX lease_by_expiry;
CREATE TABLE lease (
	name         TEXT    NOT NULL,
	lease_id     TEXT    NOT NULL,
	token        INTEGER NOT NULL,
	mode         INTEGER NOT NULL,
	permit_limit INTEGER NOT NULL,
	permits      INTEGER NOT NULL,
	holder       TEXT    NOT NULL, -- JSON, for people
	boot_id      TEXT    NOT NULL,
	expiry       INTEGER NOT NULL,
	released     INTEGER NOT NULL, -- 1: over, and kept closed until the expiry
	PRIMARY KEY (name, lease_id, token)
) STRICT, WITHOUT ROWID;

CREATE INDEX lease_by_expiry ON lease (boot_id, expiry);

CREATE TABLE place (
	seq          INTEGER NOT NULL PRIMARY KEY,
	name         TEXT    NOT NULL,
	lease_id     TEXT    NOT NULL,
	mode         INTEGER NOT NULL,
	permit_limit INTEGER NOT NULL,
	permits      INTEGER NOT NULL,
	min_token    INTEGER NOT NULL,
	once         INTEGER NOT NULL, -- 1: give the place up when the name has a record
	holder       TEXT    NOT NULL, -- JSON, for people
	boot_id      TEXT    NOT NULL,
	asked        INTEGER NOT NULL, -- instant of the first request
	expiry       INTEGER NOT NULL, -- of the place, and of the lease that comes of it
	looks        INTEGER NOT NULL, -- how often the waiter was told to look
	UNIQUE (name, lease_id)
) STRICT;

CREATE INDEX place_by_name ON place (name); -- and seq, which is the rowid
CREATE INDEX place_by_expiry ON place (boot_id, expiry);

CREATE TABLE record (
	name        TEXT    NOT NULL PRIMARY KEY,
	lease_id    TEXT    NOT NULL, -- of the lease that wrote it
	boot_id     TEXT    NOT NULL,
	expiry      INTEGER NOT NULL,
	wall_expiry INTEGER NOT NULL, -- microseconds of the wall clock since 1970
	data        BLOB    NOT NULL
) STRICT;

CREATE INDEX record_by_wall_expiry ON record (wall_expiry);

CREATE TABLE onetime (
	digest   TEXT    NOT NULL PRIMARY KEY,
	lease_id TEXT    NOT NULL, -- of the request that deposited it
	state    INTEGER NOT NULL, -- 1 fresh, or expired; 2 redeemed; 3 revoked
	taker    TEXT    NOT NULL, -- lease ID of the request that redeemed it
	payload  BLOB,             -- NULL once nobody can be handed it any more
	boot_id  TEXT    NOT NULL,
	booted   INTEGER NOT NULL, -- the wall clock less the boot-time clock
	due      INTEGER NOT NULL, -- until when the payload is handed out; without one, forget
	forget   INTEGER NOT NULL
) STRICT;

CREATE INDEX onetime_by_due ON onetime (boot_id, due - booted);
CREATE INDEX onetime_by_wall_due ON onetime (due, boot_id);

INSERT INTO lease (name, lease_id, token, mode, permit_limit, permits, holder, boot_id, expiry, released)
	SELECT name, lease_id, token, 0, 0, 0, holder, boot_id, expiry, released FROM lease_1;
DROP TABLE lease_1;
