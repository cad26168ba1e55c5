package sqlitelock

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
)

// harness opens engines for the conformance suite, each on a new file.
var harness = enginetest.Harness{
	Open: func(tb testing.TB) driver.Engine { return open(tb, filepath.Join(tb.TempDir(), "locks.db")) },
	Join: func(tb testing.TB, e driver.Engine) driver.Engine { return open(tb, e.(*Engine).path) },
	Unit: 300 * time.Millisecond,
}

func TestConformance(t *testing.T) { enginetest.Run(t, harness) }

// openRemembering opens the database at path with history.
func openRemembering(tb testing.TB, path string) *Engine {
	tb.Helper()
	e, err := Open(tb.Context(), path, &Options{History: true})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// TestConformanceWithHistory checks the requirements that need history.
func TestConformanceWithHistory(t *testing.T) {
	h := harness
	h.Open = func(tb testing.TB) driver.Engine { return openRemembering(tb, filepath.Join(tb.TempDir(), "locks.db")) }
	h.Join = func(tb testing.TB, e driver.Engine) driver.Engine { return openRemembering(tb, e.(*Engine).path) }
	enginetest.RunHistory(t, h)
}

// TestConformanceWithoutFlags checks wrappers of the engine, each of which switches one of its
// flags off.
func TestConformanceWithoutFlags(t *testing.T) { enginetest.RunForwarded(t, harness) }
