package pglock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// silent returns the address of a server that never answers.
func silent(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func nothing(pgx.Rows) error { return nil }

// TestEndedContext checks that requests whose contexts end at any time cost no connection, return
// soon, and are not carried out if their error is definite.
func TestEndedContext(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", ""))
	execute(t, server, "postgres", `CREATE TABLE done (n integer PRIMARY KEY)`)
	var definite sync.Map
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 125 {
				n := worker*1000 + i
				limit := time.Duration(rand.Int64N(int64(30 * time.Millisecond)))
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				began := time.Now()
				err := e.query(ctx, kind(i%3), `WITH made AS (INSERT INTO done VALUES ($1) RETURNING n) SELECT pg_sleep(0.02) FROM made`, []any{n}, nothing)
				cancel()
				if late := time.Since(began) - limit; late > 5*time.Second {
					t.Errorf("%s late", late)
				}
				if driver.Definite(err) {
					definite.Store(n, true)
				}
			}
		})
	}
	all.Wait()
	if made := e.main.Stat().NewConnsCount() + e.reserve.Stat().NewConnsCount(); made > int64(e.main.Config().MaxConns)+reserved {
		t.Errorf("%d connections were made", made)
	}
	undone := 0
	definite.Range(func(any, any) bool { undone++; return true })
	if undone < 100 {
		t.Errorf("%d requests were cancelled", undone)
	}
	if err := e.query(t.Context(), waiting, `SELECT n FROM done`, nil, func(rows pgx.Rows) error {
		var n int
		if err := rows.Scan(&n); err != nil {
			return err
		}
		if _, wrong := definite.Load(n); wrong {
			t.Errorf("request %d was carried out", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestReserve checks that waiting requests leave connections for releases and renewals, and that
// releases leave some for renewals.
func TestReserve(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", "&pool_max_conns=2"))
	waits, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	sleep := func(k kind, n int) {
		for range n {
			all.Go(func() { _ = e.query(waits, k, `SELECT pg_sleep(60)`, nil, nothing) })
		}
	}
	sleep(waiting, 10)
	await(t, func() bool { return len(e.room) == cap(e.room) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := e.query(ctx, ending, `SELECT 1`, nil, nothing); err != nil {
		t.Error(err)
	}
	sleep(ending, 10)
	await(t, func() bool { return len(e.ends) == cap(e.ends) })
	if err := e.query(ctx, renewing, `SELECT 1`, nil, nothing); err != nil {
		t.Error(err)
	}
}

func await(t testing.TB, done func() bool) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for ticker := time.NewTicker(time.Millisecond); !done(); <-ticker.C {
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}

// TestOutcomes checks that an error of the server is definite, and that the end of a connection or
// a warning about replication is not.
func TestOutcomes(t *testing.T) {
	server := testsvc.Postgres(t)
	execute(t, server, "postgres",
		`CREATE ROLE hasty LOGIN SUPERUSER`, `ALTER ROLE hasty SET statement_timeout = '1s'`, `ALTER ROLE hasty SET lock_timeout = '10ms'`,
		`ALTER ROLE hasty SET idle_in_transaction_session_timeout = '10ms'`, `ALTER ROLE hasty SET search_path = nowhere`,
		`CREATE TABLE rows (n integer PRIMARY KEY)`, `INSERT INTO rows VALUES (1)`)
	e := open(t, urlOf(server, "hasty", "postgres", ""))
	holder, err := pgx.Connect(t.Context(), server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(context.WithoutCancel(t.Context())) }()
	if _, err := holder.Exec(t.Context(), `BEGIN; UPDATE rows SET n = n`); err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]struct {
		class error
		says  string
	}{
		`SELECT 1`:                                                     {nil, ""},
		`SELECT pg_sleep(10)`:                                          {driver.ErrUnavailable, "statement timeout"},
		`SELECT n FROM public.rows FOR UPDATE`:                         {driver.ErrUnavailable, "lock timeout"},
		`SELECT n FROM holdfast.none`:                                  {driver.ErrUnavailable, "is not whole"},
		`SELECT pg_terminate_backend(pg_backend_pid())`:                {nil, "has ended the connection"},
		`DO $$ BEGIN RAISE WARNING 'not replicated'; END $$`:           {nil, errNotReplicated.Error()},
		`DO $$ BEGIN RAISE NOTICE 'nothing'; END $$`:                   {nil, ""},
		`DO $$ BEGIN RAISE 'no' USING ERRCODE = '08006'; END $$`:       {nil, "has ended the connection"},
		`DO $$ BEGIN RAISE 'full' USING ERRCODE = 'disk_full'; END $$`: {driver.ErrUnavailable, "full"},
	} {
		err := e.query(t.Context(), waiting, sql, nil, nothing)
		if got := driver.Class(err); !errors.Is(got, want.class) || (err == nil) != (want.says == "") || err != nil && !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v, want %v with %q", sql, err, want.class, want.says)
		}
	}
}

// TestSilence checks that requests to a stopped server end soon after their contexts, whose cause may
// be that another client was closed, and that Close does not wait for the server.
func TestSilence(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", ""))
	otherClient := fmt.Errorf("%w: its client is %w", driver.ErrLost, driver.ErrClosed)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, otherClient)
	defer cancel()
	began := time.Now()
	err := e.query(ctx, waiting, `SELECT pg_sleep(60)`, nil, nothing)
	drivertest.WantIs(t, "cancelled", err, driver.ErrUnavailable)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	var all sync.WaitGroup
	defer all.Wait()
	begun := make(chan struct{})
	all.Go(func() {
		close(begun)
		drivertest.WantIs(t, "closed", e.query(t.Context(), waiting, `SELECT pg_sleep(60)`, nil, nothing), driver.ErrClosed)
	})
	<-begun
	await(t, func() bool { return len(e.room) == 1 })
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
