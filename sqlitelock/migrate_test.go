package sqlitelock

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// Lease IDs in a database of version 1.
const (
	liveID      = driver.LeaseID("0123456789abcdef0123456789abcdef")
	keptID      = driver.LeaseID("11111111111111111111111111111111")
	cancelledID = driver.LeaseID("22222222222222222222222222222222")
)

// version1 makes a database with the schema of version 1 on a host whose boot
// clock shows an hour.
func version1(t testing.TB, h *host) (path string) {
	t.Helper()
	schema, err := os.ReadFile("testdata/schema_1.sql")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "locks.db")
	conn := plain(t, path)
	must(t, conn, `PRAGMA journal_mode = WAL`)
	must(t, conn, string(schema)+`;
		PRAGMA application_id = 0x686f6c64; PRAGMA user_version = 1`)
	expiry, far := int64(2*time.Hour), h.wall.Add(30*time.Minute).UnixMicro()
	must(t, conn, fmt.Sprintf(`
		INSERT INTO lease VALUES ('live', '%[1]s', %[2]d, '{"host":"web-3"}', 'boot', %[3]d, 0);
		INSERT INTO lease VALUES ('kept', '%[4]s', 5, '{}', 'boot', %[3]d, 1);
		INSERT INTO lease VALUES ('over', '%[4]s', 6, '{}', 'boot', 5, 0);
		INSERT INTO lease VALUES ('old', '%[4]s', 7, '{}', 'another boot', %[3]d, 0);
		INSERT INTO token VALUES ('live', %[2]d), ('kept', 5), ('over', 6), ('old', 7), ('used', %[2]d);
		INSERT INTO cancelled VALUES ('%[5]s', 'boot', %[3]d);`,
		liveID, far, expiry, keptID, cancelledID))
	return path
}

// schemaOf returns what the tables and indexes of a database are made of, in
// the order of their names, without comments.
func schemaOf(t testing.TB, path string) (texts []string) {
	t.Helper()
	rows, err := plain(t, path).QueryContext(t.Context(), `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		text = regexp.MustCompile(`--.*`).ReplaceAllString(text, "")
		texts = append(texts, strings.Join(strings.Fields(text), " "))
	}
	return texts
}

// TestMigration: a database of version 1 becomes one of this version with all
// that is in it.
func TestMigration(t *testing.T) {
	h := newHost("boot")
	path := version1(t, h)
	e := h.open(t, path)
	if got, want := schemaOf(t, path), schemaOf(t, openNew(t).path); !slices.Equal(got, want) {
		t.Errorf("migrated:\n%s\nwant as new:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := number(t, plain(t, path), `SELECT user_version FROM pragma_user_version`); n != schemaVersion {
		t.Errorf("version %d, want %d", n, schemaVersion)
	}

	far := uint64(h.wall.Add(30 * time.Minute).UnixMicro())
	lock, err := e.Inspect(t.Context(), "live")
	want := driver.Holding{LeaseID: liveID, Token: far, Holder: driver.Holder{Host: "web-3"}, ExpiresIn: time.Hour}
	if err != nil || len(lock.Holders) != 1 || fmt.Sprint(lock.Holders[0]) != fmt.Sprint(want) || lock.Mode != driver.Exclusive || lock.LastToken != far {
		t.Errorf("inspect: %+v, %v; want %+v", lock, err, want)
	}
	for _, mode := range []driver.Mode{driver.Exclusive, driver.Shared} {
		drivertest.Held(t, e, of(drivertest.Request("live", time.Minute), mode, 0, 0))
		drivertest.Held(t, e, of(drivertest.Request("kept", time.Minute), mode, 0, 0))
	}
	if lock, err := e.Inspect(t.Context(), "kept"); err != nil || len(lock.Holders) != 1 || !lock.Holders[0].Released {
		t.Errorf("inspect: %+v, %v; want it released", lock, err)
	}
	waiter := inQueue(drivertest.Request("live", time.Minute), time.Minute)
	placed(t, e, waiter, 1)
	extend(t, e, driver.AcquireRequest{Name: "live", LeaseID: liveID})
	drivertest.Release(t, e, driver.AcquireRequest{Name: "live", LeaseID: liveID})
	if token := drivertest.Granted(t, e, waiter); token <= far {
		t.Errorf("token %d after the migration, want more than %d", token, far)
	}
	if token := drivertest.Granted(t, e, drivertest.Request("used", time.Minute)); token <= far {
		t.Errorf("token %d after the migration, want more than %d", token, far)
	}
	drivertest.Granted(t, e, drivertest.Request("over", time.Minute))
	drivertest.Granted(t, e, drivertest.Request("old", time.Minute))
	cancelled := drivertest.Request("free", time.Minute)
	cancelled.LeaseID = cancelledID
	if reply, err := e.Acquire(t.Context(), cancelled); err != nil || reply.Outcome != driver.Cancelled {
		t.Errorf("acquire: %+v, %v; want it cancelled", reply, err)
	}
}

// TestMigrateTogether: one of many engines migrates, and a migration that
// fails leaves the database as it was.
func TestMigrateTogether(t *testing.T) {
	h := newHost("boot")
	path := version1(t, h)
	conn := plain(t, path)
	must(t, conn, `CREATE TABLE record (x)`) // in the way
	_, err := newSetting(h.clock()).open(t.Context(), path)
	wantIs(t, "open", err, driver.ErrUnavailable)
	if v, n := number(t, conn, `SELECT user_version FROM pragma_user_version`), number(t, conn, `SELECT count(*) FROM lease`); v != 1 || n != 4 {
		t.Errorf("version %d with %d leases after a failed migration, want 1 with 4", v, n)
	}
	must(t, conn, `DROP TABLE record`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			e, err := newSetting(h.clock()).open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if lock, err := e.Inspect(t.Context(), "live"); err != nil || len(lock.Holders) != 1 {
				t.Errorf("inspect: %+v, %v; want a holder", lock, err)
			}
			_ = e.Close()
		})
	}
	wg.Wait()
}

// TestOldProgramBeside: a program of version 1 that had the file open when it
// was migrated can keep and end its leases, and grants nothing.
func TestOldProgramBeside(t *testing.T) {
	h := newHost("boot")
	path := version1(t, h)
	conn := plain(t, path)
	prepare := func(query string) func(args ...any) (int64, error) {
		stmt, err := conn.PrepareContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stmt.Close() })
		return func(args ...any) (int64, error) {
			result, err := stmt.ExecContext(t.Context(), args...)
			if err != nil {
				return 0, err
			}
			return result.RowsAffected()
		}
	}
	// As version 1 wrote them.
	lengthen := prepare(`UPDATE lease SET expiry = max(expiry, ?5)
		WHERE name = ?1 AND boot_id = ?2 AND lease_id = ?3 AND expiry > ?4 AND released = 0`)
	end := prepare(`DELETE FROM lease
		WHERE name = ?1 AND boot_id = ?2 AND lease_id = ?3 AND expiry > ?4 AND released = 0`)
	put := prepare(`INSERT OR REPLACE INTO lease (name, lease_id, token, holder, boot_id, expiry, released)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0)`)
	e := h.open(t, path)
	if n, err := lengthen("live", "boot", liveID, int64(time.Hour), int64(3*time.Hour)); err != nil || n != 1 {
		t.Errorf("extend by the old program: %d rows, %v", n, err)
	}
	if left := drivertest.Held(t, e, drivertest.Request("live", time.Minute)).ExpiresIn; left != 2*time.Hour {
		t.Errorf("after its extend %s are left, want 2h", left)
	}
	if n, err := end("live", "boot", liveID, int64(time.Hour)); err != nil || n != 1 {
		t.Errorf("release by the old program: %d rows, %v", n, err)
	}
	if _, err := put("live", driver.NewLeaseID(), 1, "{}", "boot", int64(3*time.Hour)); err == nil {
		t.Error("the old program granted a lease")
	}
	drivertest.Granted(t, e, drivertest.Request("live", time.Minute))
}
