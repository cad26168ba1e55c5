//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestPostgres checks that a job runs under a lock in PostgreSQL, and that the server shows the
// lock. If a database cannot be used, the status and the message must fit the reason.
func TestPostgres(t *testing.T) {
	t.Parallel()
	server := testsvc.Postgres(t)
	wantRun(t, 0, server.URL, "run", "job", "--", "true")
	s := serve(t, server.URL)
	held := hold(t, s.urls[0], "nightly", "--ttl", "20s")
	if status, body := s.get("/v1/locks"); status != 200 || !strings.Contains(body, `"nightly"`) {
		t.Errorf("locks: %d %s", status, body)
	}
	if status, body := s.get("/"); status != 200 || !strings.Contains(body, "<script") {
		t.Errorf("the page: %d %s", status, body)
	}
	wantRun(t, 75, server.URL, "run", "-n", "nightly", "--", "true")
	held.finish()
	held.want(0)

	status, stdout, stderr := run(t, server.URL, "doctor")
	if status != 1 || !strings.Contains(stdout, "fsync is off") || !strings.Contains(stdout, "acquire, extend and release do what they should") || stderr != "" {
		t.Errorf("doctor: %d\n%s%s", status, stdout, stderr)
	}
	for _, sql := range []string{
		`CREATE ROLE app LOGIN PASSWORD 's3cret'`, `CREATE ROLE reader LOGIN`, `ALTER ROLE reader SET default_transaction_read_only = on`,
		`CREATE SCHEMA newer; CREATE TABLE newer.layout (number integer, revision integer); INSERT INTO newer.layout VALUES (2, 1)`,
		`CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'`,
	} {
		server.Query(sql)
	}
	as := func(user, database, more string) string {
		return "postgres://" + user + "@" + server.Addr + "/" + database + "?sslmode=disable" + more
	}
	for _, c := range []struct {
		store  string
		status int
		says   string
	}{
		{as("app:s3cret", "postgres", ""), 77, `GRANT USAGE ON SCHEMA "holdfast" TO "app"`},
		{as("app:s3cret", "postgres", "&schema=mine"), 77, `GRANT CREATE ON DATABASE "postgres" TO "app"`},
		{as("postgres", "postgres", "&schema=newer"), 78, "layout number 2"},
		{as("postgres", "postgres", "&schema=none&install=off"), 78, "is not installed"},
		{as("postgres", "latin", ""), 78, "its encoding is LATIN1"},
		{as("postgres", "none", ""), 78, `database "none" does not exist`},
		{as("reader", "postgres", ""), 69, "read-only"},
		{as("postgres", "postgres", "&histroy=1"), 78, `unknown parameter "histroy"`},
		{strings.Replace(as("postgres", "postgres", ""), "=disable", "=require", 1), 69, "refused TLS"},
		{"postgres://app:s3cret@127.0.0.1:1/db", 69, "is the server up, and is this its port?"},
	} {
		if stderr := wantRun(t, c.status, c.store, "run", "x", "--", "true"); !strings.Contains(stderr, c.says) || strings.Contains(stderr, "s3cret") {
			t.Errorf("%s: %s, want %q", c.store, stderr, c.says)
		}
	}
}
