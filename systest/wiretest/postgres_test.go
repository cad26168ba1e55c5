package wiretest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/pglock"
)

// TestConformanceOfPostgres runs the conformance suite on PostgreSQL, through a server per engine.
func TestConformanceOfPostgres(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	database := testsvc.Postgres(t)
	var empty strings.Builder
	for table := range strings.FieldsSeq("lock lease place cancelled record onetime broken event listener") {
		empty.WriteString("DELETE FROM holdfast." + table + ";")
	}
	open := func(tb testing.TB) driver.Engine {
		return over(tb, serve(tb, drivertest.Open(tb, pglock.Open, database.URL)).URL)
	}
	var made sync.Once
	enginetest.Run(t, enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			made.Do(func() { open(tb) })
			database.Query(empty.String())
			return open(tb)
		},
		Join: func(tb testing.TB, _ driver.Engine) driver.Engine { return open(tb) },
		Unit: 400 * time.Millisecond,
	})
}
