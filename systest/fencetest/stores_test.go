package fencetest

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/holdfast-locks/holdfast/fence/sqlfence"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A store is one real database.
type store struct {
	dialect sqlfence.Dialect
	db      *sql.DB
	dsn     string
	driver  string
	restart func() // crashes and restarts the server; nil if there is none
}

// workers is how many connections the tests may use at once.
const workers = 64

// The tests that every database runs, one after the other on one server. Each test has its own
// resources.
var suite = []struct {
	name string
	run  func(*testing.T, *store)
}{
	{"Rule", testRule},
	{"BadClaims", testBadClaims},
	{"Names", testNames},
	{"GivesUp", testGivesUp},
	{"Migrate", testMigrate},
	{"Sequence", testSequence},
	{"EqualTokens", testEqualTokens},
	{"Rollback", testRollback},
	{"Savepoints", testSavepoints},
	{"Column", testColumn},
	{"Cost", testCost},
	{"LostUpdates", testLostUpdates},
	{"Restart", testRestart}, // last, because it breaks the connections of the pool
}

func TestPostgreSQL(t *testing.T) {
	server := testsvc.Postgres(t)
	runSuite(t, &store{dialect: sqlfence.PostgreSQL, driver: "pgx", dsn: server.DSN, restart: server.Restart})
}

func TestMariaDB(t *testing.T) {
	server := testsvc.MariaDB(t)
	runSuite(t, &store{dialect: sqlfence.MySQL, driver: "mysql", dsn: server.DSN, restart: server.Restart})
}

func TestSQLite(t *testing.T) {
	dsn := "file:" + filepath.Join(t.TempDir(), "marks.db") + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"
	runSuite(t, &store{dialect: sqlfence.SQLite, driver: "sqlite", dsn: dsn})
}

func runSuite(t *testing.T, s *store) {
	s.db = s.open(t, "")
	if err := s.dialect.Migrate(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

// open opens the database once more; params are added to the DSN.
func (s *store) open(t testing.TB, params string) *sql.DB {
	t.Helper()
	db, err := sql.Open(s.driver, s.dsn+params)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(workers)
	db.SetMaxIdleConns(workers)
	t.Cleanup(func() { db.Close() })
	return db
}

var placeholder = regexp.MustCompile(`\$\d+`)

// sql returns a query in the store's dialect. MySQL has no numbers in its placeholders, so
// placeholders must be in order.
func (s *store) sql(query string) string {
	if s.dialect == sqlfence.MySQL {
		return placeholder.ReplaceAllString(query, "?")
	}
	return query
}

func (s *store) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := s.db.ExecContext(t.Context(), s.sql(query), args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// mark returns the mark of a resource in the table.
func (s *store) mark(t testing.TB, resource string) (token uint64, id string) {
	t.Helper()
	row := s.db.QueryRowContext(t.Context(), s.sql(`SELECT token, lease_id FROM holdfast_fence WHERE resource = $1`), resource)
	if err := row.Scan(&token, &id); err != nil && err != sql.ErrNoRows {
		t.Fatal(err)
	}
	return token, id
}
