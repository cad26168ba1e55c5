//go:build unix

package main

import (
	"context"
	"database/sql"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/holdfast-locks/holdfast/fence/sqlfence"
)

// A database has the bookings. Exactly one of File and PostgreSQL is set.
type database struct {
	File       string // of SQLite
	PostgreSQL string // connection string
	Schema     string // of this run, in PostgreSQL
}

func (d database) dialect() sqlfence.Dialect {
	if d.PostgreSQL != "" {
		return sqlfence.PostgreSQL
	}
	return sqlfence.SQLite
}

func (d database) open() (*sql.DB, error) {
	if d.PostgreSQL == "" {
		// A transaction that reads first and writes later must get the write lock at its start:
		// SQLite would refuse the lock later.
		params := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(20000)", "journal_mode(WAL)"}}
		return sql.Open("sqlite", "file:"+(&url.URL{Path: d.File}).EscapedPath()+"?"+params.Encode())
	}
	config, err := pgx.ParseConfig(d.PostgreSQL)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["search_path"] = d.Schema
	return stdlib.OpenDB(*config), nil
}

// tables are the tables of the theatre. They do not keep a seat from being booked twice: that is
// the lock's task here, as for any work that is more than one row.
const tables = `
CREATE TABLE bookings (seat text NOT NULL, customer text NOT NULL, worker text NOT NULL);
CREATE TABLE charges (id text PRIMARY KEY, seat text NOT NULL, customer text NOT NULL, cents integer NOT NULL, refunded integer NOT NULL DEFAULT 0);`

// create makes the tables of the theatre and the one of the guard.
func (d database) create(ctx context.Context, db *sql.DB) error {
	if d.PostgreSQL != "" {
		if _, err := db.ExecContext(ctx, `CREATE SCHEMA `+d.Schema); err != nil {
			return err
		}
	}
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return err
	}
	return d.dialect().Migrate(ctx, db)
}

// drop removes the schema that create has made in a PostgreSQL server.
func (d database) drop(ctx context.Context, db *sql.DB) error {
	if d.PostgreSQL == "" {
		return nil
	}
	_, err := db.ExecContext(ctx, `DROP SCHEMA IF EXISTS `+d.Schema+` CASCADE`)
	return err
}
