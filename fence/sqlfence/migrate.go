package sqlfence

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
)

// DDL returns the statement that creates the table holdfast_fence if there is
// none, for programs that keep their schema in files. It is empty for an unknown
// dialect.
//
// Resources compare byte by byte whatever the collation of the database: two
// resources that compare equal would share a mark, and an index whose order
// changes with an update of the system's locales would lose marks.
func (d Dialect) DDL() string {
	switch d {
	case PostgreSQL:
		return `CREATE TABLE IF NOT EXISTS holdfast_fence (
	resource text COLLATE "C" PRIMARY KEY,
	token    bigint NOT NULL,
	lease_id text NOT NULL
)`
	case MySQL:
		return `CREATE TABLE IF NOT EXISTS holdfast_fence (
	resource varbinary(512) PRIMARY KEY,
	token    bigint NOT NULL,
	lease_id varbinary(32) NOT NULL
) ENGINE=InnoDB`
	case SQLite:
		return `CREATE TABLE IF NOT EXISTS holdfast_fence (
	resource text PRIMARY KEY NOT NULL,
	token    integer NOT NULL,
	lease_id text NOT NULL
) WITHOUT ROWID`
	}
	return ""
}

// Migrate creates the table holdfast_fence unless it is there. It may be
// called by several processes at once and on every start. If the table exists,
// the right to read it is enough.
func (d Dialect) Migrate(ctx context.Context, db *sql.DB) error {
	if d.DDL() == "" {
		return d.unknown()
	}
	if readable(ctx, db) == nil {
		return nil
	}
	// PostgreSQL lets one of two concurrent CREATE TABLE IF NOT EXISTS fail, and it succeeds
	// beside a table with other columns. What counts is the table that is there now.
	_, err := db.ExecContext(ctx, d.DDL())
	wrong := readable(ctx, db)
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("fence: create the table holdfast_fence: %w", cmp.Or(err, wrong))
}

// readable returns an error if there is no table of marks that the user may read.
func readable(ctx context.Context, db *sql.DB) error {
	var n int
	return db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT resource, token, lease_id FROM holdfast_fence WHERE 1 = 0) AS t`).Scan(&n)
}
