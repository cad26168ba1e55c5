-- Schema number 1 of a holdfast lock database (PRAGMA user_version).
--
-- Instants are nanoseconds of the host's boot-time clock and mean something
-- only together with boot_id: a row of another boot is over, except a record
-- or a one-time token.
-- A mode is 0 exclusive, 1 shared, 2 semaphore; the limit and the permits of
-- the others are 0.

-- One row for each lease that was not given back. A row whose expiry has
-- passed is over and waits to be swept. The token is in the key because a
-- lease ID that KeepFor keeps in the way may be granted a second lease. The mode
-- is in it because a name has a few exclusive leases at most, which need no other
-- index: whatever is written for each lease costs every acquire and release.
CREATE TABLE lease (
	name         TEXT    NOT NULL,
	lease_id     TEXT    NOT NULL,
	token        INTEGER NOT NULL,
	mode         INTEGER NOT NULL,
	permit_limit INTEGER NOT NULL,
	permits      INTEGER NOT NULL,
	holder       TEXT    NOT NULL, -- JSON, for people
	boot_id      TEXT    NOT NULL,
	granted      INTEGER NOT NULL, -- instant of the grant; nothing changes it
	expiry       INTEGER NOT NULL,
	released     INTEGER NOT NULL, -- 1: over, and kept closed until the expiry
	PRIMARY KEY (name, mode, lease_id, token)
) STRICT, WITHOUT ROWID;

CREATE INDEX lease_by_end ON lease (name, boot_id, expiry) WHERE mode <> 0;

-- Up to which lease the sweep has come: one row.
CREATE TABLE swept (
	name     TEXT    NOT NULL,
	mode     INTEGER NOT NULL,
	lease_id TEXT    NOT NULL
) STRICT;

INSERT INTO swept VALUES ('', 0, '');

-- How many permits the rows of lease have together, of names that have any. It
-- is the sum as long as no row of the name is over.
CREATE TABLE taken (
	name    TEXT    NOT NULL PRIMARY KEY,
	permits INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER lease_takes AFTER INSERT ON lease WHEN NEW.permits > 0 BEGIN
	INSERT INTO taken (name, permits) VALUES (NEW.name, NEW.permits)
		ON CONFLICT (name) DO UPDATE SET permits = permits + excluded.permits;
END;

CREATE TRIGGER lease_gives AFTER DELETE ON lease WHEN OLD.permits > 0 BEGIN
	UPDATE taken SET permits = permits - OLD.permits WHERE name = OLD.name;
	DELETE FROM taken WHERE name = OLD.name AND permits <= 0;
END;

-- The queues: one row for each place, in the order of seq. A new row's seq is
-- above that of every other.
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
CREATE INDEX place_by_end ON place (name, boot_id, expiry);
CREATE INDEX place_once ON place (name) WHERE once = 1;

-- What came of work that is done once. It has to outlive a reboot: in the
-- boot of boot_id the expiry decides, in others the wall clock.
CREATE TABLE record (
	name        TEXT    NOT NULL PRIMARY KEY,
	lease_id    TEXT    NOT NULL, -- of the lease that ended with it; empty if it went on
	boot_id     TEXT    NOT NULL,
	expiry      INTEGER NOT NULL,
	wall_expiry INTEGER NOT NULL, -- microseconds of the wall clock since 1970
	data        BLOB    NOT NULL
) STRICT;

CREATE INDEX record_by_wall_expiry ON record (wall_expiry);

-- One-time tokens. They have to outlive a reboot: in the boot of boot_id the
-- boot-time clock decides, in others the wall clock. Instants are microseconds
-- since 1970: of the wall clock, or of the boot-time clock plus booted.
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

-- The last fencing token of each name: it outlives the lease. A token is in
-- microseconds of the wall clock, which is why its age can be read from it. The
-- hour is that of the token, so that the index changes once an hour only.
CREATE TABLE token (
	name       TEXT    NOT NULL PRIMARY KEY,
	last_token INTEGER NOT NULL,
	hour       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX token_by_hour ON token (hour);

-- Tombstones: lease IDs whose acquire was cancelled and must not be granted
-- if it arrives late.
CREATE TABLE cancelled (
	lease_id TEXT    NOT NULL PRIMARY KEY,
	boot_id  TEXT    NOT NULL,
	expiry   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX cancelled_by_expiry ON cancelled (boot_id, expiry);

-- Leases that were broken, in order: who did it, why and when. In the boot of
-- boot_id the boot-time clock says how long ago, in others the wall clock.
CREATE TABLE broken (
	seq          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- never used twice
	name         TEXT    NOT NULL,
	break_id     TEXT    NOT NULL, -- of the request that broke it
	lease_id     TEXT    NOT NULL,
	token        INTEGER NOT NULL,
	mode         INTEGER NOT NULL,
	permit_limit INTEGER NOT NULL,
	permits      INTEGER NOT NULL,
	holder       TEXT    NOT NULL, -- JSON, for people
	author       TEXT    NOT NULL,
	reason       TEXT    NOT NULL,
	boot_id      TEXT    NOT NULL,
	at           INTEGER NOT NULL,
	wall_at      INTEGER NOT NULL -- microseconds of the wall clock since 1970
) STRICT;

CREATE INDEX broken_by_name ON broken (name); -- and seq, which is the rowid
CREATE INDEX broken_by_wall ON broken (wall_at);

-- What happened to names, in order, as engines that were opened with history have
-- written it: a kind is that of driver.EventKind. In the boot of boot_id the
-- boot-time clock says how long ago, in others the wall clock. The last row is never
-- deleted, so that no seq is used twice: AUTOINCREMENT would write another page.
CREATE TABLE event (
	seq          INTEGER NOT NULL PRIMARY KEY,
	name         TEXT    NOT NULL,
	kind         INTEGER NOT NULL,
	mode         INTEGER NOT NULL,
	permit_limit INTEGER NOT NULL,
	permits      INTEGER NOT NULL,
	token        INTEGER NOT NULL, -- 0 of a place
	holder       TEXT    NOT NULL, -- JSON, for people
	waited       INTEGER NOT NULL, -- nanoseconds
	held         INTEGER NOT NULL, -- nanoseconds
	author       TEXT    NOT NULL,
	reason       TEXT    NOT NULL,
	boot_id      TEXT    NOT NULL,
	at           INTEGER NOT NULL,
	wall_at      INTEGER NOT NULL -- microseconds of the wall clock since 1970
) STRICT;

CREATE INDEX event_by_name ON event (name); -- and seq, which is the rowid
