package pglock

import (
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// unit is the suite's unit of time.
const unit = 300 * time.Millisecond

// tables are all tables with rows of locks.
const tables = "lock lease place cancelled record onetime broken event listener"

// harness opens engines on a server of its own for the suite.
func harness(t *testing.T, more string) enginetest.Harness {
	server := testsvc.Postgres(t)
	return harnessOn(server, urlOf(server, "postgres", "postgres", more))
}

// harnessOn does the same for a URL. It empties the schema before each requirement, because a new
// schema takes longer than most of them.
func harnessOn(server *testsvc.Database, rawURL string) enginetest.Harness {
	var empty strings.Builder
	for table := range strings.FieldsSeq(tables) {
		empty.WriteString("DELETE FROM holdfast." + table + ";")
	}
	var made sync.Once
	return enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			made.Do(func() { open(tb, rawURL) })
			execute(tb, server, "postgres", empty.String())
			return open(tb, rawURL)
		},
		Join: func(tb testing.TB, _ driver.Engine) driver.Engine { return open(tb, rawURL) },
		Unit: unit,
	}
}

func TestConformance(t *testing.T) { enginetest.Run(t, harness(t, "")) }

// TestConformanceBehindPooler runs the suite through a pooler in transaction mode, with a direct
// connection for notifications.
func TestConformanceBehindPooler(t *testing.T) {
	testsvc.Long(t)
	server := testsvc.Postgres(t)
	pooler := testsvc.PgBouncer(t, server)
	enginetest.Run(t, harnessOn(server, urlOf(pooler, "postgres", "postgres", "&listen="+url.QueryEscape(server.URL))))
}

// TestConformanceWithHistory runs the requirements on history.
func TestConformanceWithHistory(t *testing.T) { enginetest.RunHistory(t, harness(t, "&history=1")) }

// TestConformanceWithoutFlags runs the requirements on the engine's flags, each of them switched
// off by a wrapper.
func TestConformanceWithoutFlags(t *testing.T) { enginetest.RunForwarded(t, harness(t, "")) }
