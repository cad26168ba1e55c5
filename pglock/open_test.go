package pglock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// urlOf returns the URL of a user's database on a server, with more parameters.
func urlOf(server *testsvc.Database, user, database, more string) string {
	return "postgres://" + user + "@" + server.Addr + "/" + database + "?sslmode=disable" + more
}

// open opens an engine that is closed with the test.
func open(t testing.TB, rawURL string) *Engine {
	t.Helper()
	e, err := Open(t.Context(), rawURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// execute runs statements as the superuser, each in a transaction of its own.
func execute(t testing.TB, server *testsvc.Database, database string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), strings.Replace(server.DSN, "dbname=postgres", "dbname="+database, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, sql := range statements {
		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// TestInstall checks that the schema is created once, under the name in the options, however many
// engines open an empty database at once; and that the functions of a newer program remain.
func TestInstall(t *testing.T) {
	server := testsvc.Postgres(t)
	for _, schema := range []string{"holdfast", `with "quotes"`, "Größe; --"} {
		rawURL := urlOf(server, "postgres", "postgres", "&schema="+url.PathEscape(schema))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				e, err := Open(t.Context(), rawURL)
				if err != nil {
					t.Errorf("%q: %v", schema, err)
					return
				}
				_ = e.Close()
			})
		}
		all.Wait()
	}
	execute(t, server, "postgres", `UPDATE holdfast.layout SET revision = 1000000`)
	open(t, urlOf(server, "postgres", "postgres", ""))
	execute(t, server, "postgres", `DO $$ BEGIN ASSERT (SELECT revision FROM holdfast.layout) = 1000000; END $$`)
}

// TestStoppedInstall checks that a program that stops while it installs the schema delays others
// only briefly.
func TestStoppedInstall(t *testing.T) {
	testsvc.Long(t)
	server := testsvc.Postgres(t)
	proxy := faultproxy.NewPostgres(t, server.Addr)
	stopped := make(chan struct{})
	var once sync.Once
	proxy.OnRequest(func(r faultproxy.Request) (a faultproxy.Action) {
		if strings.Contains(strings.Join(r.Words, " "), "pg_advisory_xact_lock") {
			once.Do(func() { close(stopped) })
			a.Reply = faultproxy.Swallow
		}
		return a
	})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { _, _ = Open(ctx, "postgres://postgres@"+proxy.Addr()+"/postgres?sslmode=disable") })
	<-stopped
	soon, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	e, err := Open(soon, urlOf(server, "postgres", "postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
}

// TestSchema checks that an engine installs exactly the text of Schema, and that its owner may
// grant the rights that the error names. If run again, it replaces the functions and keeps the
// locks, unless the schema has another version.
func TestSchema(t *testing.T) {
	server := testsvc.Postgres(t)
	execute(t, server, "postgres", Schema(), `CREATE ROLE app LOGIN`)
	rawURL := urlOf(server, "app", "postgres", "&install=off")
	_, err := Open(t.Context(), rawURL)
	drivertest.WantIs(t, "without rights", err, driver.ErrPermission)
	_, grants, found := strings.Cut(fmt.Sprint(err), ": have its owner run ")
	if !found {
		t.Fatalf("%v: it does not say what to run", err)
	}
	execute(t, server, "postgres", grants)
	drivertest.Granted(t, open(t, rawURL), drivertest.Request("t", time.Hour))
	execute(t, server, "postgres", `UPDATE holdfast.layout SET revision = 0`)
	_, err = Open(t.Context(), urlOf(server, "app", "postgres", ""))
	drivertest.WantIs(t, "older functions of another owner", err, driver.ErrPermission)
	if !strings.Contains(fmt.Sprint(err), "have number 0, and this program needs 1: ") || !strings.HasSuffix(fmt.Sprint(err), "run the SQL of pglock.Schema") {
		t.Errorf("older functions of another owner: %v", err)
	}
	execute(t, server, "postgres", Schema()) // as the error advises: this replaces the functions
	drivertest.Held(t, open(t, rawURL), drivertest.Request("t", time.Hour))
	for column, other := range map[string]int{"number": layout + 1, "revision": revision + 1} {
		execute(t, server, "postgres", fmt.Sprintf(`UPDATE holdfast.layout SET %s = %d`, column, other))
		conn, err := pgx.Connect(t.Context(), server.DSN)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = conn.PgConn().Exec(t.Context(), Schema()).ReadAll(); err == nil || !strings.Contains(err.Error(), "another version") {
			t.Errorf("Schema over another %s: %v", column, err)
		}
		_ = conn.Close(t.Context())
		execute(t, server, "postgres", fmt.Sprintf(`UPDATE holdfast.layout SET number = %d, revision = %d`, layout, revision))
	}
}

// TestOpenRefuses checks that a database that cannot store locks is refused, and not changed.
func TestOpenRefuses(t *testing.T) {
	server := testsvc.Postgres(t)
	execute(t, server, "postgres",
		`CREATE ROLE app LOGIN`, `CREATE ROLE readonly LOGIN`, `ALTER ROLE readonly SET default_transaction_read_only = on`,
		`CREATE ROLE serial LOGIN SUPERUSER`, `ALTER ROLE serial SET default_transaction_isolation = serializable`,
		`CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'`,
		`CREATE SCHEMA theirs; CREATE TABLE theirs.lock (name text)`, `CREATE SCHEMA private; CREATE SCHEMA newer; CREATE SCHEMA copied`,
		`CREATE SCHEMA layouts; CREATE TABLE layouts.layout (page integer)`, inSchema(sqlFile(tablesFile), "copied"),
		`CREATE DATABASE closed`, `REVOKE CONNECT ON DATABASE closed FROM PUBLIC`,
		`CREATE SCHEMA empty`, `CREATE ROLE maker LOGIN`, `GRANT CREATE ON DATABASE postgres TO maker`,
		inSchema(sqlFile(tablesFile), "newer")+`; INSERT INTO newer.layout VALUES (2, 1)`,
		inSchema(sqlFile(tablesFile), "private")+`; INSERT INTO private.layout VALUES (1, 1000)`,
	)
	for what, c := range map[string]struct {
		user, database, more string
		want                 error
		says                 string
	}{
		"encoding":      {"postgres", "latin", "", driver.ErrInvalid, "its encoding is LATIN1"},
		"no database":   {"postgres", "none", "", driver.ErrInvalid, `database "none" does not exist`},
		"no user":       {"nobody", "postgres", "", driver.ErrPermission, `role "nobody" does not exist`},
		"no right":      {"app", "postgres", "", driver.ErrPermission, `run GRANT CREATE ON DATABASE "postgres" TO "app", or`},
		"another owner": {"app", "postgres", "&schema=private", driver.ErrPermission, `run GRANT USAGE ON SCHEMA "private" TO "app"; GRANT SELECT,`},
		"not installed": {"app", "postgres", "&install=off", driver.ErrInvalid, `is not installed in the schema "holdfast"`},
		"newer layout":  {"postgres", "postgres", "&schema=newer", driver.ErrKindMismatch, "has the layout number 2, and this program knows number 1 only"},
		"same table":    {"postgres", "postgres", "&schema=layouts", driver.ErrKindMismatch, "has tables of another program"},
		"without rows":  {"postgres", "postgres", "&schema=copied", driver.ErrKindMismatch, "has the layout number 0, and this program knows number 1 only"},
		"no connection": {"app", "closed", "", driver.ErrPermission, `have its owner run GRANT CONNECT ON DATABASE "closed" TO "app"`},
		"empty schema":  {"maker", "postgres", "&schema=empty", driver.ErrPermission, `run GRANT USAGE, CREATE ON SCHEMA "empty" TO "maker", or`},
		"other tables":  {"postgres", "postgres", "&schema=theirs", driver.ErrKindMismatch, "has tables of another program"},
		"read-only":     {"readonly", "postgres", "", driver.ErrUnavailable, "is a standby, or set to be read-only"},
		"serializable":  {"serial", "postgres", "", driver.ErrInvalid, `run ALTER ROLE "serial" SET default_transaction_isolation = 'read committed'`},
	} {
		e, err := Open(t.Context(), urlOf(server, c.user, c.database, c.more))
		drivertest.WantIs(t, what, err, c.want)
		if e != nil || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
	}
	execute(t, server, "postgres", `DO $$ BEGIN ASSERT to_regnamespace('holdfast') IS NULL; END $$`)
}

// TestOpenUnavailable checks that a missing server, a server without TLS and a context that ends
// cause definite errors soon.
func TestOpenUnavailable(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	server := testsvc.Postgres(t)
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for what, c := range map[string]struct {
		ctx    context.Context
		rawURL string
		says   string
	}{
		"no server": {t.Context(), "postgres://127.0.0.1:1/db", "connection refused"},
		"no socket": {t.Context(), "postgres:///db?host=/no/such/directory", "no such file"},
		"no TLS":    {t.Context(), "postgres://postgres@" + server.Addr + "/postgres?sslmode=require", "refused TLS"},
		"ended":     {ended, urlOf(server, "postgres", "postgres", ""), "canceled"},
		"silent":    {soon, "postgres://u@" + silent(t) + "/db", "deadline exceeded"},
	} {
		e, err := Open(c.ctx, c.rawURL)
		drivertest.WantIs(t, what, err, driver.ErrUnavailable)
		if e != nil || err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
	}
}

// TestTextBytes checks that bytes are the same behind a pooler, where replies are text, whatever
// bytea_output the role has.
func TestTextBytes(t *testing.T) {
	want := []byte("\\x00\x00\xff'")
	server := testsvc.Postgres(t)
	execute(t, server, "postgres", `CREATE ROLE old LOGIN SUPERUSER`, `ALTER ROLE old SET bytea_output = escape`)
	e := open(t, urlOf(server, "old", "postgres", ""))
	e.installed.direct.Store(false) // as behind a pooler
	req, again := drivertest.Request("t", time.Minute), drivertest.Request("t", time.Minute)
	again.Once = true
	drivertest.Granted(t, e, req)
	proof := driver.Proof("proof")
	err := errors.Join(
		e.Complete(t.Context(), driver.CompleteRequest{Name: "t", LeaseID: req.LeaseID, Record: want, Retention: time.Hour}),
		e.Deposit(t.Context(), driver.DepositRequest{Digest: proof.Digest(), Payload: want, TTL: time.Hour, Memory: time.Hour}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		read func() ([]byte, error)
	}{
		{"acquire", func() ([]byte, error) { r, err := e.Acquire(t.Context(), again); return r.Record, err }},
		{"recall", func() ([]byte, error) { r, _, err := e.Recall(t.Context(), "t"); return r.Data, err }},
		{"records", func() ([]byte, error) { r, _, err := e.DescribeRecord(t.Context(), "t"); return r.Head, err }},
		{"peek", func() ([]byte, error) { r, err := e.Peek(t.Context(), proof); return r.Payload, err }},
		{"redeem", func() ([]byte, error) {
			r, err := e.Redeem(t.Context(), driver.RedeemRequest{Proof: proof, By: again.LeaseID})
			return r.Payload, err
		}},
	} {
		if got, err := c.read(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q, %v", c.what, got, err)
		}
	}
}

// TestHooks checks that a hook of the pool that drops prepared statements costs one request, and
// that no request runs in a transaction begun by a hook. INVARIANT I1.
func TestHooks(t *testing.T) {
	server := testsvc.Postgres(t)
	open(t, urlOf(server, "postgres", "postgres", "")) // installs the schema
	for hook, failures := range map[string]error{"DEALLOCATE ALL": driver.ErrUnavailable, "BEGIN": driver.ErrInvalid} {
		config, err := pgxpool.ParseConfig(urlOf(server, "postgres", "postgres", "&pool_max_conns=1"))
		if err != nil {
			t.Fatal(err)
		}
		config.AfterRelease = func(conn *pgx.Conn) bool {
			_, err := conn.Exec(context.Background(), hook)
			return err == nil
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		e, err := New(pool, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = e.Close() }()
		granted, failed := 0, 0
		for range 6 {
			reply, err := e.Acquire(t.Context(), drivertest.Request(hook, time.Hour))
			if err != nil {
				drivertest.WantIs(t, hook, err, failures)
				failed++
			} else if reply.Outcome == driver.Granted {
				granted++
			}
			await(t, func() bool { return e.main.Stat().AcquiredConns() == 0 }) // the hook has run
		}
		if granted > 1 || failed == 0 || hook != "BEGIN" && failed > 1 {
			t.Errorf("%s: %d were granted, and %d failed", hook, granted, failed)
		}
	}
}

// TestNew checks that the engine uses the server of the pool, installs the schema with its first
// request, and leaves the pool unchanged.
func TestNew(t *testing.T) {
	server := testsvc.Postgres(t)
	pool, err := pgxpool.New(t.Context(), server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	e, err := New(pool, &Options{Schema: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ready(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(e.Close(), e.Close(), pool.Ping(t.Context())); err != nil {
		t.Error(err)
	}
	drivertest.WantIs(t, "after Close", e.ready(t.Context()), nil)
	drivertest.WantIs(t, "after Close", e.run(t.Context(), waiting, nil), driver.ErrClosed)
	for what, opts := range map[string]*Options{
		"schema": {Schema: "a$b"}, "reserved": {Schema: "pg_locks"}, "memory": {TokenMemory: time.Millisecond},
		"listen": {Listen: "redis://h"}, "listen twice": {Listen: "postgres://h/db?schema=x"},
	} {
		_, err := New(pool, opts)
		drivertest.WantIs(t, what, err, driver.ErrInvalid)
	}
	_, err = New(nil, nil)
	drivertest.WantIs(t, "no pool", err, driver.ErrInvalid)
}
