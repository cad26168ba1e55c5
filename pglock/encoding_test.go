package pglock

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// TestEncoding checks that a name is one lock, whatever client_encoding the role, the pool, its
// hooks or the transactions of Hold have. INVARIANT I1.
func TestEncoding(t *testing.T) {
	const name = "schl\u00fcssel \u0437\u0430\u043c\u043e\u043a \U0001f512"
	p := newProgram(t)
	execute(t, p.server, "postgres", `CREATE ROLE latin LOGIN SUPERUSER`, `ALTER ROLE latin SET client_encoding = LATIN1`)
	held := drivertest.Request(name, time.Hour)
	drivertest.Granted(t, p.engine, held)
	excluded := func(what string, e *Engine) {
		t.Helper()
		if by := drivertest.Held(t, e, drivertest.Request(name, time.Hour)); by.Holder.Label != held.Holder.Label {
			t.Errorf("%s: held by %v, want %v", what, by.Holder, held.Holder)
		}
	}
	excluded("role", open(t, urlOf(p.server, "latin", "postgres", "")))

	config := p.pool.Config()
	config.ConnConfig.RuntimeParams["client_encoding"] = "LATIN1"
	latin1, other := p.pooled(t, config)
	excluded("pool", other)

	set := func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET client_encoding = LATIN1")
		return err
	}
	for what, hook := range map[string]func(c *pgxpool.Config){
		"AfterConnect": func(c *pgxpool.Config) { c.AfterConnect = set },
		"BeforeConnect": func(c *pgxpool.Config) {
			c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
				c.RuntimeParams["client_encoding"] = "LATIN1"
				return nil
			}
		},
		"PrepareConn, later": func(c *pgxpool.Config) {
			var uses int
			c.MaxConns = 1
			c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
				if uses++; uses < 3 {
					return true, nil
				}
				return true, set(ctx, conn)
			}
		},
	} {
		hooked := p.pool.Config()
		hook(hooked)
		_, e := p.pooled(t, hooked)
		var err error
		for range 3 {
			if _, err = e.Acquire(t.Context(), drivertest.Request(name, time.Minute)); err != nil {
				break
			}
		}
		drivertest.WantIs(t, what, err, driver.ErrInvalid)
	}

	tx, err := latin1.Begin(t.Context())
	if err == nil {
		err = p.engine.Hold(t.Context(), tx, heldLease{req: held})
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", p.server.URL+"&client_encoding=LATIN1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stx.Rollback() }()
	var encoding string
	if err := tx.QueryRow(t.Context(), "SHOW client_encoding").Scan(&encoding); err != nil || !strings.EqualFold(encoding, "LATIN1") {
		t.Errorf("the transaction's encoding is %s, %v", encoding, err)
	}
	drivertest.Release(t, p.engine, held)
	drivertest.Held(t, p.engine, drivertest.Request(name, time.Minute)) // until the transaction ends
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	again := drivertest.Request(name, time.Minute)
	drivertest.Granted(t, p.engine, again)
	if err := p.engine.HoldSQL(t.Context(), stx, heldLease{req: again}); err != nil {
		t.Errorf("HoldSQL: %v", err)
	}
}

// pooled returns a pool with a configuration, and an engine on it.
func (p *program) pooled(t *testing.T, config *pgxpool.Config) (*pgxpool.Pool, *Engine) {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	e, err := New(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return pool, e
}
