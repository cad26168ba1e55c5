package memlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/memlock"
)

func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open:   func(testing.TB) driver.Engine { return memlock.New() },
		Unit:   time.Second,
		Bubble: synctest.Test,
	})
}
