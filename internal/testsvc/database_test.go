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

// TestDatabases starts each server, restarts it, and looks for what is left.
func TestDatabases(t *testing.T) {
	for name, c := range map[string]struct {
		start  func(testing.TB) *Database
		socket string
	}{
		"PostgreSQL": {Postgres, ".s.PGSQL.5432"},
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

func wantConnection(t *testing.T, socket string) {
	t.Helper()
	conn, err := net.DialTimeout("unix", socket, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
