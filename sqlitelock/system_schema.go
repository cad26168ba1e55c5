package sqlitelock

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"modernc.org/sqlite"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// Members of the group may write anything into a system store's database. A member's trigger or
// view would run in the processes of all others, including root's. So every transaction first
// checks that the schema is exactly schema.sql.

const (
	versionSQL    = `PRAGMA schema_version`
	schemaRowsSQL = `SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name`
)

// newConn opens a connection. Closing it must not delete the files of a system store, because only
// root can create them.
func (e *engine) newConn(dsn string) (*conn, error) {
	c, err := newConn(dsn)
	if err != nil || !e.system {
		return c, err
	}
	files, ok := c.Conn.(sqlite.FileControl)
	if !ok {
		err = errors.New("this version of SQLite's driver cannot keep the log")
	} else if _, err = files.FileControlPersistWAL("main", 1); err == nil {
		err = c.execute(`PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF`) // members may have written anything
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// checkOurs fails unless the database is a lock database with a write-ahead log and exactly the schema
// of schema.sql.
// Beginning the transaction also checks that this user may write.
func (e *engine) checkOurs() error {
	if err := e.conn.run(beginSQL); err != nil {
		return err
	}
	err := checkUnaltered(e.conn)
	if errors.Is(err, errAltered) {
		err = onefile.NotSystem("%v", err)
	}
	if err == nil {
		_, err = checkSchema(e.conn)
	}
	var mode string
	if err == nil {
		_, err = e.conn.one(`PRAGMA journal_mode`, nil, &mode)
	}
	if err == nil && mode != "wal" { // SQLite would delete the empty journal
		err = onefile.NotSystem("the journal mode of %s is %s, want wal", e.path, mode)
	}
	_ = e.conn.run(rollbackSQL)
	return err
}

// readOurs is read for a system store: do reads in a transaction whose schema is checked.
func (e *engine) readOurs(r reader, do func(r reader) error) error {
	return r.atOnce(func() error {
		if err := checkUnaltered(r.sql); err != nil {
			return err
		}
		return do(r)
	})
}

var errAltered = errors.New("the schema of the database was altered")

// checkUnaltered fails if the schema differs from schema.sql in the current transaction of c.
// SQLite counts changes of the schema, and loads it again when the count has changed. A member can set
// the count back, so what counts is the schema that c has loaded: c loads it in the same transaction
// in which it is read and compared.
func checkUnaltered(c *conn) error {
	var version int64
	if _, err := c.one(versionSQL, nil, &version); err != nil {
		return err
	}
	if version == c.checked && version != 0 {
		return nil
	}
	c.checked = 0
	if err := c.execute(`PRAGMA writable_schema = RESET`); err != nil { // it forgets the loaded schema
		return err
	}
	theirs, err := schemaOf(c)
	if err != nil {
		return err
	}
	ours, err := schemaOfOurs()
	if err != nil {
		return err
	}
	if !slices.Equal(theirs, ours) {
		return fmt.Errorf("%w: %w: %s", driver.ErrUnavailable, errAltered, difference(theirs, ours))
	}
	c.checked = version
	return nil
}

// An object is a table, an index, a trigger or a view.
type object struct{ kind, name, table, sql string }

func schemaOf(c *conn) ([]object, error) {
	return scanAll(c, schemaRowsSQL, nil, func(o *object) []any { return []any{&o.kind, &o.name, &o.table, &o.sql} })
}

// schemaOfOurs returns the schema that schema.sql creates.
var schemaOfOurs = sync.OnceValues(func() ([]object, error) {
	c, err := newConn(":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	if err := c.execute(schemaSQL); err != nil {
		return nil, err
	}
	return schemaOf(c)
})

// difference describes the first object that is in only one of the schemas.
func difference(theirs, ours []object) string {
	for _, o := range theirs {
		if !slices.Contains(ours, o) {
			return fmt.Sprintf("the %s %q is not ours", o.kind, o.name)
		}
	}
	for _, o := range ours {
		if !slices.Contains(theirs, o) {
			return fmt.Sprintf("the %s %q is missing", o.kind, o.name)
		}
	}
	return "an object is there twice"
}
