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

// tables are all tables that have rows of locks.
const tables = "lock lease place cancelled record onetime broken event listener"

// harness is the suite's way to engines on a server of its own.
func harness(t *testing.T, more string) enginetest.Harness {
	server := testsvc.Postgres(t)
	return harnessOn(server, urlOf(server, "postgres", "postgres", more))
}

// harnessOn is harness for engines of a URL. The schema is emptied for each requirement:
// to make it anew takes longer than most of them.
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

// TestConformanceBehindPooler runs it through a pooler in transaction mode, with a direct
// connection for notifications.
func TestConformanceBehindPooler(t *testing.T) {
	testsvc.Long(t)
	server := testsvc.Postgres(t)
	pooler := testsvc.PgBouncer(t, server)
	enginetest.Run(t, harnessOn(server, urlOf(pooler, "postgres", "postgres", "&listen="+url.QueryEscape(server.URL))))
}

// TestConformanceWithHistory runs what concerns history.
func TestConformanceWithHistory(t *testing.T) { enginetest.RunHistory(t, harness(t, "&history=1")) }

// TestConformanceWithoutFlags runs what concerns the flags of the engine, with
// each of them switched off in front of it.
func TestConformanceWithoutFlags(t *testing.T) { enginetest.RunForwarded(t, harness(t, "")) }
