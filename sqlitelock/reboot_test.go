package sqlitelock

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestFirstRequestAfterReboot checks that the rows of an earlier boot, which no sweep has deleted
// yet, do not hinder the first request after a reboot. INVARIANT I8.
func TestFirstRequestAfterReboot(t *testing.T) {
	queued := func(req driver.AcquireRequest) driver.AcquireRequest { return inQueue(req, time.Minute) }
	requests := map[string]func(driver.AcquireRequest) driver.AcquireRequest{
		"acquire": func(req driver.AcquireRequest) driver.AcquireRequest { return req },
		"queue":   queued,
		"shared":  func(req driver.AcquireRequest) driver.AcquireRequest { req.Mode = lockinfo.Shared; return req },
		"permits": func(req driver.AcquireRequest) driver.AcquireRequest {
			req.Mode = lockinfo.Permits(3, 3)
			return req
		},
	}
	for what, change := range requests {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, somebody waited: %t", what, waits), func(t *testing.T) {
				h := newHost("one boot")
				path := filepath.Join(t.TempDir(), "locks.db")
				e := h.open(t, path)
				last := drivertest.Granted(t, e, drivertest.Request("t", time.Hour))
				if waits {
					placed(t, e, queued(drivertest.Request("t", time.Hour)), 1)
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				h = newHost("another boot")
				h.boot = time.Second // far from the old lease's expiry
				e = h.open(t, path)
				if token := drivertest.Granted(t, e, change(drivertest.Request("t", time.Minute))); token <= last {
					t.Errorf("token %d after the reboot, want more than %d", token, last)
				}
			})
		}
	}
}
