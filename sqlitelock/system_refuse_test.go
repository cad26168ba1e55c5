//go:build unix

package sqlitelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// alter runs SQL in a system store, as a member can without holdfast.
func alter(t testing.TB, path, query string) {
	t.Helper()
	e := &engine{path: path, system: true}
	c, err := e.newConn(path)
	check(t, err)
	must(t, c, query)
	check(t, c.Close())
}

// TestSystemStoreIsRefused checks that Open refuses a store that differs from what root has made,
// and does not change it.
func TestSystemStoreIsRefused(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	dir := filepath.Dir
	cases := map[string]func(t *testing.T, path string) error{
		"a trigger": func(t *testing.T, path string) error {
			alter(t, path, `CREATE TRIGGER trap AFTER INSERT ON lease BEGIN DELETE FROM lease; END`)
			return nil
		},
		"a temporary name for a trigger of ours": func(t *testing.T, path string) error {
			alter(t, path, `DROP TRIGGER lease_takes; CREATE TRIGGER lease_takes AFTER INSERT ON lease BEGIN DELETE FROM token; END`)
			return nil
		},
		"a missing trigger": func(t *testing.T, path string) error { alter(t, path, `DROP TRIGGER lease_gives`); return nil },
		"a view": func(t *testing.T, path string) error {
			alter(t, path, `ALTER TABLE token RENAME TO hidden; CREATE VIEW token AS SELECT * FROM hidden`)
			return nil
		},
		"a table": func(t *testing.T, path string) error { alter(t, path, `CREATE TABLE more (x)`); return nil },
		"an index": func(t *testing.T, path string) error {
			alter(t, path, `CREATE INDEX more ON lease (holder)`)
			return nil
		},
		"a column": func(t *testing.T, path string) error {
			alter(t, path, `ALTER TABLE token ADD COLUMN more INTEGER DEFAULT 1`)
			return nil
		},
		"another number of the schema": func(t *testing.T, path string) error { alter(t, path, `PRAGMA user_version = 2`); return nil },
		"another program's":            func(t *testing.T, path string) error { alter(t, path, `PRAGMA application_id = 1`); return nil },
		"an empty database":            func(_ *testing.T, path string) error { return os.Truncate(path, 0) },
		"another journal mode": func(t *testing.T, path string) error {
			c := plain(t, path)
			must(t, c, `PRAGMA journal_mode = DELETE`)
			check(t, c.Close())
			_, err := MakeSystem(t.Context(), path, theGroup) // makes the files again
			wantIs(t, "making it again", err, driver.ErrInvalid)
			return nil
		},
		"the directory's owner": func(_ *testing.T, path string) error { return os.Chown(dir(path), firstMember, theGroup) },
		"the directory above": func(_ *testing.T, path string) error {
			return os.Chmod(dir(dir(path)), 0o777)
		},
		"the owner of the directory above": func(_ *testing.T, path string) error {
			return os.Chown(dir(dir(path)), firstMember, -1)
		},
		"another name":             func(_ *testing.T, path string) error { return os.Link(path, path+"2") },
		"another name for the log": func(_ *testing.T, path string) error { return os.Link(path+onefile.LogSuffix, dir(path)+"2") },
		"a directory in the bell's place": func(t *testing.T, path string) error {
			check(t, os.Remove(path+onefile.BellSuffix))
			return os.Mkdir(path+onefile.BellSuffix, 0o700)
		},
	}
	for name, mode := range map[string]fs.FileMode{
		"a directory without the sticky bit": 0o770 | fs.ModeSetgid, "a directory without the group's bit": 0o770 | fs.ModeSticky,
		"a directory that others may read": 0o775 | fs.ModeSetgid | fs.ModeSticky, "a directory of root's alone": 0o700,
	} {
		cases[name] = func(_ *testing.T, path string) error { return os.Chmod(dir(path), mode) }
	}
	for _, f := range onefile.SystemFiles() {
		file := "locks.db" + f.Suffix
		cases[file+" that others may read"] = func(_ *testing.T, path string) error { return os.Chmod(path+f.Suffix, f.Mode|0o004) }
		cases[file+" of a member"] = func(_ *testing.T, path string) error { return os.Chown(path+f.Suffix, firstMember, theGroup) }
		cases[file+" of another group"] = func(_ *testing.T, path string) error { return os.Chown(path+f.Suffix, 0, firstMember) }
		cases[file+" is missing"] = func(_ *testing.T, path string) error { return os.Remove(path + f.Suffix) }
		cases[file+" is a link"] = func(t *testing.T, path string) error {
			target := filepath.Join(publicDir(t), "target")
			check(t, os.Rename(path+f.Suffix, target))
			return os.Symlink(target, path+f.Suffix)
		}
	}
	for what, do := range cases {
		t.Run(what, func(t *testing.T) {
			path := makeSystem(t)
			check(t, open(t, path).Close())
			check(t, do(t, path))
			before := inventory(t, path)
			_, err := Open(t.Context(), path, &Options{System: true})
			wantIs(t, "open", err, driver.ErrInvalid)
			if onefile.HasSystemForm(dir(path)) {
				_, err := Open(t.Context(), path, nil)
				wantIs(t, "open without the option", err, driver.ErrInvalid)
			}
			if err == nil || !strings.Contains(err.Error(), "system store") && !strings.Contains(err.Error(), "database") {
				t.Errorf("%v does not say of what it speaks", err)
			}
			if after := inventory(t, path); after != before {
				t.Errorf("there is now\n%s\nthere was\n%s", after, before)
			}
			if made, err := MakeSystem(t.Context(), path, theGroup); made {
				t.Errorf("it was made again over what is there: %v", err)
			}
		})
	}
}

// TestNoOtherStoreIsTheSystems checks that Options.System opens no other store.
func TestNoOtherStoreIsTheSystems(t *testing.T) {
	e := openNew(t)
	check(t, e.Close())
	_, err := Open(t.Context(), e.path, &Options{System: true})
	wantIs(t, "open of a user's store", err, driver.ErrInvalid)
	missing := filepath.Join(t.TempDir(), "locks.db")
	_, err = Open(t.Context(), missing, &Options{System: true})
	wantIs(t, "open of no store", err, driver.ErrInvalid)
	if onefile.Exists(missing) {
		t.Error("one was made")
	}
}

// TestSchemaAlteredWhileOpen checks that a trigger or view that a member adds does not run in
// processes that have the store open already.
func TestSchemaAlteredWhileOpen(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	path := makeSystem(t)
	e := open(t, path)
	held := drivertest.Request("held", time.Hour)
	drivertest.Granted(t, e, held)
	for range readers { // each opens a connection, and checks the schema for it
		_, err := e.Inspect(t.Context(), "held")
		check(t, err)
	}
	refuses := func(what, sql string) {
		t.Helper()
		alter(t, path, sql)
		_, err := e.Acquire(t.Context(), drivertest.Request("new", time.Hour))
		wantIs(t, "acquire under "+what, err, driver.ErrUnavailable)
		_, err = e.Inspect(t.Context(), "held")
		wantIs(t, "inspect under "+what, err, driver.ErrUnavailable)
		if !errors.Is(err, errAltered) {
			t.Errorf("%v does not say what is wrong", err)
		}
	}
	refuses("a trigger", `CREATE TRIGGER trap AFTER INSERT ON lease BEGIN DELETE FROM lease WHERE name = 'held'; END`)
	alter(t, path, `DROP TRIGGER trap`)
	drivertest.Held(t, e, drivertest.Request("held", time.Hour))
	drivertest.Cycle(t, e, "works again")
	refuses("a view", `ALTER TABLE token RENAME TO hidden; CREATE VIEW token AS SELECT * FROM hidden`)
}

// TestSchemaAlteredInSecret checks that a member cannot hide a change of the schema by setting
// SQLite's count of such changes back.
func TestSchemaAlteredInSecret(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	path := makeSystem(t)
	e := open(t, path)
	before := number(t, plain(t, path), versionSQL)
	secretly := func(change string) {
		t.Helper()
		alter(t, path, fmt.Sprintf("BEGIN; %s; PRAGMA schema_version = %d; COMMIT", change, before))
	}
	alter(t, path, `CREATE VIEW trap AS SELECT 1`)
	for _, version := range []int64{before + 1, before} {
		alter(t, path, fmt.Sprintf("PRAGMA schema_version = %d", version))
		err := e.transact(t.Context(), func(*tx) error { return nil })
		if !errors.Is(err, errAltered) {
			t.Errorf("a write under version %d: error %v, want %v", version-before, err, errAltered)
		}
	}
	for range readers { // each opens a connection
		_, err := e.Inspect(t.Context(), "t")
		if !errors.Is(err, errAltered) {
			t.Errorf("inspect: error %v, want %v", err, errAltered)
		}
	}
	secretly(`DROP VIEW trap`)
	for range readers {
		err := e.read(func(r reader) error { return r.sql.run(`SELECT * FROM trap`) })
		if err == nil || errors.Is(err, errAltered) {
			t.Errorf("a view that is gone: error %v", err)
		}
	}
	drivertest.Cycle(t, e, "t")
}
