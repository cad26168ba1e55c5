package pglock

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// defaultSchema is the schema in the files in sql.
const defaultSchema = "holdfast"

// tablesFile has the tables. The other files have functions, which can be replaced.
const tablesFile = "sql/schema.sql"

// layout is the number of the tables and their meaning: programs with different numbers must not
// share them. revision is the number of the functions, which increases with each change: a program
// replaces older functions, and leaves newer ones.
const (
	layout   = 1
	revision = 1
)

// oldest is the oldest version of the server that has all features that the functions use.
const oldest = 13

// encoding is the encoding of names, in the database and on the connections.
const encoding = "UTF8"

// Schema returns the SQL that creates the schema holdfast, with its tables and functions, for a
// database in which programs must not create it themselves. If the tables are there, the SQL
// replaces the functions only. It fails for tables of another layout, and for newer functions.
func Schema() string {
	return fmt.Sprintf(schemaSQL, layout, revision, sqlFile(tablesFile)) + functionsSQL() + "COMMIT;\n"
}

const schemaSQL = `BEGIN;
CREATE SCHEMA IF NOT EXISTS holdfast;

DO $schema$ BEGIN
IF pg_catalog.to_regclass('holdfast.layout') IS NOT NULL THEN
	IF EXISTS (SELECT FROM holdfast.layout WHERE number <> %d OR revision > %d) THEN
		RAISE 'the schema holdfast belongs to another version of holdfast';
	END IF;
	RETURN;
END IF;
%s
END $schema$;
`

func sqlFile(name string) string {
	text, err := sqlFiles.ReadFile(name)
	if err != nil {
		panic(err) // it is part of the program
	}
	return string(text)
}

// functionsSQL returns the SQL of the functions, in any order, and the statement that records their
// number.
func functionsSQL() string {
	var all strings.Builder
	all.WriteString("\nSET LOCAL check_function_bodies = off;\n")
	names, _ := fs.Glob(sqlFiles, "sql/*.sql")
	for _, name := range names {
		if name != tablesFile {
			all.WriteString("\n" + sqlFile(name))
		}
	}
	fmt.Fprintf(&all, "\nDELETE FROM holdfast.layout;\nINSERT INTO holdfast.layout (number, revision) VALUES (%d, %d);\n", layout, revision)
	return all.String()
}

// inSchema converts SQL from the default schema to another, by its quoted name.
func inSchema(sql, quoted string) string {
	return strings.ReplaceAll(sql, defaultSchema+".", quoted+".")
}

// An installation is what an engine knows about the schema in its database.
type installation struct {
	*Options
	quoted   string // name of the schema
	user     string
	database string
	turn     chan struct{} // holds a value while a request prepares the schema
	done     atomic.Bool
	direct   atomic.Bool // there is no pooler in between
}

func newInstallation(config *pgx.ConnConfig, opts *Options) *installation {
	return &installation{
		Options: opts, quoted: pgx.Identifier{opts.Schema}.Sanitize(),
		user: pgx.Identifier{config.User}.Sanitize(), database: pgx.Identifier{config.Database}.Sanitize(),
		turn: make(chan struct{}, 1),
	}
}

// grants returns the SQL with which the owner of the schema lets the user use it.
func (i *installation) grants() string {
	return fmt.Sprintf("GRANT USAGE ON SCHEMA %[1]s TO %[2]s; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO %[2]s; "+
		"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %[1]s TO %[2]s", i.quoted, i.user)
}

// ready returns when the schema is known to exist. It installs the schema if it may.
func (p *pools) ready(ctx context.Context) error {
	i := p.installed
	if i.done.Load() {
		return nil
	}
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return interrupted(ctx)
	}
	if i.done.Load() {
		return nil
	}
	err := p.run(ctx, waiting, i.prepare)
	i.done.Store(err == nil)
	return ask.Harmless(ctx, err) // no lock was touched
}

// prepare checks the database, and installs what is missing unless NoInstall is set.
func (i *installation) prepare(ctx context.Context, conn *pgx.Conn) error {
	found, err := i.look(ctx, conn)
	if err != nil || found.revision >= revision {
		return err
	}
	if i.NoInstall {
		return found.missing(i)
	}
	return i.install(ctx, conn)
}

// found is the result of look.
type found struct {
	version, objects int
	encoding         string
	isolation        string
	readOnly, exists bool
	hasLayout        bool
	number, revision int
	pid              uint32 // of the server's process; a pooler makes up another
}

const lookSQL = `SELECT
	pg_catalog.current_setting('server_version_num')::pg_catalog.int4 / 10000,
	pg_catalog.current_setting('server_encoding'),
	pg_catalog.current_setting('default_transaction_isolation'),
	pg_catalog.current_setting('transaction_read_only')::pg_catalog.bool,
	n.oid IS NOT NULL,
	(SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid),
	EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'revision'
		WHERE c.relnamespace = n.oid AND c.relname = 'layout'),
	pg_catalog.pg_backend_pid()
FROM (VALUES (1)) AS one LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = $1`

// look reads the state of the database. It fails if the database cannot keep locks or has another
// layout.
func (i *installation) look(ctx context.Context, conn *pgx.Conn) (f found, err error) {
	err = conn.QueryRow(ctx, lookSQL, i.Schema).Scan(&f.version, &f.encoding, &f.isolation, &f.readOnly, &f.exists, &f.objects, &f.hasLayout, &f.pid)
	i.direct.Store(err == nil && f.pid == conn.PgConn().PID())
	if err == nil {
		err = f.unfit(i)
	}
	if err == nil && f.hasLayout {
		err = conn.QueryRow(ctx, inSchema(`SELECT COALESCE(pg_catalog.max(number), 0), COALESCE(pg_catalog.max(revision), 0) FROM holdfast.layout`, i.quoted)).Scan(&f.number, &f.revision)
	}
	if err == nil && f.hasLayout && f.number != layout {
		err = fmt.Errorf("%w: the schema %s has the layout number %d, and this program knows number %d only: "+
			"use the version of holdfast that made it, or another schema", driver.ErrKindMismatch, i.quoted, f.number, layout)
	}
	return f, err
}

// unfit returns an error if the database cannot keep locks, whatever its layout.
func (f found) unfit(i *installation) (err error) {
	switch {
	case f.version < oldest:
		err = fmt.Errorf("%w: the server is PostgreSQL %d: use %d or later", driver.ErrUnsupported, f.version, oldest)
	case f.encoding != encoding:
		err = fmt.Errorf("%w database: its encoding is %s, and names of locks are UTF-8: use a database with ENCODING 'UTF8'", driver.ErrInvalid, f.encoding)
	case f.readOnly:
		err = fmt.Errorf("%w: the server is a standby, or set to be read-only: use the primary", driver.ErrUnavailable)
	case f.isolation != "read committed":
		err = fmt.Errorf("%w setting: default_transaction_isolation is %s, and a decision about a lock has to see what the one before has committed: "+
			"run ALTER ROLE %s SET default_transaction_isolation = 'read committed'", driver.ErrInvalid, f.isolation, i.user)
	case !f.hasLayout && f.objects > 0:
		err = fmt.Errorf("%w: the schema %s has tables of another program: name another with ?schema=", driver.ErrKindMismatch, i.quoted)
	}
	return err
}

// missing returns the error for a schema that is incomplete and must not be changed.
func (f found) missing(i *installation) error {
	if f.hasLayout {
		return fmt.Errorf("%w: the functions in the schema %s have number %d, and this program needs %d: "+
			"have its owner run the SQL of pglock.Schema", driver.ErrKindMismatch, i.quoted, f.revision, revision)
	}
	return fmt.Errorf("%w database: holdfast is not installed in the schema %s: have its owner run the SQL of pglock.Schema, "+
		"or leave install=off out", driver.ErrInvalid, i.quoted)
}

// install creates what is missing in one transaction. Only one program at a time does so.
func (i *installation) install(ctx context.Context, conn *pgx.Conn) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = 0;
		SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '10s'`})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1, 0))`, "holdfast "+i.Schema); err != nil {
		return err
	}
	found, err := i.look(ctx, conn) // again: another program may have installed it meanwhile
	if err != nil || found.revision >= revision {
		return err
	}
	sql := functionsSQL()
	if !found.hasLayout {
		sql = sqlFile(tablesFile) + sql
	}
	if sql = inSchema(sql, i.quoted); !found.exists {
		sql = "CREATE SCHEMA " + i.quoted + ";\n" + sql
	}
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return i.notInstalled(found, err)
	}
	return tx.Commit(ctx)
}

// notInstalled adds to the error of a missing right how to grant it.
func (i *installation) notInstalled(f found, err error) error {
	refusal, refused := errors.AsType[*pgconn.PgError](err)
	if !refused || refusal.Code != noRight {
		return err
	}
	right := "GRANT CREATE ON DATABASE " + i.database
	if f.hasLayout { // only their owner replaces functions
		return fmt.Errorf("%w: the functions in the schema %s have number %d, and this program needs %d: %s: "+
			"have its owner run the SQL of pglock.Schema", driver.ErrPermission, i.quoted, f.revision, revision, refusal.Message)
	} else if f.exists {
		right = "GRANT USAGE, CREATE ON SCHEMA " + i.quoted
	}
	return fmt.Errorf("%w: the schema %s is not installed: %s: have the owner of the database run %s TO %s, "+
		"or the SQL of pglock.Schema and then %s", driver.ErrPermission, i.quoted, refusal.Message, right, i.user, i.grants())
}
