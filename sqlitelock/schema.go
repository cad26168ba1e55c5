package sqlitelock

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
)

var (
	//go:embed schema.sql
	schemaSQL string

	//go:embed migrate_1.sql
	migrate1SQL string

	//go:embed migrate_2.sql
	migrate2SQL string
)

// What a lock database is known by: PRAGMA application_id, "hold" in ASCII,
// and PRAGMA user_version.
const (
	applicationID = 0x686f6c64
	schemaVersion = 3
)

// settings of the connection that writes. How long it waits is patient's.
// What is deleted is overwritten, because payloads may be secret.
const settings = `PRAGMA busy_timeout = 0; PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON`

// identitySQL is one statement, so that it does not see half of what another
// process creates.
const identitySQL = `SELECT
	(SELECT application_id FROM pragma_application_id),
	(SELECT user_version FROM pragma_user_version),
	(SELECT count(*) FROM sqlite_schema)`

// prepareDatabase makes a new database ours, and one of an older version one
// of this. A database that belongs to another program, or to a newer version,
// is left unchanged.
func (e *Engine) prepareDatabase(ctx context.Context) error {
	if err := e.patient(ctx, func() error { return execute(e.conn, settings) }); err != nil {
		return err
	}
	var version int
	err := e.patient(ctx, func() (err error) {
		version, err = checkSchema(e.conn)
		return err
	})
	if err != nil {
		return err
	}
	if version == 0 {
		if err := e.patient(ctx, func() error { return setWAL(e.conn) }); err != nil {
			return err
		}
	}
	return e.createSchema(ctx)
}

// checkSchema returns the version of the database, which is 0 if it is empty,
// or fails if it is not one of ours.
func checkSchema(conn *sql.Conn) (version int, err error) {
	var app, tables int
	if err := conn.QueryRowContext(context.Background(), identitySQL).Scan(&app, &version, &tables); err != nil {
		return 0, err
	}
	switch {
	case app == 0 && version == 0 && tables == 0:
		return 0, nil
	case app != applicationID:
		return 0, fmt.Errorf("%w database: it belongs to another program: name another path", driver.ErrInvalid)
	case version < 1 || version > schemaVersion:
		return 0, fmt.Errorf("%w database: its schema has version %d, this program knows %d: update this program", driver.ErrInvalid, version, schemaVersion)
	}
	return version, nil
}

// setWAL turns on the write-ahead log, which the file remembers. It cannot be
// done inside a transaction.
func setWAL(conn *sql.Conn) error {
	var mode string
	if err := conn.QueryRowContext(context.Background(), `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("%w path: its file system cannot keep a write-ahead log (journal mode %s): use a local one", driver.ErrInvalid, mode)
	}
	return nil
}

// createSchema creates or migrates the tables, in one transaction, unless
// another process was faster. Beginning to write also shows that this user
// may.
func (e *Engine) createSchema(ctx context.Context) error {
	if err := e.patient(ctx, func() error { return execute(e.conn, `BEGIN IMMEDIATE`) }); err != nil {
		return err
	}
	version, err := checkSchema(e.conn)
	if err == nil {
		switch version {
		case 0:
			err = execute(e.conn, fmt.Sprintf("%s; PRAGMA application_id = %d", schemaSQL, applicationID))
		case 1:
			err = execute(e.conn, migrate1SQL+migrate2SQL)
		case 2:
			err = execute(e.conn, migrate2SQL)
		}
	}
	if err == nil && version != schemaVersion {
		err = execute(e.conn, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion))
	}
	if err == nil {
		err = execute(e.conn, `COMMIT`)
	}
	if err != nil {
		_ = execute(e.conn, `ROLLBACK`)
	}
	return err
}

func execute(conn *sql.Conn, query string) error {
	_, err := conn.ExecContext(context.Background(), query)
	return err
}
