package redislock

import (
	"maps"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestDowngradeOfPermit checks that a downgrade of a permit is refused, and leaves the permit
// unchanged.
func TestDowngradeOfPermit(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	holder := permits("t", 2, time.Minute)
	drivertest.Granted(t, e, holder)
	before := dump(t, admin)
	err := e.Downgrade(t.Context(), driver.DowngradeRequest{Name: "t", LeaseID: holder.LeaseID})
	wantIs(t, "downgrade", err, driver.ErrKindMismatch)
	if after := dump(t, admin); !maps.Equal(before, after) {
		t.Errorf("the store was %v and is %v", before, after)
	}
}
