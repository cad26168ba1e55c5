package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// plain returns a connection to a database without an engine.
func plain(t testing.TB, path string) *conn {
	t.Helper()
	c, err := newConn(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func must(t testing.TB, c *conn, query string) {
	t.Helper()
	if err := c.execute(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// number returns the number that a query returns.
func number(t testing.TB, c *conn, query string) (n int64) {
	t.Helper()
	if _, err := c.one(query, nil, &n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestOpenCreates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ?#%&+;ü", "locks.db")
	check(t, os.Mkdir(filepath.Dir(path), 0o700))
	e := open(t, path)
	second := open(t, path)
	hears(t, e, second)
	if !e.Created() || second.Created() || e.Path() != path {
		t.Errorf("created: %t, and again %t, at %s", e.Created(), second.Created(), e.Path())
	}
	for file, want := range map[string]os.FileMode{"": 0o600, "-wal": 0o600, "-shm": 0o600, "-bell": 0o600, "-alarm": 0o600} {
		info, err := os.Stat(filepath.Clean(path + file))
		if err != nil {
			t.Error(err)
		} else if mode := info.Mode().Perm(); mode != want {
			t.Errorf("mode of %s is %o, want %o", info.Name(), mode, want)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 5 {
		t.Errorf("files: %v, %v; want 5", entries, err)
	}
	req := drivertest.Request("kept", time.Hour)
	token := drivertest.Granted(t, e, req)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if lock, err := open(t, path).Inspect(t.Context(), "kept"); err != nil || len(lock.Holders) != 1 || lock.LastToken != token {
		t.Errorf("after opening again: %+v, %v", lock, err)
	}
}

// TestOpenThroughLink checks that engines that open the database by a symbolic link use its real
// path.
func TestOpenThroughLink(t *testing.T) {
	dir := t.TempDir()
	direct := open(t, filepath.Join(dir, "real.db"))
	if err := os.Symlink("real.db", filepath.Join(dir, "link.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(dir, "here")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link.db", "here/real.db", "here/link.db"} {
		if e := open(t, filepath.Join(dir, name)); e.path != direct.path {
			t.Errorf("%s leads to %s, want %s", name, e.path, direct.path)
		}
	}
}

// TestOpenTogether checks that many engines can create the database at once.
func TestOpenTogether(t *testing.T) {
	for round := range 10 {
		path := filepath.Join(t.TempDir(), "locks.db")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				e, err := Open(t.Context(), path, nil)
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				if _, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute)); err != nil {
					t.Errorf("round %d: acquire: %v", round, err)
				}
				_ = e.Close()
			})
		}
		wg.Wait()
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("empty", "")
	file := write("file", "not a database, but a text that is long enough to have a header in it\n")
	write("odd", "SQLite format 3\x00"+strings.Repeat("\xff", 4096))
	must(t, plain(t, filepath.Join(dir, "foreign.db")), `CREATE TABLE t (x)`)
	must(t, plain(t, filepath.Join(dir, "app.db")), `PRAGMA application_id = 1`)
	long := dir + strings.Repeat("/"+strings.Repeat("x", 200), 3)
	check(t, os.MkdirAll(long, 0o700))
	for _, c := range []struct {
		path string
		want error
	}{
		{dir + "/empty", nil},
		{dir + "/mistyped/new/locks.db", driver.ErrInvalid},
		{dir, driver.ErrInvalid},
		{dir + "/", driver.ErrInvalid},
		{file, driver.ErrInvalid},
		{file + "/locks.db", driver.ErrInvalid},
		{file + "/dir/locks.db", driver.ErrInvalid},
		{dir + "/odd", driver.ErrInvalid},
		{dir + "/foreign.db", driver.ErrInvalid},
		{dir + "/app.db", driver.ErrInvalid},
		{"/dev/null", driver.ErrInvalid},
		{"", driver.ErrInvalid},
		{dir + "/a\x00b", driver.ErrInvalid},
		{dir + "/" + strings.Repeat("x", 300), driver.ErrInvalid},
		{long + "/locks.db", driver.ErrInvalid},
	} {
		e, err := Open(t.Context(), c.path, nil)
		wantIs(t, fmt.Sprintf("open %.100q", c.path), err, c.want)
		if err == nil {
			_ = e.Close()
		}
	}
	for _, name := range []string{"file", "odd", "foreign.db", "app.db"} {
		if _, err := os.Stat(filepath.Join(dir, name+"-bell")); err == nil {
			t.Errorf("a bell was put beside %s", name)
		}
	}
	if content, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(content), "not a database") {
		t.Errorf("the text is now %q, %v", content, err)
	}
}

// TestMistypedPathMakesNothing checks that Open does not create a missing directory. A store there
// would be separate, with every lock free.
func TestMistypedPathMakesNothing(t *testing.T) {
	dir := t.TempDir()
	check(t, os.Symlink("nowhere", filepath.Join(dir, "link")))
	for _, sub := range []string{"mistyped", "mistyped/deep", "link"} {
		path := filepath.Join(dir, sub, "locks.db")
		_, err := Open(t.Context(), path, nil)
		wantIs(t, "open in "+sub, err, driver.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), "there is no directory "+filepath.Dir(path)) {
			t.Errorf("%v does not say which directory is not there", err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("there is %v, %v; want the link only", entries, err)
	}
}

func TestOpenURL(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		url  string
		want error
	}{
		{"sqlite://" + dir + "/a%20b%3F.db", nil},
		{"sqlite:" + dir + "/c.db", driver.ErrInvalid},
		{"sqlite://" + dir + "/c.db?allow_network=true", nil},
		{"sqlite://" + dir + "/c.db?allow_network=maybe", driver.ErrInvalid},
		{"sqlite://" + dir + "/c.db?allow_network=true&allow_network=true", driver.ErrInvalid},
		{"sqlite://" + dir + "/c.db?mode=ro", driver.ErrInvalid},
		{"sqlite://" + dir + "/c.db?", driver.ErrInvalid},
		{"sqlite://" + dir + "/c.db#x", driver.ErrInvalid},
		{"sqlite://" + dir + "/%zz", driver.ErrInvalid},
		{"sqlite://localhost/c.db", driver.ErrInvalid},
		{"sqlite://c.db", driver.ErrInvalid},
		{"sqlite:c.db", driver.ErrInvalid},
		{"sqlite:///", driver.ErrInvalid},
		{"sqlite://", driver.ErrInvalid},
		{"file://" + dir + "/c.db", driver.ErrInvalid},
		{"", driver.ErrInvalid},
	} {
		e, err := OpenURL(t.Context(), c.url, nil)
		wantIs(t, fmt.Sprintf("open %q", c.url), err, c.want)
		if err == nil {
			_ = e.Close()
		}
	}
	if _, err := os.Stat(dir + "/a b?.db"); err != nil {
		t.Error(err)
	}
}

// TestUnknownSchema checks that Open refuses a database of another version of holdfast with advice,
// and does not change it.
func TestUnknownSchema(t *testing.T) {
	for _, number := range []int{0, schemaNumber + 1, -1} {
		path := filepath.Join(t.TempDir(), "locks.db")
		_ = open(t, path).Close()
		conn := plain(t, path)
		must(t, conn, fmt.Sprintf("PRAGMA user_version = %d; DROP TABLE lease", number))
		_ = conn.Close()
		before, err := os.ReadFile(path) // no engine has it open
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), path, nil)
		wantIs(t, fmt.Sprint("open with schema ", number), err, driver.ErrInvalid)
		want := fmt.Sprintf("its schema has number %d, and this program knows number 1 only: use the version of holdfast that made it, or name another path", number)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("open with schema %d: %v; want it to say: %s", number, err, want)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("the database with schema %d was changed (%v)", number, err)
		}
	}
}

// TestDamagedDatabase checks that Open refuses a damaged database.
func TestDamagedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	_ = open(t, path).Close()
	if files, err := filepath.Glob(path + "-*"); err != nil || len(files) != 2 {
		t.Errorf("files after Close: %v, %v; want the bell and the alarm only", files, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(content); i++ {
		content[i] = 0xff
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), path, nil)
	wantIs(t, "open", err, driver.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("the damage is not in %v", err)
	}
}

// TestDatabaseIsGone checks that an engine on a deleted or replaced file grants nothing, because
// other processes use the new file.
func TestDatabaseIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	check(t, open(t, path+"2").Close())
	e := open(t, path)
	req := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, req)
	for what, do := range map[string]func() error{
		"deleted":  func() error { return os.Rename(path, path+"3") },
		"replaced": func() error { return os.Rename(path+"2", path) },
	} {
		check(t, do())
		_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
		wantIs(t, "acquire from a "+what+" file", err, driver.ErrUnavailable)
		_, err = e.Inspect(t.Context(), "t")
		wantIs(t, "inspect of a "+what+" file", err, driver.ErrUnavailable)
		err = e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID})
		wantIs(t, "release in a "+what+" file", err, driver.ErrLost)
		if errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("the lost lease is %v", err)
		}
	}
}

// TestReplacedBeforeTheCommit checks that a lease is neither granted nor extended if a file is
// moved before the commit, because other processes do not see the commit.
func TestReplacedBeforeTheCommit(t *testing.T) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		e := openNew(t)
		req := drivertest.Request("t", time.Minute)
		drivertest.Granted(t, e, req)
		onCommit(t, e, func() int32 {
			check(t, os.Rename(e.path+suffix, e.path+"2"))
			return 0
		})
		wantIs(t, "extend", e.Extend(t.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: req.LeaseID, TTL: time.Hour}})[0], driver.ErrLost)
		check(t, os.Rename(e.path+"2", e.path+suffix))
		reply, err := e.Acquire(t.Context(), drivertest.Request("new", time.Minute))
		if err == nil || errors.Is(err, driver.ErrUnavailable) || reply.Outcome == driver.Granted {
			t.Errorf("acquire: %+v, %v; want an unknown outcome", reply, err)
		}
	}
}

// TestDeletedDatabaseStaysAway checks that an engine does not create a deleted database again, which
// every user of the host could read.
func TestDeletedDatabaseStaysAway(t *testing.T) {
	e := openNew(t)
	check(t, os.Remove(e.path))
	for range readers {
		if e.read(func(reader) error { return nil }) == nil {
			t.Error("a reader was opened although the file is deleted")
		}
	}
	if _, err := os.Lstat(e.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the deleted file: %v", err)
	}
}

// TestOtherJournal checks that Open turns the write-ahead log on again after a program has turned it off.
func TestOtherJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	e := open(t, path)
	req := drivertest.Request("t", time.Hour)
	drivertest.Granted(t, e, req)
	check(t, e.Close())
	must(t, plain(t, path), `PRAGMA journal_mode = DELETE`)
	drivertest.Held(t, open(t, path), drivertest.Request("t", time.Minute))
}

func TestOpenGivesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	_ = open(t, path).Close()
	must(t, plain(t, path), `BEGIN IMMEDIATE`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, path, nil)
	wantIs(t, "open of a busy database", err, driver.ErrUnavailable)
	wantIs(t, "open of a busy database", err, context.DeadlineExceeded)
	_, err = Open(ctx, filepath.Join(t.TempDir(), "new.db"), nil)
	wantIs(t, "open after the end", err, context.DeadlineExceeded)
}
