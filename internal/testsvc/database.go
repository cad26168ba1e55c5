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
)

// A Database is a SQL server with its own data directory, or a pooler in front of one. It listens
// on a unix socket in that directory and, if it has an address, on a port of 127.0.0.1. Its methods
// must be called from the test's goroutine.
type Database struct {
	DSN  string // for the usual Go driver; the same over restarts
	Addr string // host:port, the same over restarts; "" for MariaDB
	URL  string // postgres://…, by Addr

	instance // its files are the data and the socket
	account  *syscall.Credential
	settings []string // those of the test
}

// newDatabase makes an empty directory that is removed at the end of the test. It belongs to an
// account other than root, because SQL servers refuse to run as root.
func newDatabase(t testing.TB, account string) *Database {
	t.Helper()
	// Not t.TempDir: the path of a socket can have only about 100 bytes, and the account must
	// have access to every directory above it.
	dir, err := os.MkdirTemp("", "holdfast-")
	must(t, err)
	db := &Database{instance: instance{t: t, dir: dir}}
	db.command = db.commandAsOwner
	t.Cleanup(func() {
		db.end()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the server's data: %v", err)
		}
	})
	if os.Geteuid() == 0 {
		db.account = credential(t, account, "nobody")
		must(t, os.Chown(dir, int(db.account.Uid), int(db.account.Gid)))
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

// commandAsOwner returns a command that runs in the directory, as its owner.
func (db *Database) commandAsOwner(program string, args ...string) *exec.Cmd {
	cmd := ownCommand(program, args...)
	cmd.Dir = db.dir
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

// startOnPort is instance.startOnPort, and sets the addresses.
func (db *Database) startOnPort(args func(port int) []string) {
	db.t.Helper()
	db.instance.startOnPort(func(port int) []string {
		db.Addr = fmt.Sprintf("127.0.0.1:%d", port)
		db.URL = "postgres://postgres@" + db.Addr + "/postgres?sslmode=disable"
		return args(port)
	})
}
