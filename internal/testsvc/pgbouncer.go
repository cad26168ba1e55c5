//go:build unix

package testsvc

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
)

// PgBouncer starts PgBouncer in front of a PostgreSQL server, in transaction mode and otherwise
// with its default settings, and returns when it accepts connections. A setting, such as
// "pool_mode = session", overrides these.
func PgBouncer(t testing.TB, server *Database, settings ...string) *Database {
	t.Helper()
	db := newDatabase(t, "postgres")
	db.program = Need(t, "pgbouncer", "pgbouncer", "pgbouncer")
	db.ready = "process up"
	db.stop = syscall.SIGTERM // ends it at once
	host, port, _ := net.SplitHostPort(server.Addr)
	db.startOnPort(func(own int) []string {
		db.DSN = fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=disable", own)
		return []string{writeConf(t, db.dir, fmt.Sprintf(pgbouncerConf, host, port, own, strings.Join(settings, "\n")))}
	})
	return db
}

const pgbouncerConf = `
[databases]
* = host=%s port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
%s
`
