//go:build unix

package testsvc

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Postgres starts a PostgreSQL server with an empty database and returns when
// it accepts connections. Nothing of it survives a crash of the machine; a
// crash of the server does no harm. It is stopped, and its data removed, when
// the test and its subtests have ended.
func Postgres(t testing.TB) *Database {
	t.Helper()
	server := Need(t, "postgres", "postgresql", "postgresql@17")
	initdb := Need(t, "initdb", "postgresql", "postgresql@17")
	db := newDatabase(t, "postgres")
	data := filepath.Join(db.dir, "data")
	db.initialize(initdb, "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8")

	db.DSN = "host=" + db.dir + " user=postgres dbname=postgres"
	db.program = server
	db.args = []string{
		"-D", data, "-k", db.dir, "-c", "listen_addresses=",
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200",
		"-c", "lc_messages=C", "-c", "logging_collector=off", "-c", "log_destination=stderr",
	}
	db.ready = "ready to accept connections"
	// The server ends its children and then itself, without a checkpoint.
	// After SIGKILL its children would keep the next one from starting.
	db.stop = syscall.SIGQUIT
	db.start()
	return db
}
