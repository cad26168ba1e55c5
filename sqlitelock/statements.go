package sqlitelock

// Statements with a boot ID do not match rows of other boots, which have ended, except records. The
// plus before boot_id keeps SQLite from searching by boot and expiry, because nearly all rows of
// the file match those.
//
// A statement finds a lease by its ID through the primary key, once for each mode. The exclusive
// leases of a name, mode 0, are few. The others are found by their expiry, in an index of only
// these.

// freeSQL checks that a name has only a last token, and that the lease ID is not cancelled:
// ?1 name, ?2 lease ID. If there are other rows, live or not, lookSQL follows. It costs a
// sixth of lookSQL.
const freeSQL = `SELECT
	coalesce((SELECT last_token FROM token WHERE name = ?1), 0),
	NOT EXISTS (SELECT 1 FROM lease WHERE name = ?1)
		AND NOT EXISTS (SELECT 1 FROM place WHERE name = ?1)
		AND NOT EXISTS (SELECT 1 FROM record WHERE name = ?1)
		AND NOT EXISTS (SELECT 1 FROM cancelled WHERE lease_id = ?2)`

// lookSQL reads all that decides a request in one statement, so that the queue and the leases are
// of the same instant: the tombstone, the record, the last token, and whether there are expired
// rows. Its cost does not grow with the number of leases or places.
//
// ?1 name, ?2 lease ID, ?3 boot ID, ?4 now, ?5 now in microseconds of the wall
// clock. The mode of the lease that ends first, or of the head, is 9 if there is none. All
// leases of a name are of one kind, so the mode of the first is the mode of all. The permits
// and the head are valid only if no row has expired.
const lookSQL = `SELECT
	EXISTS (SELECT 1 FROM cancelled WHERE lease_id = ?2 AND +boot_id = ?3 AND expiry > ?4),
	coalesce((SELECT token FROM lease
		WHERE name = ?1 AND mode IN (0, 1, 2) AND lease_id = ?2 AND +boot_id = ?3 AND expiry > ?4 AND released = 0), 0),
	coalesce((SELECT last_token FROM token WHERE name = ?1), 0),
	EXISTS (SELECT 1 FROM record
		WHERE name = ?1 AND CASE WHEN boot_id = ?3 THEN expiry > ?4 ELSE wall_expiry > ?5 END),
	EXISTS (SELECT 1 FROM lease WHERE name = ?1 AND mode = 0 AND (boot_id <> ?3 OR expiry <= ?4))
		OR EXISTS (SELECT 1 FROM lease WHERE name = ?1 AND mode <> 0 AND (boot_id, expiry) <= (?3, ?4))
		OR EXISTS (SELECT 1 FROM lease WHERE name = ?1 AND mode <> 0 AND boot_id > ?3)
		OR EXISTS (SELECT 1 FROM place WHERE name = ?1 AND (boot_id, expiry) <= (?3, ?4))
		OR EXISTS (SELECT 1 FROM place WHERE name = ?1 AND boot_id > ?3),
	coalesce(sole.mode, live.mode, 9), coalesce(live.permit_limit, 0),
	coalesce((SELECT permits FROM taken WHERE name = ?1), 0),
	coalesce(sole.holder, live.holder, ''), coalesce(sole.granted, live.granted, 0),
	coalesce(sole.expiry, live.expiry, 0), coalesce(sole.released, live.released, 0),
	coalesce(head.mode, 9), coalesce(head.permit_limit, 0), coalesce(head.permits, 0),
	coalesce(head.once, 0), coalesce(head.expiry, 0)
FROM (SELECT 1)
LEFT JOIN (SELECT mode, holder, granted, released, min(expiry) AS expiry
	FROM lease WHERE name = ?1 AND mode = 0 AND +boot_id = ?3 AND expiry > ?4) AS sole
LEFT JOIN (SELECT mode, permit_limit, holder, granted, released, expiry
	FROM lease WHERE name = ?1 AND mode <> 0 AND boot_id = ?3 AND expiry > ?4 ORDER BY expiry LIMIT 1) AS live
LEFT JOIN (SELECT mode, permit_limit, permits, once, expiry
	FROM place WHERE name = ?1 ORDER BY seq LIMIT 1) AS head`

// Transactions.
const (
	beginSQL     = `BEGIN IMMEDIATE`
	beginReadSQL = `SAVEPOINT reading` // one may be in another
	endReadSQL   = `RELEASE reading`
	commitSQL    = `COMMIT`
	rollbackSQL  = `ROLLBACK`
)

// Leases.
const (
	// exactLease finds one lease by its whole ID, if it is live and not released: ?1 name,
	// ?2 boot ID, ?3 lease ID, ?4 now. INVARIANT I4.
	exactLease = ` WHERE name = ?1 AND mode IN (0, 1, 2) AND lease_id = ?3 AND +boot_id = ?2 AND expiry > ?4 AND released = 0`

	// putTokenSQL: ?1 name, ?2 its last token, ?3 the token's hour.
	putTokenSQL = `INSERT INTO token (name, last_token, hour) VALUES (?1, ?2, ?3)
		ON CONFLICT (name) DO UPDATE SET last_token = excluded.last_token, hour = excluded.hour`

	// renewTokenSQL is putTokenSQL for a name whose last token is of the same hour:
	// ?1 name, ?2 its last token.
	renewTokenSQL = `UPDATE token SET last_token = ?2 WHERE name = ?1`

	grantSQL = `INSERT INTO lease
			(name, lease_id, token, mode, permit_limit, permits, holder, boot_id, granted, expiry, released)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0)`

	// lengthenSQL: ?1 name, ?2 boot ID, ?3 lease ID, ?4 now, ?5 new expiry, ?6 token, or 0
	// for any.
	lengthenSQL = `UPDATE lease SET expiry = max(expiry, ?5)` + exactLease + ` AND ?6 IN (0, +token)`

	// endSQL: ?1 name, ?2 boot ID, ?3 lease ID, ?4 now.
	endSQL = `DELETE FROM lease` + exactLease

	// endAloneSQL and endSoleSQL: as endSQL, if the name has no place, live or expired.
	// endSoleSQL is for exclusive leases, and takes two thirds of the time.
	endAloneSQL = endSQL + nobodyWaits
	endSoleSQL  = `DELETE FROM lease
		WHERE name = ?1 AND mode = 0 AND lease_id = ?3 AND +boot_id = ?2 AND expiry > ?4 AND released = 0` + nobodyWaits
	nobodyWaits = ` AND NOT EXISTS (SELECT 1 FROM place WHERE place.name = ?1)`

	// keepClosedSQL: as endSQL, ?5 until when the name stays closed.
	keepClosedSQL = `UPDATE lease SET expiry = ?5, released = 1` + exactLease

	// downgradeSQL: as endSQL, ?5 and ?6 the modes before and after.
	downgradeSQL = `UPDATE lease SET mode = ?6
		WHERE name = ?1 AND mode = ?5 AND lease_id = ?3 AND +boot_id = ?2 AND expiry > ?4 AND released = 0`

	// heldSQL returns the token of a live lease: ?1 name, ?2 boot ID, ?3 lease ID, ?4 now.
	heldSQL = `SELECT token FROM lease` + exactLease

	// purgeLeasesSQL: ?1 name, ?2 boot ID, ?3 now, ?4 number of rows.
	purgeLeasesSQL = `DELETE FROM lease WHERE (name, mode, lease_id, token) IN (SELECT * FROM (
			SELECT name, mode, lease_id, token FROM lease
				WHERE name = ?1 AND mode = 0 AND (boot_id <> ?2 OR expiry <= ?3)
			UNION ALL SELECT name, mode, lease_id, token FROM lease
				WHERE name = ?1 AND mode <> 0 AND boot_id < ?2
			UNION ALL SELECT name, mode, lease_id, token FROM lease
				WHERE name = ?1 AND mode <> 0 AND boot_id > ?2
			UNION ALL SELECT name, mode, lease_id, token FROM lease
				WHERE name = ?1 AND mode <> 0 AND boot_id = ?2 AND expiry <= ?3
			LIMIT ?4))`

	// cancelSQL: ?1 lease ID, ?2 boot ID, ?3 expiry of the cancel.
	cancelSQL = `INSERT OR REPLACE INTO cancelled (lease_id, boot_id, expiry) VALUES (?1, ?2, ?3)`
)

// Places.
const (
	// headSQL: ?1 name. All places of the name are live.
	headSQL = `SELECT seq, min_token, once, ` + placeColumns + ` FROM place WHERE name = ?1 ORDER BY seq LIMIT 1`

	// givePlaceSQL adds a place, or extends the one that the lease ID has. No row of the name has
	// expired.
	givePlaceSQL = `INSERT INTO place
			(name, lease_id, mode, permit_limit, permits, min_token, once, holder, boot_id, asked, expiry, looks)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0)
		ON CONFLICT (name, lease_id) DO UPDATE SET expiry = max(expiry, excluded.expiry)
		RETURNING seq`

	// lengthenPlaceSQL: ?1 name, ?2 lease ID, ?3 new expiry. No row of the name has expired.
	lengthenPlaceSQL = `UPDATE place SET expiry = max(expiry, ?3) WHERE name = ?1 AND lease_id = ?2
		RETURNING seq`

	// ranksSQL: ?1 name, ?2 a JSON list of pairs. It counts the places from the first of each pair
	// up to, but without, the second.
	ranksSQL = `SELECT (SELECT count(*) FROM place
			WHERE name = ?1 AND seq >= gap.value ->> 0 AND seq < gap.value ->> 1)
		FROM json_each(?2) AS gap ORDER BY gap.key`

	removePlaceSQL = `DELETE FROM place WHERE seq = ?1`

	// giveUpPlaceSQL: ?1 name, ?2 lease ID.
	giveUpPlaceSQL = `DELETE FROM place WHERE name = ?1 AND lease_id = ?2`

	// giveUpOnceSQL: ?1 name, ?2 number of rows.
	giveUpOnceSQL = `DELETE FROM place WHERE seq IN (SELECT seq FROM place
		WHERE name = ?1 AND once = 1 LIMIT ?2)` + returningPlaces

	// tellHeadSQL counts a notice to the head of the queue: ?1 name.
	tellHeadSQL = `UPDATE place SET looks = looks + 1
		WHERE seq = (SELECT min(seq) FROM place WHERE name = ?1) RETURNING lease_id`

	// purgePlacesSQL: ?1 name, ?2 boot ID, ?3 now, ?4 number of rows.
	purgePlacesSQL = `DELETE FROM place WHERE seq IN (SELECT seq FROM place
		WHERE name = ?1 AND boot_id < ?2 OR name = ?1 AND boot_id > ?2
			OR name = ?1 AND boot_id = ?2 AND expiry <= ?3 LIMIT ?4)`

	// noticeSQL reads the token and the looks of a waiter: ?1 name, ?2 lease ID, ?3 boot
	// ID, ?4 now. Without a place the looks are 0, with one they are 1 + place.looks.
	noticeSQL = `SELECT
		coalesce((SELECT token FROM lease
			WHERE name = ?1 AND mode IN (0, 1, 2) AND lease_id = ?2 AND +boot_id = ?3 AND expiry > ?4 AND released = 0), 0),
		coalesce((SELECT looks + 1 FROM place
			WHERE name = ?1 AND lease_id = ?2 AND +boot_id = ?3 AND expiry > ?4), 0)`
)

// Records. ?1 name; if the time matters, ?2 boot ID, ?3 now, ?4 now in microseconds of the wall
// clock.
const (
	recallSQL = `SELECT data, CASE WHEN boot_id = ?2 THEN expiry - ?3 ELSE (wall_expiry - ?4) * 1000 END AS remaining
		FROM record WHERE name = ?1 AND remaining > 0`

	// describeRecordSQL and pageRecordsSQL: ?5 how many bytes to show. describeRecordSQL has ?1
	// name. pageRecordsSQL is one step of ListRecords, with ?1 prefix, ?6 last name of the previous
	// step, ?7 number of rows; it includes expired rows.
	describeRecord = `SELECT name, substr(data, 1, ?5), length(data),
			CASE WHEN boot_id = ?2 THEN expiry - ?3 ELSE (wall_expiry - ?4) * 1000 END AS remaining FROM record `

	describeRecordSQL = describeRecord + `WHERE name = ?1 AND remaining > 0`

	pageRecordsSQL = describeRecord + `WHERE name >= ?1 AND name > ?6 ORDER BY name LIMIT ?7`

	completedBySQL = `SELECT lease_id FROM record
		WHERE name = ?1 AND CASE WHEN boot_id = ?2 THEN expiry > ?3 ELSE wall_expiry > ?4 END`

	// recordSQL: ?1 name, ?2 lease ID, ?3 boot ID, ?4 and ?5 the expiries,
	// ?6 the record.
	recordSQL = `INSERT OR REPLACE INTO record (name, lease_id, boot_id, expiry, wall_expiry, data)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6)`

	forgetSQL = `DELETE FROM record
		WHERE name = ?1 AND CASE WHEN boot_id = ?2 THEN expiry > ?3 ELSE wall_expiry > ?4 END`
)

// One-time tokens. ?1 digest, ?2 boot ID, ?3 and ?4 now in microseconds of the boot-time clock and
// of the wall clock. The column clock is now by the clock that applies to the row.
const (
	// vaultSQL returns the state of a token, and the time until it is due. State 4 means that the
	// TTL has ended. A row past forget is not found.
	vaultSQL = `SELECT lease_id, CASE WHEN state = 1 AND NOT live THEN 4 ELSE state END, taker,
			due - clock, live, CASE WHEN live THEN payload END
		FROM (SELECT *, payload IS NOT NULL AND due > clock AS live
			FROM (SELECT *, CASE WHEN boot_id = ?2 THEN booted + ?3 ELSE ?4 END AS clock
				FROM onetime WHERE digest = ?1)
			WHERE forget > clock)`

	// depositSQL: ?5 ID of the deposit, ?6 payload, ?7 TTL and ?8 Memory in
	// microseconds. A row that it replaces is past forget.
	depositSQL = `INSERT OR REPLACE INTO onetime (digest, lease_id, state, taker, payload, boot_id, booted, due, forget)
		VALUES (?1, ?5, 1, '', ?6, ?2, ?4 - ?3, ?4 + ?7, ?4 + ?7 + ?8)`

	// redeemSQL: ?5 ID of the redeem, ?6 RedeemGrace in microseconds.
	redeemSQL = `UPDATE onetime SET state = 2, taker = ?5,
			due = min(forget, CASE WHEN boot_id = ?2 THEN booted + ?3 ELSE ?4 END + ?6)
		WHERE digest = ?1`

	// revokeSQL: ?1 digest.
	revokeSQL = `UPDATE onetime SET state = 3, payload = NULL, due = forget WHERE digest = ?1`
)

// Pruning of one-time tokens: ?1 boot ID, ?2 and ?3 as ?3 and ?4 above, ?4 number of rows. One
// index finds rows of this boot, another finds rows of earlier boots; the plus keeps SQLite from
// using a third plan.
const (
	dueSQL = `(SELECT rowid AS id, forget <= booted + ?2 AS is_over
				FROM onetime WHERE boot_id = ?1 AND due - booted <= ?2
			UNION ALL SELECT rowid, forget <= ?3
				FROM onetime WHERE due <= ?3 AND +boot_id <> ?1
			LIMIT ?4)`

	pruneSQL = `DELETE FROM onetime WHERE rowid IN (SELECT id FROM ` + dueSQL + ` WHERE is_over)`

	emptySQL = `UPDATE onetime SET payload = NULL, due = forget
		WHERE rowid IN (SELECT id FROM ` + dueSQL + ` WHERE NOT is_over)`

	moreSQL = `SELECT 1 FROM ` + dueSQL
)

// Broken leases.
const (
	// breakSQL: ?1 name, ?2 boot ID, ?3 now, ?4 token, ?5 whether to include leases with smaller
	// tokens, ?6 number of rows, ?7 whether to end released leases that are kept closed instead of
	// live ones.
	breakSQL = `DELETE FROM lease WHERE (name, mode, lease_id, token) IN (SELECT name, mode, lease_id, token FROM lease
			WHERE name = ?1 AND +boot_id = ?2 AND expiry > ?3 AND released = ?7 AND (token = ?4 OR ?5 AND token < ?4)
			ORDER BY token LIMIT ?6)
		` + returningLeases

	putBrokenSQL = `INSERT INTO broken
			(name, break_id, lease_id, token, mode, permit_limit, permits, holder, author, reason, boot_id, at, wall_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)`

	// trimBrokenSQL: ?1 name, ?2 how many rows to keep.
	trimBrokenSQL = `DELETE FROM broken WHERE name = ?1 AND seq <= (SELECT seq FROM broken
		WHERE name = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`

	// brokenSQL: ?1 name, ?2 boot ID, ?3 now, ?4 now in microseconds of the wall clock. The last
	// column is the age in nanoseconds.
	brokenSQL = `SELECT break_id, lease_id, token, mode, permit_limit, permits, holder, author, reason,
			CASE WHEN boot_id = ?2 THEN ?3 - at ELSE (?4 - wall_at) * 1000 END
		FROM broken WHERE name = ?1 ORDER BY seq`

	// brokenSinceSQL: ?1 the last known seq.
	brokenSinceSQL = `SELECT seq, name, lease_id, author, reason FROM broken WHERE seq > ?1 ORDER BY seq`

	lastBrokenSQL = `SELECT coalesce(max(seq), 0) FROM broken`
)

// The columns of a row. A statement that ends leases or places returns the rows that it has ended,
// if returningLeases or returningPlaces is appended.
const (
	leaseColumns    = `name, lease_id, mode, permit_limit, permits, token, holder, granted, expiry, released, boot_id`
	placeColumns    = `name, lease_id, mode, permit_limit, permits, 0, holder, asked, expiry, 0, boot_id`
	returningLeases = ` RETURNING ` + leaseColumns
	returningPlaces = ` RETURNING ` + placeColumns
)

// History.
const (
	noteSQL = `INSERT INTO event
			(name, kind, mode, permit_limit, permits, token, holder, waited, held, author, reason, boot_id, at, wall_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)`

	// hasPlaceSQL: ?1 name, ?2 lease ID.
	hasPlaceSQL = `SELECT seq FROM place WHERE name = ?1 AND lease_id = ?2`

	// trimEventsSQL: ?1 name, ?2 how many rows to keep, ?3 boot ID, ?4 the time since when all
	// events are kept, ?5 a bit for each kind of event to trim.
	trimEventsSQL = `DELETE FROM event WHERE name = ?1 AND (boot_id <> ?3 OR at < ?4) AND ?5 >> kind & 1
		AND seq <= (SELECT seq FROM event WHERE name = ?1 AND ?5 >> kind & 1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)`

	// selectEvent: ?2 boot ID, ?3 now, ?4 now in microseconds of the wall clock. The last column is
	// the age in nanoseconds.
	selectEvent = `SELECT seq, name, kind, mode, permit_limit, permits, token, holder, waited, held, author, reason, wall_at,
			CASE WHEN boot_id = ?2 THEN ?3 - at ELSE (?4 - wall_at) * 1000 END
		FROM event`

	// eventsSQL: ?1 name.
	eventsSQL = selectEvent + ` WHERE name = ?1 ORDER BY seq`

	// eventsSinceSQL: ?1 the last known seq, which is included, ?5 number of rows.
	eventsSinceSQL = selectEvent + ` WHERE seq >= ?1 ORDER BY seq LIMIT ?5`

	lastEventSQL = `SELECT coalesce(max(seq), 0) FROM event`
)

// Statements for people.
const (
	// leasesSQL: ?1 name, ?2 boot ID. In the order of the grants.
	leasesSQL = `SELECT ` + leaseColumns + ` FROM lease WHERE name = ?1 AND +boot_id = ?2 ORDER BY token`

	// placesSQL: ?1 name, ?2 boot ID, ?3 now, ?4 number of places.
	placesSQL = `SELECT ` + placeColumns + ` FROM place WHERE name = ?1 AND +boot_id = ?2 AND expiry > ?3 ORDER BY seq LIMIT ?4`

	// totalsSQL: the length of the queue, without expired places, and the last token: ?1 name,
	// ?2 boot ID, ?3 now.
	totalsSQL = `SELECT (SELECT count(*) FROM place WHERE name = ?1 AND boot_id = ?2 AND expiry > ?3),
		coalesce((SELECT last_token FROM token WHERE name = ?1), 0)`

	// pageSQL is one step of List: ?1 prefix, ?2 last name of the previous step, ?3 number of
	// names, ?4 boot ID, ?5 now. It includes free names, with an empty lease ID, so that a step
	// reads a bounded number of rows.
	pageSQL = `WITH page AS (
			SELECT name FROM lease WHERE name >= ?1 AND name > ?2
			UNION SELECT name FROM place WHERE name >= ?1 AND name > ?2
			ORDER BY name LIMIT ?3)
		SELECT coalesce(last_token, 0),
			(SELECT count(*) FROM place WHERE place.name = page.name AND +place.boot_id = ?4 AND place.expiry > ?5),
			page.name, coalesce(lease_id, ''), coalesce(mode, 0), coalesce(permit_limit, 0), coalesce(permits, 0),
			coalesce(token, 0), coalesce(holder, ''), coalesce(granted, 0), coalesce(expiry, 0), coalesce(released, 0), ?4
		FROM page LEFT JOIN token USING (name)
			LEFT JOIN lease ON lease.name = page.name AND +lease.boot_id = ?4
		ORDER BY page.name, token`
)

// The sweep. INVARIANT I11: each statement deletes a bounded number of expired rows, which it finds
// by an index. ?1 boot ID, ?2 now, ?3 number of rows.
const (
	// Leases have no index for the sweep. Each sweep reads the ?3 leases that follow those of the
	// previous sweep, expired or not, and continues with the first lease after the last one.
	// lastSweptSQL returns the last of them, if there are ?3 (?1 is not used); noteSweptSQL stores
	// it for the next sweep.
	nextLeases = `(SELECT * FROM (SELECT * FROM lease
			WHERE (name, mode, lease_id) > (SELECT name, mode, lease_id FROM swept)
			ORDER BY name, mode, lease_id LIMIT ?3)
		UNION ALL SELECT * FROM (SELECT * FROM lease
			WHERE (name, mode, lease_id) <= (SELECT name, mode, lease_id FROM swept)
			ORDER BY name, mode, lease_id LIMIT ?3)
		LIMIT ?3)`

	lastSweptSQL = `SELECT name, mode, lease_id FROM ` + nextLeases + ` LIMIT 1 OFFSET ?3 - 1`

	sweepLeasesSQL = `DELETE FROM lease WHERE (name, mode, lease_id, token) IN (SELECT name, mode, lease_id, token FROM ` + nextLeases + `
		WHERE boot_id <> ?1 OR expiry <= ?2)`

	// noteSweptSQL: ?1 name, ?2 mode, ?3 lease ID.
	noteSweptSQL = `UPDATE swept SET name = ?1, mode = ?2, lease_id = ?3`

	sweepPlacesSQL = `DELETE FROM place WHERE seq IN (SELECT seq FROM place
		WHERE boot_id < ?1 OR boot_id > ?1 OR (boot_id = ?1 AND expiry <= ?2) LIMIT ?3)`

	sweepCancelledSQL = `DELETE FROM cancelled WHERE lease_id IN (SELECT lease_id FROM cancelled
		WHERE boot_id < ?1 OR boot_id > ?1 OR (boot_id = ?1 AND expiry <= ?2) LIMIT ?3)`

	// sweepRecordsSQL reads only the oldest rows: ?4 is now in microseconds of the wall clock. A
	// record that has expired only by the boot-time clock is not shown, and stays until it has
	// expired by the wall clock too.
	sweepRecordsSQL = `DELETE FROM record WHERE name IN (SELECT name FROM
			(SELECT name, boot_id, expiry FROM record WHERE wall_expiry <= ?4 ORDER BY wall_expiry LIMIT ?3)
		WHERE boot_id <> ?1 OR expiry <= ?2)`

	// sweepBrokenSQL: ?1 the latest time, in microseconds of the wall clock, at which a break may
	// be deleted, ?2 the number of rows.
	sweepBrokenSQL = `DELETE FROM broken WHERE seq IN (SELECT seq FROM broken WHERE wall_at <= ?1 LIMIT ?2)`

	// sweepEventsSQL is like sweepBrokenSQL for the oldest events, but never deletes the last one.
	sweepEventsSQL = `DELETE FROM event WHERE seq IN
			(SELECT seq FROM (SELECT seq, wall_at FROM event ORDER BY seq LIMIT ?2) WHERE wall_at <= ?1)
		AND seq < (SELECT max(seq) FROM event)`

	// sweepTokensSQL: ?1 the greatest token that is old enough to forget, ?2 the number of rows, ?3
	// the hour of ?1.
	sweepTokensSQL = `DELETE FROM token WHERE name IN (SELECT name FROM token
		WHERE hour <= ?3 AND last_token <= ?1 AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.name = token.name) LIMIT ?2)`
)
