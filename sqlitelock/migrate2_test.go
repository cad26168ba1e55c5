package sqlitelock

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// version2 makes a database with the schema of version 2 on a host whose boot
// clock shows an hour: a semaphore of 3 of which 2 permits are taken and one
// was, and a name with a waiter.
func version2(t testing.TB) (path string) {
	t.Helper()
	schema, err := os.ReadFile("testdata/schema_2.sql")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "locks.db")
	conn := plain(t, path)
	must(t, conn, `PRAGMA journal_mode = WAL`)
	must(t, conn, string(schema)+`;
		PRAGMA application_id = 0x686f6c64; PRAGMA user_version = 2`)
	must(t, conn, fmt.Sprintf(`
		INSERT INTO lease VALUES ('seats', '%[1]s', 5, 2, 3, 2, '{}', 'boot', %[2]d, 0);
		INSERT INTO lease VALUES ('seats', '%[3]s', 4, 2, 3, 1, '{}', 'boot', 5, 0);
		INSERT INTO lease VALUES ('queue', '%[3]s', 6, 0, 0, 0, '{}', 'boot', %[2]d, 0);
		INSERT INTO place VALUES (1, 'queue', '%[1]s', 0, 0, 0, 0, 0, '{}', 'boot', 5, %[2]d, 0);
		INSERT INTO token VALUES ('seats', 5), ('queue', 6);`,
		liveID, int64(2*time.Hour), keptID))
	return path
}

// TestMigrationFrom2: a database of version 2 becomes one of this version, and
// its permits are counted, those of leases that are over as well until they
// are purged. A program of version 2 that had it open goes on.
func TestMigrationFrom2(t *testing.T) {
	h := newHost("boot")
	path := version2(t)
	old := plain(t, path)
	number(t, old, leases)
	e := h.open(t, path)
	if got, want := schemaOf(t, path), schemaOf(t, openNew(t).path); !slices.Equal(got, want) {
		t.Errorf("migrated:\n%s\nwant as new:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	seat := func(permits int) driver.AcquireRequest {
		return of(drivertest.Request("seats", time.Minute), driver.Semaphore, 3, permits)
	}
	drivertest.Held(t, e, seat(2))
	drivertest.Granted(t, e, seat(1))
	drivertest.Held(t, e, seat(1))
	must(t, old, fmt.Sprintf(`DELETE FROM lease WHERE lease_id = '%s'`, liveID)) // as the old program releases
	drivertest.Granted(t, e, seat(2))
	drivertest.Held(t, e, seat(1))

	drivertest.Release(t, e, driver.AcquireRequest{Name: "queue", LeaseID: keptID})
	drivertest.Granted(t, e, driver.AcquireRequest{Name: "queue", LeaseID: liveID, TTL: time.Minute})
}
