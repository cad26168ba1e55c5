package memlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/memlock"
)

// harness opens engines in memory for the suite.
var harness = enginetest.Harness{
	Open:   func(tb testing.TB) driver.Engine { return open(tb, nil) },
	Unit:   time.Second,
	Bubble: synctest.Test,
}

func open(tb testing.TB, opts *memlock.Options) driver.Engine {
	engine, err := memlock.New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

func TestConformance(t *testing.T) { enginetest.Run(t, harness) }

// TestConformanceWithHistory runs the suite on engines with history.
func TestConformanceWithHistory(t *testing.T) {
	h := harness
	h.Open = func(tb testing.TB) driver.Engine { return open(tb, &memlock.Options{History: true}) }
	enginetest.Run(t, h)
	enginetest.RunForwarded(t, h)
}

// TestConformanceBehindForward runs the suite on wrappers of the engine, with all its flags, and
// without each flag.
func TestConformanceBehindForward(t *testing.T) { enginetest.RunForwarded(t, harness) }
