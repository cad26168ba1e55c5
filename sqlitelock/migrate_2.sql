-- From schema version 2 to 3, inside one transaction: what requests find by
-- index, and the sum of the permits. The tables that come of it are those of
-- schema.sql; a test compares them. A program that knows only version 2 and
-- has the file open meanwhile goes on as before.

CREATE INDEX lease_by_end ON lease (name, boot_id, expiry);

CREATE TABLE taken (
	name    TEXT    NOT NULL PRIMARY KEY,
	permits INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO taken (name, permits)
	SELECT name, sum(permits) FROM lease GROUP BY name HAVING sum(permits) > 0;

CREATE TRIGGER lease_takes AFTER INSERT ON lease WHEN NEW.permits > 0 BEGIN
	INSERT INTO taken (name, permits) VALUES (NEW.name, NEW.permits)
		ON CONFLICT (name) DO UPDATE SET permits = permits + excluded.permits;
END;

CREATE TRIGGER lease_gives AFTER DELETE ON lease WHEN OLD.permits > 0 BEGIN
	UPDATE taken SET permits = permits - OLD.permits WHERE name = OLD.name;
	DELETE FROM taken WHERE name = OLD.name AND permits <= 0;
END;

CREATE INDEX place_by_end ON place (name, boot_id, expiry);
CREATE INDEX place_once ON place (name) WHERE once = 1;

-- Leases that were broken, in order: who did it, why and when. In the boot of
-- boot_id the boot-time clock says how long ago, in others the wall clock.
CREATE TABLE broken (
	seq      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- never used twice
	name     TEXT    NOT NULL,
	break_id TEXT    NOT NULL, -- of the request that broke it
	lease_id TEXT    NOT NULL,
	token    INTEGER NOT NULL,
	permits  INTEGER NOT NULL,
	holder   TEXT    NOT NULL, -- JSON, for people
	author   TEXT    NOT NULL,
	reason   TEXT    NOT NULL,
	boot_id  TEXT    NOT NULL,
	at       INTEGER NOT NULL,
	wall_at  INTEGER NOT NULL -- microseconds of the wall clock since 1970
) STRICT;

CREATE INDEX broken_by_name ON broken (name); -- and seq, which is the rowid
CREATE INDEX broken_by_wall ON broken (wall_at);
