//go:build unix

package testsvc

import (
	"path/filepath"
	"testing"
)

// MariaDB starts a MariaDB server with an empty database "test" and returns
// when it accepts connections. Its data survives a crash of the server, but not of the machine.
// It is stopped, and its data removed, when the test and its subtests have ended.
func MariaDB(t testing.TB) *Database {
	t.Helper()
	server := Need(t, "mariadbd", "mariadb-server", "mariadb")
	install := Need(t, "mariadb-install-db", "mariadb-server", "mariadb")
	db := newDatabase(t, "mysql")
	data, socket := filepath.Join(db.dir, "data"), filepath.Join(db.dir, "socket")
	db.initialize(install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal")

	db.DSN = "root@unix(" + socket + ")/test"
	db.program = server
	db.args = []string{
		"--no-defaults", "--datadir=" + data, "--socket=" + socket, "--skip-networking",
		"--pid-file=" + filepath.Join(db.dir, "pid"), "--max-connections=200",
		// Each commit writes to the operating system, which writes to the disk later.
		"--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync",
		"--innodb-buffer-pool-size=32M",
	}
	db.ready = "ready for connections"

	db.Start()
	return db
}
