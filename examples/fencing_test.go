package examples

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/sqlfence"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
	"github.com/holdfast-locks/holdfast/redislock"
)

// page returns the text of docs/fencing.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/fencing.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// onPage returns code, which the page must show, apart from white space.
func onPage(t *testing.T, code string) string {
	t.Helper()
	space := regexp.MustCompile(`\s+`)
	if !strings.Contains(space.ReplaceAllString(page(t), " "), space.ReplaceAllString(code, " ")) {
		t.Errorf("docs/fencing.md does not show %s", code)
	}
	return code
}

// TestPageShowsTheTables checks that the page shows the tables that Migrate makes.
func TestPageShowsTheTables(t *testing.T) {
	for _, d := range []sqlfence.Dialect{sqlfence.PostgreSQL, sqlfence.MySQL, sqlfence.SQLite} {
		onPage(t, strings.Replace(d.DDL(), "IF NOT EXISTS ", "", 1))
	}
}

// databases returns an empty database of each dialect except MySQL, whose statements differ only in
// their placeholders.
func databases(t *testing.T) map[sqlfence.Dialect]*sql.DB {
	t.Helper()
	open := func(driver, dsn string) *sql.DB {
		db, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	return map[sqlfence.Dialect]*sql.DB{
		sqlfence.PostgreSQL: open("pgx", testsvc.Postgres(t).DSN),
		sqlfence.SQLite:     open("sqlite", "file:"+filepath.Join(t.TempDir(), "db")+"?_txlock=immediate"),
	}
}

// inTx runs do in a transaction, which it commits if do returns nil.
func inTx(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// TestPageColumnForm checks the column form of the page: an old holder is refused between its
// advance and its write, and a missing row is not reported as stale.
func TestPageColumnForm(t *testing.T) {
	advance := onPage(t, `UPDATE seats SET fence = $1 WHERE id = $2 AND fence <= $1`)
	write := onPage(t, `UPDATE seats SET fence = $1, customer = $3 WHERE id = $2 AND fence <= $1`)
	query := onPage(t, `SELECT fence FROM seats WHERE id = $1`)
	for d, db := range databases(t) {
		for _, statement := range []string{
			`CREATE TABLE seats (id text PRIMARY KEY, customer text)`,
			`INSERT INTO seats (id) VALUES ('12A')`,
			onPage(t, `ALTER TABLE seats ADD COLUMN fence bigint NOT NULL DEFAULT 0`),
		} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		change := func(statement, id string, c fence.Claim, more ...any) error {
			return inTx(t.Context(), db, func(tx *sql.Tx) error {
				result, err := tx.ExecContext(t.Context(), statement, append([]any{c.Token(), id}, more...)...)
				if err != nil {
					return err
				}
				row := sqlfence.Row{Resource: "seat/" + id, Query: query, Args: []any{id}}
				return d.CheckRow(t.Context(), tx, result, row, c)
			})
		}
		old := fence.NewClaim(1795247753125910, lockinfo.NewLeaseID())
		late := fence.NewClaim(1795247753125911, lockinfo.NewLeaseID())
		for _, step := range []struct {
			err, want error
		}{
			{change(advance, "12A", old), nil},
			{change(advance, "12A", late), nil},
			{change(write, "12A", old, "Ada"), fence.ErrStale},
			{change(write, "12A", late, "Alan"), nil},
			{change(write, "12A", late, "Alan"), nil},
			{change(advance, "12A", old), fence.ErrStale},
			{change(advance, "99Z", old), sqlfence.ErrNoRow},
		} {
			if !errors.Is(step.err, step.want) {
				t.Errorf("dialect %d: %v, want %v", d, step.err, step.want)
			}
		}
		var customer string
		if err := db.QueryRowContext(t.Context(), `SELECT customer FROM seats`).Scan(&customer); err != nil || customer != "Alan" {
			t.Errorf("dialect %d: the seat is %q's (%v)", d, customer, err)
		}
	}
}

// TestPageRedis checks the statements for Redis on the page, with real leases.
func TestPageRedis(t *testing.T) {
	script := onPage(t, `
	if redis.call('HEXISTS', KEYS[1], 'customer') == 1 then return 0 end
	return redis.call('HSET', KEYS[1], 'customer', ARGV[1])`)
	engine, err := redislock.Open(t.Context(), testsvc.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	client, err := holdfast.New(mem.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	guard, err := redisfence.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	sell := redisfence.NewScript(script)
	buy := func(lease *holdfast.Lease, customer string) (any, error) {
		return guard.Run(t.Context(), sell, "stock:12A", lease, nil, []string{customer})
	}
	lease := func() *holdfast.Lease {
		l, err := client.Acquire(t.Context(), "stock/12A", nil)
		if err != nil {
			t.Fatal(err)
		}
		l.Release(t.Context())
		return l
	}
	first, second := lease(), lease()
	if n, err := buy(first, "Ada"); n != int64(1) || err != nil {
		t.Errorf("the first sale: %v, %v", n, err)
	}
	if n, err := buy(second, "Alan"); n != int64(0) || err != nil {
		t.Errorf("the second: %v, %v; want none", n, err)
	}
	if _, err := buy(first, "Ada"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the first holder again: %v, want ErrStale", err)
	}
}
