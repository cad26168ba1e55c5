//go:build unix

package testsvc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Postgres starts a PostgreSQL server with an empty database and returns when it accepts
// connections. A setting, such as "fsync=on", overrides the one that Postgres chooses. Without
// settings its data survives a crash of the server, but not of the machine. It is stopped, and its
// data removed, when the test and its subtests have ended.
func Postgres(t testing.TB, settings ...string) *Database {
	t.Helper()
	db := newDatabase(t, "postgres")
	db.initialize(needPostgres(t, "initdb"), "-D", db.data(), "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8")
	db.startPostgres(settings)
	return db
}

func needPostgres(t testing.TB, program string) string {
	t.Helper()
	return Need(t, program, "postgresql", "postgresql@17")
}

func (db *Database) data() string { return filepath.Join(db.dir, "data") }

// startPostgres starts a PostgreSQL server on its data.
func (db *Database) startPostgres(settings []string) {
	db.t.Helper()
	db.program = needPostgres(db.t, "postgres")
	db.settings = settings
	// A standby prints "ready to accept read-only connections".
	db.ready = "ready to accept"
	// The server ends its children and then itself, without a checkpoint.
	// After SIGKILL its children would keep the next one from starting.
	db.stop = syscall.SIGQUIT
	db.startOnPort(func(port int) []string {
		db.DSN = fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", db.dir, port)
		args := []string{
			"-D", db.data(), "-k", db.dir, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
			"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200",
			"-c", "lc_messages=C", "-c", "logging_collector=off", "-c", "log_destination=stderr",
		}
		for _, s := range settings {
			args = append(args, "-c", s)
		}
		return args
	})
}

// Standby starts a server that streams the changes of db, and returns when it does. It has the
// settings of db and the given ones. It is asynchronous until db has synchronous_standby_names;
// its name there is "standby".
func (db *Database) Standby(settings ...string) *Database {
	t := db.t
	t.Helper()
	s := newDatabase(t, "postgres")
	s.initialize(needPostgres(t, "pg_basebackup"), "-D", s.data(), "-d", db.DSN+" application_name=standby", "-R", "--no-sync", "-X", "stream", "-c", "fast")
	before := db.standbys()
	s.startPostgres(append(db.settings[:len(db.settings):len(db.settings)], settings...))
	await(t, "the standby streams", func() bool { return db.standbys() > before })
	return s
}

// standbys returns how many standbys stream.
func (db *Database) standbys() int {
	n, _ := strconv.Atoi(db.Query("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND application_name = 'standby'"))
	return n
}

// Detach points a standby at a primary that does not exist, and returns when primary has lost it.
// Later commits then do not reach the standby.
func (db *Database) Detach(primary *Database) {
	db.t.Helper()
	before := primary.standbys()
	db.Configure("primary_conninfo = 'host=/nowhere'")
	await(db.t, "the standby is detached", func() bool { return primary.standbys() < before })
}

// Attach lets a standby that was detached follow the primary again, and returns when it does.
func (db *Database) Attach(primary *Database) {
	db.t.Helper()
	before := primary.standbys()
	db.Configure("primary_conninfo = '" + primary.DSN + " application_name=standby'")
	await(db.t, "the standby streams", func() bool { return primary.standbys() > before })
}

// Promote turns a standby into a primary, and returns when it is one.
func (db *Database) Promote() {
	db.t.Helper()
	db.initialize(needPostgres(db.t, "pg_ctl"), "promote", "-D", db.data())
}

// Configure appends lines to the configuration of a PostgreSQL server, and makes it read them.
// The old configuration may remain in force for a moment.
func (db *Database) Configure(lines ...string) {
	db.t.Helper()
	file, err := os.OpenFile(filepath.Join(db.data(), "postgresql.auto.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = file.WriteString(strings.Join(lines, "\n") + "\n")
		_ = file.Close()
	}
	if err == nil {
		err = syscall.Kill(db.PID(), syscall.SIGHUP)
	}
	must(db.t, err)
}

// Query runs a statement by psql, and returns the rows as lines, with fields between
// vertical bars.
func (db *Database) Query(statement string) string {
	db.t.Helper()
	out, err := exec.Command(needPostgres(db.t, "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, db.DSN).CombinedOutput()
	if err != nil {
		db.t.Fatalf("%s: %v\n%s", statement, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}
