package sqlitelock

import (
	"context"
	"database/sql"
)

// Statements that name a boot ID do not match rows of other boots: they are
// over.
const (
	// leaseSQL: ?1 name, ?2 boot ID.
	leaseSQL = `SELECT lease_id, token, holder, expiry, released
		FROM lease WHERE name = ?1 AND boot_id = ?2`

	// lastTokenSQL: ?1 name.
	lastTokenSQL = `SELECT last_token FROM token WHERE name = ?1`

	// pageSQL is one step of List: ?1 prefix, ?2 last name of the step
	// before, ?3 number of rows, ?4 boot ID. Rows of other boots come along
	// with the flag 0, so that a step reads a bounded number of rows.
	pageSQL = `SELECT name, lease_id, lease.token, holder, expiry, released, boot_id = ?4,
			coalesce(last_token, lease.token)
		FROM lease LEFT JOIN token USING (name)
		WHERE name >= ?1 AND name > ?2 ORDER BY name LIMIT ?3`

	// putLeaseSQL takes the place of a lease that is over.
	putLeaseSQL = `INSERT OR REPLACE INTO lease (name, lease_id, token, holder, boot_id, expiry, released)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0)`

	// nextTokenSQL: ?1 name, ?2 the least token to give. INVARIANT I2: above
	// the last one whatever ?2 is.
	nextTokenSQL = `INSERT INTO token (name, last_token) VALUES (?1, ?2)
		ON CONFLICT (name) DO UPDATE SET last_token = max(last_token + 1, excluded.last_token)
		RETURNING last_token`

	// lengthenSQL: ?1 name, ?2 boot ID, ?3 lease ID, ?4 now, ?5 new expiry.
	// INVARIANT I4: only the exact live lease, and never a new one.
	lengthenSQL = `UPDATE lease SET expiry = max(expiry, ?5)
		WHERE name = ?1 AND boot_id = ?2 AND lease_id = ?3 AND expiry > ?4 AND released = 0`

	// endSQL: ?1 name, ?2 boot ID, ?3 lease ID, ?4 now. INVARIANT I4.
	endSQL = `DELETE FROM lease
		WHERE name = ?1 AND boot_id = ?2 AND lease_id = ?3 AND expiry > ?4 AND released = 0`

	// keepSQL: as endSQL, ?5 until when the name stays closed.
	keepSQL = `UPDATE lease SET expiry = ?5, released = 1
		WHERE name = ?1 AND boot_id = ?2 AND lease_id = ?3 AND expiry > ?4 AND released = 0`

	// isCancelledSQL: ?1 lease ID, ?2 boot ID, ?3 now.
	isCancelledSQL = `SELECT EXISTS (SELECT 1 FROM cancelled
		WHERE lease_id = ?1 AND boot_id = ?2 AND expiry > ?3)`

	// cancelSQL: ?1 lease ID, ?2 boot ID, ?3 until when it is remembered.
	cancelSQL = `INSERT OR REPLACE INTO cancelled (lease_id, boot_id, expiry) VALUES (?1, ?2, ?3)`
)

// The sweep. INVARIANT I11: each deletes at most ?3 rows that are over, found
// by index. ?1 boot ID, ?2 now; in sweepTokensSQL ?1 is the greatest token old
// enough to be forgotten, ?2 the number of rows.
const (
	sweepLeasesSQL = `DELETE FROM lease WHERE name IN (SELECT name FROM lease
		WHERE boot_id < ?1 OR boot_id > ?1 OR (boot_id = ?1 AND expiry <= ?2) LIMIT ?3)`

	sweepCancelledSQL = `DELETE FROM cancelled WHERE lease_id IN (SELECT lease_id FROM cancelled
		WHERE boot_id < ?1 OR boot_id > ?1 OR (boot_id = ?1 AND expiry <= ?2) LIMIT ?3)`

	sweepTokensSQL = `DELETE FROM token WHERE name IN (SELECT name FROM token
		WHERE last_token <= ?1 AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.name = token.name) LIMIT ?2)`
)

// A preparer is a *sql.DB or a *sql.Conn.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// prepared are statements to close: a database/sql connection does not close
// those of its own, and SQLite keeps its files open until they are.
type prepared []*sql.Stmt

func (p *prepared) add(on preparer, statements map[**sql.Stmt]string) error {
	for into, query := range statements {
		stmt, err := on.PrepareContext(context.Background(), query)
		if err != nil {
			return err
		}
		*into = stmt
		*p = append(*p, stmt)
	}
	return nil
}

func (p *prepared) close() {
	for _, stmt := range *p {
		_ = stmt.Close()
	}
	*p = nil
}

// readStatements are prepared on the connections that never write.
type readStatements struct {
	prepared
	lease, lastToken, page, isCancelled *sql.Stmt
}

// writeStatements are prepared on the one connection that writes.
type writeStatements struct {
	prepared
	begin, commit, rollback                  *sql.Stmt
	lease, isCancelled                       *sql.Stmt
	putLease, nextToken, lengthen            *sql.Stmt
	end, keep, cancel                        *sql.Stmt
	sweepLeases, sweepCancelled, sweepTokens *sql.Stmt
}

func (s *readStatements) prepare(on preparer) error {
	s.close()
	return s.add(on, map[**sql.Stmt]string{
		&s.lease:       leaseSQL,
		&s.lastToken:   lastTokenSQL,
		&s.page:        pageSQL,
		&s.isCancelled: isCancelledSQL,
	})
}

func (s *writeStatements) prepare(on preparer) error {
	s.close()
	return s.add(on, map[**sql.Stmt]string{
		&s.begin:          `BEGIN IMMEDIATE`,
		&s.commit:         `COMMIT`,
		&s.rollback:       `ROLLBACK`,
		&s.lease:          leaseSQL,
		&s.isCancelled:    isCancelledSQL,
		&s.putLease:       putLeaseSQL,
		&s.nextToken:      nextTokenSQL,
		&s.lengthen:       lengthenSQL,
		&s.end:            endSQL,
		&s.keep:           keepSQL,
		&s.cancel:         cancelSQL,
		&s.sweepLeases:    sweepLeasesSQL,
		&s.sweepCancelled: sweepCancelledSQL,
		&s.sweepTokens:    sweepTokensSQL,
	})
}
