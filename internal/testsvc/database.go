//go:build unix

package testsvc

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A Database is a SQL server with a data directory of its own, or a pooler in front of
// one. It listens on a unix socket in that directory and, if it has an address, on a port
// of 127.0.0.1. Its methods must be called from the test's goroutine.
type Database struct {
	DSN  string // for the usual Go driver; the same over restarts
	Addr string // host:port, the same over restarts; "" for MariaDB
	URL  string // postgres://…, by Addr

	t        testing.TB
	dir      string // data and socket
	account  *syscall.Credential
	settings []string // the test's
	program  string
	args     []string
	ready    string         // a line of its log contains this when it is ready
	stop     syscall.Signal // ends the server as a crash would
	proc     *process
}

// newDatabase makes an empty directory that is removed at the end of the test. It belongs to an
// account other than root, because SQL servers refuse to run as root.
func newDatabase(t testing.TB, account string) *Database {
	t.Helper()
	// Not t.TempDir: the path of a socket can have only about 100 bytes, and the account must
	// have access to every directory above it.
	dir, err := os.MkdirTemp("", "holdfast-")
	if err != nil {
		t.Fatal(err)
	}
	db := &Database{t: t, dir: dir}
	t.Cleanup(func() {
		db.end()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the server's data: %v", err)
		}
	})
	if os.Geteuid() == 0 {
		db.account = credential(t, account, "nobody")
		if err := os.Chown(dir, int(db.account.Uid), int(db.account.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// credential returns the credential of the first of the accounts that exists.
func credential(t testing.TB, accounts ...string) *syscall.Credential {
	t.Helper()
	for _, name := range accounts {
		if u, err := user.Lookup(name); err == nil {
			uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
			gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
			if err1 == nil && err2 == nil {
				return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			}
		}
	}
	t.Fatalf("none of the accounts %v exists: run the tests as another user than root", accounts)
	return nil
}

// command returns a command that runs in the directory, as its owner.
func (db *Database) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = db.dir
	cmd.SysProcAttr = dieWithParent()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = db.account
	return cmd
}

// initialize runs the program that fills the data directory.
func (db *Database) initialize(program string, args ...string) {
	db.t.Helper()
	if out, err := db.command(program, args...).CombinedOutput(); err != nil {
		db.t.Fatalf("%s: %v\n%s", filepath.Base(program), err, out)
	}
}

func (db *Database) start() {
	db.t.Helper()
	if err := db.tryStart(); err != nil {
		db.t.Fatalf("%s does not start: %v", filepath.Base(db.program), err)
	}
}

func (db *Database) tryStart() (err error) {
	p, err := startCommand(db.command(db.program, db.args...), db.ready)
	if err == nil {
		db.proc = p
	}
	return err
}

// startOnPort starts the server on a free port, with the arguments that args returns.
func (db *Database) startOnPort(args func(port int) []string) {
	db.t.Helper()
	var err error
	for range startAttempts {
		port := freePort(db.t)
		db.Addr = fmt.Sprintf("127.0.0.1:%d", port)
		db.URL = "postgres://postgres@" + db.Addr + "/postgres?sslmode=disable"
		db.args = args(port)
		if err = db.tryStart(); err == nil {
			return
		}
	}
	db.t.Fatalf("%s does not start: %v", filepath.Base(db.program), err)
}

// Restart ends the server without a shutdown, as a crash would, and starts it again on the same
// data. Connections break; committed data is kept.
func (db *Database) Restart() {
	db.t.Helper()
	db.end()
	db.start()
}

// PID returns the process ID of the running server.
func (db *Database) PID() int { return db.proc.pid }

// Kill ends the server without a shutdown, as a crash would, and returns when it is gone.
func (db *Database) Kill() { db.end() }

// Start starts the server again on the same data, after Kill.
func (db *Database) Start() {
	db.t.Helper()
	db.start()
}

// end sends db.stop, and SIGKILL if the server does not end in time.
func (db *Database) end() {
	if db.proc == nil {
		return
	}
	select {
	case <-db.proc.done:
	default:
		_ = syscall.Kill(db.proc.pid, db.stop)
	}
	select {
	case <-db.proc.done:
	case <-time.After(startTimeout):
	}
	db.proc.kill()
	db.proc = nil
}
