package holdfasttest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
)

// TestConformance checks that the kit's engine passes the suite if it causes no trouble.
func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open:   func(t testing.TB) driver.Engine { return newKit(t).Engine() },
		Join:   func(_ testing.TB, e driver.Engine) driver.Engine { return e.(*engine).kit.Engine() },
		Unit:   time.Second,
		Bubble: synctest.Test,
	})
}
