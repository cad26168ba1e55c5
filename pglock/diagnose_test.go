package pglock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// diagnose returns the findings, as text by key.
func diagnose(t testing.TB, e *Engine) map[string]string {
	t.Helper()
	d, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range d.Findings {
		all[f.Key] += fmt.Sprintf("%s: %s\n", [...]string{"ok", "warn", "fail"}[f.Level], f.Text)
	}
	return all
}

// wantFindings fails t unless the findings have these texts.
func wantFindings(t testing.TB, got, want map[string]string) {
	t.Helper()
	for key, says := range want {
		if !strings.Contains(got[key], says) {
			t.Errorf("%s: %s; want %q", key, got[key], says)
		}
	}
}

// TestDiagnose checks that a good server has no warning except that a crash of its machine may lose
// data, and that each problem is found.
func TestDiagnose(t *testing.T) {
	server := testsvc.Postgres(t, "max_prepared_transactions=2")
	e := open(t, urlOf(server, "postgres", "postgres", ""))
	wantFindings(t, diagnose(t, e), map[string]string{
		"server": "ok: PostgreSQL", "schema": `ok: "holdfast" in the database postgres, of postgres; layout 1`, "functions": "ok: number 1, as",
		"rights": "ok: ", "pooler": "ok: none", "messages": "ok: LISTEN works; ", "commits": "warn: fsync is off", "standbys": "ok: 0, none of which",
		"clock": "ok: ", "rows": "ok: ", "snapshots": "ok: ", "vacuum": "ok: ", "locks": "ok: ", "request": " each, for a TTL of 30s",
	})
	execute(t, server, "postgres",
		`CREATE ROLE app LOGIN`, `GRANT USAGE ON SCHEMA holdfast TO app`, `GRANT SELECT ON ALL TABLES IN SCHEMA holdfast TO app`,
		`CREATE OR REPLACE FUNCTION holdfast.clock() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT 1::bigint'`,
		`ALTER TABLE holdfast.lock SET (autovacuum_enabled = off)`, `INSERT INTO holdfast.lock (name) VALUES ('y')`)
	holder, err := pgx.Connect(t.Context(), server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(context.WithoutCancel(t.Context())) }()
	if _, err := holder.Exec(t.Context(), `BEGIN; SELECT * FROM holdfast.lock WHERE name = 'y' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	execute(t, server, "postgres", `BEGIN; CREATE TABLE prepared (n int); PREPARE TRANSACTION 'forgotten'`,
		`CREATE PROCEDURE burn() LANGUAGE plpgsql AS 'BEGIN FOR i IN 1..1100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END'`, `CALL burn()`,
		`SELECT pg_sleep(1.1)`)
	wantFindings(t, diagnose(t, e), map[string]string{
		"functions": "warn: clock: not as this program installs", "vacuum": "warn: autovacuum is off for lock: ", "rows": fmt.Sprintf("warn: process %d (user postgres,", holder.PgConn().PID()),
		"snapshots": "the prepared transaction forgotten has kept dead rows for",
	})
	if _, err := holder.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Error(err)
	}
	guest := open(t, urlOf(server, "app", "postgres", ""))
	wantFindings(t, diagnose(t, guest), map[string]string{"rights": "fail: not permitted: rights are missing (broken: DELETE, broken: INSERT,"})
	execute(t, server, "postgres", guest.installed.grants())
	wantFindings(t, diagnose(t, guest), map[string]string{"rights": `warn: enough for locks; what other users of the server do cannot be looked at: GRANT pg_read_all_stats TO "app"`})
	execute(t, server, "postgres", `UPDATE holdfast.layout SET revision = 1000`)
	wantFindings(t, diagnose(t, e), map[string]string{"functions": "ok: number 1000: a newer holdfast"})
	execute(t, server, "postgres", `DROP SCHEMA holdfast CASCADE`)
	wantFindings(t, diagnose(t, e), map[string]string{"schema": "fail: "})
}

// TestFunctionText checks that the diagnosis compares each of our functions.
func TestFunctionText(t *testing.T) {
	if found, all := len(functionText().FindAllString(functionsSQL(), -1)), strings.Count(functionsSQL(), "FUNCTION holdfast."); found != all {
		t.Errorf("%d functions of %d are compared", found, all)
	}
}

// TestDiagnosePooler checks that a pooler is found, with its mode, and that LISTEN gets no
// notifications through it without a direct connection.
func TestDiagnosePooler(t *testing.T) {
	server := testsvc.Postgres(t)
	for _, c := range []struct{ mode, more, pooler, messages string }{
		{"transaction", "", "ok: one in transaction mode", "warn: a notification does not arrive"},
		{"transaction", "&listen=" + "postgres%3A%2F%2Fpostgres%40" + server.Addr + "%2Fpostgres", "ok: one in transaction mode", "ok: LISTEN works"},
		{"session", "", "ok: one in session mode", "ok: LISTEN works"},
	} {
		pooler := testsvc.PgBouncer(t, server, "pool_mode = "+c.mode)
		e := open(t, urlOf(pooler, "postgres", "postgres", c.more))
		wantFindings(t, diagnose(t, e), map[string]string{"pooler": c.pooler, "messages": c.messages})
	}
}

// TestDiagnoseStandbys checks that standbys are counted, and that a missing synchronous standby is
// found before any request waits for it.
func TestDiagnoseStandbys(t *testing.T) {
	server := testsvc.Postgres(t)
	standby := server.Standby()
	e := open(t, urlOf(server, "postgres", "postgres", ""))
	wantFindings(t, diagnose(t, e), map[string]string{"standbys": "ok: 1, none of which"})
	_, err := Open(t.Context(), urlOf(standby, "postgres", "postgres", ""))
	if driver.Class(err) != driver.ErrUnavailable || !strings.Contains(err.Error(), "is a standby") {
		t.Errorf("on the standby: %v", err)
	}
	both := "postgres://postgres@" + standby.Addr + "," + server.Addr + "/postgres?sslmode=disable"
	open(t, both)
	open(t, both+"&target_session_attrs=primary")
	if _, err := Open(t.Context(), both+"&target_session_attrs=any"); driver.Class(err) != driver.ErrUnavailable {
		t.Errorf("any server: %v", err)
	}
	server.Configure("synchronous_standby_names = 'standby'")
	await(t, func() bool { return server.Query("SHOW synchronous_standby_names") == "standby" })
	wantFindings(t, diagnose(t, e), map[string]string{"standbys": "ok: 1, 1 of which have each grant"})
	standby.Detach(server)
	wantFindings(t, diagnose(t, e), map[string]string{"standbys": "fail: store is unavailable: none of those in synchronous_standby_names is there"})
}

// TestDeafEar checks that an engine that gets no notifications logs that once.
func TestDeafEar(t *testing.T) {
	server := testsvc.Postgres(t)
	pool, err := pgxpool.New(t.Context(), urlOf(testsvc.PgBouncer(t, server), "postgres", "postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	reader, log := io.Pipe()
	e, err := New(pool, &Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
	waiter := drivertest.Request("t", time.Minute)
	waiter.Queue, waiter.WaiterTTL = true, time.Minute
	drivertest.Held(t, e, waiter)
	time.AfterFunc(20*time.Second, func() { _ = log.CloseWithError(errors.New("the log is empty")) })
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil || !strings.Contains(line, "listen=URL") {
		t.Errorf("log %q, %v", line, err)
	}
}

// TestSilentEar checks that a listening connection that was cut silently is replaced, and that the
// log blames no pooler.
func TestSilentEar(t *testing.T) {
	testsvc.Long(t)
	server := testsvc.Postgres(t)
	proxy := faultproxy.NewPostgres(t, server.Addr)
	config, opts, err := parseURL(urlOf(server, "postgres", "postgres", "&listen="+url.QueryEscape("postgres://postgres@"+proxy.Addr()+"/postgres?sslmode=disable")))
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	e, err := newEngine(config, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _ = e.Close(); log.Len() > 0 {
			t.Errorf("log: %s", &log)
		}
	}()
	held, waiter := drivertest.Request("t", time.Minute), drivertest.Request("t", time.Minute)
	waiter.Queue, waiter.WaiterTTL = true, time.Minute
	drivertest.Granted(t, e, held)
	w := e.Watch(waiter.LeaseID)
	defer w.Stop()
	drivertest.Held(t, e, waiter)
	toldToLook(t, w)
	proxy.BlackHoleConns()
	select {
	case <-w.C():
	case <-time.After(hearingTest + 2*hearingTime):
		t.Error("the engine does not listen again")
	}
}

// TestListenerHook checks that the listening connection uses the user and password from the pool's
// hook.
func TestListenerHook(t *testing.T) {
	server := testsvc.Postgres(t)
	config, err := pgxpool.ParseConfig(urlOf(server, "nobody", "postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		c.User = "postgres"
		return nil
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
	drivertest.Cycle(t, e, "the first request installs the schema")
	wantFindings(t, diagnose(t, e), map[string]string{"messages": "ok: LISTEN works"})
}
