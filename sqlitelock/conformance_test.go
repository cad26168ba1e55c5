package sqlitelock

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
)

func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine { return open(tb, filepath.Join(tb.TempDir(), "locks.db")) },
		Join: func(tb testing.TB, e driver.Engine) driver.Engine { return open(tb, e.(*Engine).path) },
		Unit: 300 * time.Millisecond,
	})
}
