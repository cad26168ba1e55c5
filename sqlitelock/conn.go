package sqlitelock

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"

	"modernc.org/sqlite"
)

// A conn is one connection to the database, by SQLite's driver itself. The work of database/sql
// around each statement (locks, pool, reflection) costs as much as the statement. Only one
// goroutine at a time uses a conn.
type conn struct {
	sqldriver.Conn
	prepared map[string]*prepared   // by their text
	args     []sqldriver.NamedValue // of the running statement
	checked  int64                  // the version of the schema that it has loaded, if that is schema.sql's; see checkUnaltered
}

// A prepared is a statement of a connection. It is prepared on first use: a process that takes one
// lock needs few of them.
type prepared struct {
	sqldriver.Stmt
	row []sqldriver.Value // the last row read
}

func newConn(dsn string) (*conn, error) {
	c, err := (&sqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, prepared: map[string]*prepared{}}, nil
}

// Close closes the statements too: SQLite keeps its files open until they are.
func (c *conn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// forget closes the statements.
func (c *conn) forget() {
	for _, s := range c.prepared {
		_ = s.Close()
	}
	clear(c.prepared)
}

func (c *conn) statement(query string) (*prepared, error) {
	s := c.prepared[query]
	if s == nil {
		stmt, err := c.Prepare(query)
		if err != nil {
			return nil, err
		}
		s = &prepared{Stmt: stmt}
		c.prepared[query] = s
	}
	return s, nil
}

// execute runs statements without arguments, and does not keep them prepared.
func (c *conn) execute(queries string) error {
	_, err := c.Conn.(sqldriver.ExecerContext).ExecContext(context.Background(), queries, nil)
	return err
}

// run executes a statement that returns no rows.
func (c *conn) run(query string, args ...any) error {
	_, err := c.exec(query, args)
	return err
}

// changed executes a statement and reports whether it found a row to change.
func (c *conn) changed(query string, args ...any) (bool, error) {
	n, err := c.affected(query, args...)
	return n > 0, err
}

// affected executes a statement and returns how many rows it changed.
func (c *conn) affected(query string, args ...any) (int, error) {
	result, err := c.exec(query, args)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

func (c *conn) exec(query string, args []any) (sqldriver.Result, error) {
	s, err := c.statement(query)
	if err != nil {
		return nil, err
	}
	if err := c.bind(args); err != nil {
		return nil, err
	}
	return s.Stmt.(sqldriver.StmtExecContext).ExecContext(context.Background(), c.args)
}

// one scans the only row of a query, and reports whether there is one.
func (c *conn) one(query string, args []any, into ...any) (found bool, err error) {
	err = c.each(query, args, func() []any {
		found = true
		return into
	})
	return found && err == nil, err
}

// scanAll scans the rows of a query, each into a new T with the columns of into.
func scanAll[T any](c *conn, query string, args []any, into func(*T) []any) ([]T, error) {
	var found []T
	err := c.each(query, args, func() []any {
		found = append(found, *new(T))
		return into(&found[len(found)-1])
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// each scans every row of a query into what next returns for it.
func (c *conn) each(query string, args []any, next func() []any) error {
	s, err := c.statement(query)
	if err != nil {
		return err
	}
	if err := c.bind(args); err != nil {
		return err
	}
	rows, err := s.Stmt.(sqldriver.StmtQueryContext).QueryContext(context.Background(), c.args)
	if err != nil {
		return err
	}
	if s.row == nil {
		s.row = make([]sqldriver.Value, len(rows.Columns()))
	}
	for err == nil {
		if err = rows.Next(s.row); err == nil {
			err = scan(s.row, next())
		}
	}
	closed := rows.Close()
	if errors.Is(err, io.EOF) {
		return closed
	}
	return err
}

// bind sets the arguments of the next statement.
func (c *conn) bind(args []any) error {
	c.args = c.args[:0]
	for i, arg := range args {
		v, err := sqldriver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
		c.args = append(c.args, sqldriver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return nil
}

// scan stores the values of a row. Only blobs may be NULL.
func scan(row []sqldriver.Value, into []any) error {
	for i, to := range into {
		if !set(reflect.ValueOf(to).Elem(), row[i]) {
			return fmt.Errorf("column %d is a %T, for a %T", i+1, row[i], to)
		}
	}
	return nil
}

// set stores a value, and reports whether its type fits.
func set(to reflect.Value, from sqldriver.Value) bool {
	kind := to.Kind()
	switch from := from.(type) {
	case int64:
		switch {
		case to.CanInt():
			to.SetInt(from)
		case to.CanUint():
			to.SetUint(uint64(from))
		case kind == reflect.Bool:
			to.SetBool(from != 0)
		default:
			return false
		}
		return true
	case string:
		if kind == reflect.String {
			to.SetString(from)
		}
		return kind == reflect.String
	}
	blob, ok := from.([]byte)
	if ok = kind == reflect.Slice && (ok || from == nil); ok {
		to.SetBytes(blob)
	}
	return ok
}
