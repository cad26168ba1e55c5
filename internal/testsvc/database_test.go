//go:build unix

package testsvc

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestDatabases checks that each server starts and restarts, and leaves no process and no data.
func TestDatabases(t *testing.T) {
	for name, c := range map[string]struct {
		start  func(testing.TB) *Database
		socket string
	}{
		"PostgreSQL": {func(t testing.TB) *Database { return Postgres(t) }, ".s.PGSQL.*[0-9]"},
		"MariaDB":    {MariaDB, "socket"},
	} {
		t.Run(name, func(t *testing.T) {
			var dir string
			var pids []int
			t.Run("server", func(t *testing.T) {
				db := c.start(t)
				dir = db.dir
				wantConnection(t, filepath.Join(dir, c.socket))
				pids = append(pids, db.PID())
				db.Restart()
				wantConnection(t, filepath.Join(dir, c.socket))
				pids = append(pids, db.PID())
			})
			for _, pid := range pids {
				if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
					t.Errorf("server %d is still there: %v", pid, err)
				}
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the data directory is still there: %v", err)
			}
		})
	}
}

func wantConnection(t *testing.T, pattern string) {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("sockets %v, %v; want one", found, err)
	}
	socket := found[0]
	conn, err := net.DialTimeout("unix", socket, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// TestStandby checks that a standby catches up with commits that it missed while it was detached.
// After the primary was killed it has all commits except those of a later detachment.
func TestStandby(t *testing.T) {
	primary := Postgres(t, "fsync=on")
	if got := primary.Query("SHOW fsync"); got != "on" {
		t.Errorf("fsync is %s", got)
	}
	standby := primary.Standby("hot_standby_feedback=on")
	if got := standby.Query("SELECT pg_is_in_recovery()"); got != "t" {
		t.Errorf("the standby is in recovery: %s", got)
	}
	standby.Detach(primary)
	primary.Query("CREATE TABLE kept (n int)")
	standby.Attach(primary)
	primary.Configure("synchronous_standby_names = 'standby'")
	await(t, "the primary waits for the standby", func() bool {
		return primary.Query("SELECT sync_state FROM pg_stat_replication") == "sync"
	})
	primary.Query("INSERT INTO kept VALUES (1)")
	standby.Detach(primary)
	primary.Query("SET synchronous_commit = local; INSERT INTO kept VALUES (2)")
	primary.Kill()
	if got := standby.Query("SHOW hot_standby_feedback"); got != "on" {
		t.Errorf("hot_standby_feedback is %s", got)
	}
	standby.Promote()
	standby.Restart()
	if got := standby.Query("SELECT string_agg(n::text, ',') FROM kept"); got != "1" {
		t.Errorf("the promoted standby has %q, want 1", got)
	}
}

// TestPgBouncer checks that clients of the pooler share one connection to the server.
func TestPgBouncer(t *testing.T) {
	server := Postgres(t)
	pooler := PgBouncer(t, server, "default_pool_size = 1")
	first := pooler.Query("SELECT pg_backend_pid()")
	if second := pooler.Query("SELECT pg_backend_pid()"); second != first {
		t.Errorf("two clients have the connections %s and %s", first, second)
	}
	if first == server.Query("SELECT pg_backend_pid()") {
		t.Error("the pooler's connection is that of a client without it")
	}
	pooler.Restart()
	pooler.Query("SELECT 1")
}
