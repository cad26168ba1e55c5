package driver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestLossesAfterForeignReleases checks that an engine that has released leases of other engines
// still listens for losses of its own.
func TestLossesAfterForeignReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l driver.Losses
		defer l.OnLoss(func(driver.Loss) {})()
		l.Ended()
		l.Ended()
		listens := false
		l.Granted(1, func() { listens = true })
		time.Sleep(driver.LossStart)
		synctest.Wait()
		if !listens {
			t.Error("it does not listen")
		}
	})
}
