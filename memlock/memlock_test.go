package memlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/memlock"
)

// harness is the suite's way to engines in memory.
var harness = enginetest.Harness{
	Open:   func(testing.TB) driver.Engine { return memlock.New() },
	Unit:   time.Second,
	Bubble: synctest.Test,
}

func TestConformance(t *testing.T) { enginetest.Run(t, harness) }

// TestConformanceBehindForward runs the suite on what wrappers make of the
// engine, with all its flags, and without each.
func TestConformanceBehindForward(t *testing.T) { enginetest.RunForwarded(t, harness) }
