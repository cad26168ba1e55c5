-- Layout number 1 of the tables of pglock.
--
-- Every name is qualified with the schema, which Schema and Open replace by the one of
-- the options. Instants are microseconds since 1970 of the server's clock, so that a
-- token and an instant can be compared. A mode is 0 exclusive, 1 shared, 2 semaphore;
-- the limit and the permits of the others are 0.
--
-- All requests about a name take the row lock of its row in the table lock first, and
-- read the clock after that. What they decide has to be of one instant: the database
-- must run them at the isolation level read committed.
--
-- No index has a column that a renewal changes, so that every renewal is a heap-only
-- update, and the pages have room for it.

-- The number of this layout, and the number of the functions: one row. See install.go.
CREATE TABLE holdfast.layout (number integer NOT NULL, revision integer NOT NULL);

-- One row for each name that was used lately, with its exclusive lease. A transaction
-- that holds FOR KEY SHARE on the row is a guard: nothing is granted until it ends.
-- Renewals lock FOR NO KEY UPDATE, which does not wait for a guard.
CREATE TABLE holdfast.lock (
	name       text    COLLATE "C" PRIMARY KEY,
	last_token bigint  NOT NULL DEFAULT 0, -- 0: none is remembered
	lease_id   text    COLLATE "C",        -- of the exclusive lease; NULL: there is none
	granted    bigint  NOT NULL DEFAULT 0, -- instant of the grant; nothing changes it
	expiry     bigint  NOT NULL DEFAULT 0,
	released   boolean NOT NULL DEFAULT false, -- over, and kept closed until the expiry
	cancels    bigint  NOT NULL DEFAULT 0, -- no tombstone of a request for this name is later
	holder     text    NOT NULL DEFAULT '',    -- JSON, for people
	leases     integer NOT NULL DEFAULT 0, -- how many rows of lease the name has
	places     integer NOT NULL DEFAULT 0, -- how many rows of place it has
	head       bigint  NOT NULL DEFAULT 0, -- no place has a lower seq
	tail       bigint  NOT NULL DEFAULT 0, -- the seq of the latest place
	events     bigint  NOT NULL DEFAULT 0  -- the seq of the latest event
) WITH (fillfactor = 50);

-- One row for each lease that is not exclusive and was not given back.
CREATE TABLE holdfast.lease (
	name         text    COLLATE "C" NOT NULL,
	token        bigint  NOT NULL,
	lease_id     text    COLLATE "C" NOT NULL,
	mode         integer NOT NULL,
	permit_limit integer NOT NULL,
	permits      integer NOT NULL,
	holder       text    NOT NULL,
	granted      bigint  NOT NULL,
	expiry       bigint  NOT NULL,
	released     boolean NOT NULL DEFAULT false,
	PRIMARY KEY (name, token)
) WITH (fillfactor = 50);

CREATE INDEX lease_by_id ON holdfast.lease (name, lease_id);

-- The queues: one row for each place, in the order of seq.
CREATE TABLE holdfast.place (
	name      text    COLLATE "C" NOT NULL,
	seq       bigint  NOT NULL,
	lease_id  text    COLLATE "C" NOT NULL,
	mode integer NOT NULL, permit_limit integer NOT NULL, permits integer NOT NULL,
	min_token bigint  NOT NULL,
	once      boolean NOT NULL, -- give the place up when the name has a record
	holder    text    NOT NULL,
	asked     bigint  NOT NULL, -- instant of the first request
	expiry    bigint  NOT NULL, -- of the place, and of the lease that comes of it
	inbox     text    NOT NULL, -- of the engine that sent the last request
	PRIMARY KEY (name, seq)
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX place_by_id ON holdfast.place (name, lease_id);

-- Tombstones: lease IDs whose acquire was cancelled and must not be granted if it
-- arrives late.
CREATE TABLE holdfast.cancelled (
	lease_id text   COLLATE "C" PRIMARY KEY,
	expiry   bigint NOT NULL
);

CREATE INDEX cancelled_by_expiry ON holdfast.cancelled (expiry);

-- What came of work that is done once. A record is not compressed, so that its first
-- bytes can be read without the rest.
CREATE TABLE holdfast.record (
	name     text   COLLATE "C" PRIMARY KEY,
	lease_id text   COLLATE "C" NOT NULL, -- of the lease that ended with it; empty if it went on
	expiry   bigint NOT NULL,
	data     bytea  NOT NULL
);

ALTER TABLE holdfast.record ALTER data SET STORAGE EXTERNAL;

CREATE INDEX record_by_expiry ON holdfast.record (expiry);

-- One-time tokens.
CREATE TABLE holdfast.onetime (
	digest   text    COLLATE "C" PRIMARY KEY,
	lease_id text    NOT NULL, -- of the request that deposited it
	state    integer NOT NULL, -- 1 fresh, or expired; 2 redeemed; 3 revoked
	taker    text    NOT NULL, -- lease ID of the request that redeemed it
	payload  bytea,            -- NULL once nobody can be handed it any more
	due      bigint  NOT NULL, -- until when the payload is handed out; without one, forget
	forget   bigint  NOT NULL
);

CREATE INDEX onetime_by_due ON holdfast.onetime (due);

-- Leases that were broken, in order: who did it, why and when.
CREATE TABLE holdfast.broken (
	seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name     text   COLLATE "C" NOT NULL,
	break_id text   NOT NULL, -- of the request that broke it
	lease_id text NOT NULL, token bigint NOT NULL, holder text NOT NULL,
	mode integer NOT NULL, permit_limit integer NOT NULL, permits integer NOT NULL,
	author text NOT NULL, reason text NOT NULL, at bigint NOT NULL
);

CREATE INDEX broken_by_name ON holdfast.broken (name, seq);

-- What happened to a name, in order, as engines that were opened with history have
-- written it: a kind is that of lockinfo.HistoryKind.
CREATE TABLE holdfast.event (
	name text COLLATE "C" NOT NULL, seq bigint NOT NULL, kind integer NOT NULL,
	token bigint NOT NULL, holder text NOT NULL, -- a place has token 0
	mode integer NOT NULL, permit_limit integer NOT NULL, permits integer NOT NULL,
	waited bigint NOT NULL, held bigint NOT NULL, -- microseconds
	author text NOT NULL, reason text NOT NULL, at bigint NOT NULL,
	PRIMARY KEY (name, seq)
);

-- The engines that listen for events. A listener renotices its row.
CREATE TABLE holdfast.listener (
	inbox  text   COLLATE "C" PRIMARY KEY,
	expiry bigint NOT NULL
);

-- What one request knows of a name, whose row it has locked, and what it does to it. The
-- functions pass it on, and put writes the row once.
CREATE TYPE holdfast.step AS (
	-- the row, as it will be written
	name text, last_token bigint, lease_id text, granted bigint, expiry bigint, released boolean, cancels bigint, holder text,
	leases integer, places integer, head bigint, tail bigint, events bigint,
	-- the request
	now bigint,
	history boolean, -- events are written
	-- what is seen of the live leases: NULL for the mode if there are none
	mode integer, permit_limit integer, permits integer,
	first_holder text, first_granted bigint, first_expiry bigint, first_released boolean, -- of the lease that ends first
	guarded  boolean, -- a transaction keeps the name closed; NULL: not looked at
	stuck    boolean, -- there is no token for the first place
	own      bigint,  -- token of the live lease of the request's lease ID; NULL: none
	-- what was done
	changed     boolean, -- the row has to be written
	grants      boolean, -- something was granted or lengthened: the commit has to be durable
	first_event bigint,  -- the first event of this step; NULL: none
	notices     jsonb    -- to waiters: [{"id": …, "token": …, "inbox": …}]
);
