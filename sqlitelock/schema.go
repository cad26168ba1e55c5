package sqlitelock

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
)

//go:embed schema.sql
var schemaSQL string

// A lock database is identified by PRAGMA application_id, "hold" in ASCII, and PRAGMA
// user_version.
const (
	applicationID = 0x686f6c64
	schemaNumber  = 1
)

// settings are for the connection that writes. SQLite does not wait for locks, because patient
// does. It overwrites deleted data, because payloads may be secret.
const settings = `PRAGMA busy_timeout = 0; PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON`

// identitySQL is one statement, so that it never sees a half-created database.
const identitySQL = `SELECT
	(SELECT application_id FROM pragma_application_id),
	(SELECT user_version FROM pragma_user_version),
	(SELECT count(*) FROM sqlite_schema)`

// prepareDatabase creates the schema of a new database. It does not change a database that
// belongs to another program or has another schema.
func (e *engine) prepareDatabase(ctx context.Context) error {
	if err := e.patient(ctx, func() error { return e.conn.execute(settings) }); err != nil {
		return err
	}
	if e.system {
		return e.patient(ctx, func() error { return e.checkOurs() })
	}
	err := e.patient(ctx, func() error {
		_, err := checkSchema(e.conn)
		return err
	})
	if err != nil {
		return err
	}
	// An existing database has lost the log if another program has changed its journal mode.
	if err := e.patient(ctx, func() error { return setWAL(e.conn) }); err != nil {
		return err
	}
	return e.createSchema(ctx)
}

// checkSchema returns the number of the schema, or 0 if the database is empty. It fails if
// the database belongs to another program or the number is unknown.
func checkSchema(c *conn) (number int, err error) {
	var app, tables int
	if _, err := c.one(identitySQL, nil, &app, &number, &tables); err != nil {
		return 0, err
	}
	switch {
	case app == 0 && number == 0 && tables == 0:
		return 0, nil
	case app != applicationID:
		return 0, fmt.Errorf("%w database: it belongs to another program: name another path", driver.ErrInvalid)
	case number != schemaNumber:
		return 0, fmt.Errorf("%w database: its schema has number %d, and this program knows number %d only: use the version of holdfast that made it, or name another path", driver.ErrInvalid, number, schemaNumber)
	}
	return number, nil
}

// pageSize is the page size of a new database, in bytes. SQLite writes each changed page to
// the log as a whole: half of its default size has room for the rows, and takes a tenth less
// time.
const pageSize = 2048

// setWAL turns on the write-ahead log, which like the page size is recorded in the file. This
// cannot be done inside a transaction.
func setWAL(c *conn) error {
	if err := c.execute(fmt.Sprintf(`PRAGMA page_size = %d`, pageSize)); err != nil {
		return err
	}
	var mode string
	if _, err := c.one(`PRAGMA journal_mode = WAL`, nil, &mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("%w path: its file system cannot keep a write-ahead log (journal mode %s): use a local one", driver.ErrInvalid, mode)
	}
	return nil
}

// createSchema creates the tables in one transaction, unless another process has created them.
// Beginning the transaction also checks that this user may write.
func (e *engine) createSchema(ctx context.Context) error {
	if err := e.patient(ctx, func() error { return e.conn.run(beginSQL) }); err != nil {
		return err
	}
	number, err := checkSchema(e.conn)
	if err == nil && number == 0 {
		err = e.conn.execute(fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", schemaSQL, applicationID, schemaNumber))
	}
	if err == nil {
		err = e.conn.run(commitSQL)
	}
	if err != nil {
		_ = e.conn.run(rollbackSQL)
	}
	e.created = err == nil && number == 0
	return err
}
