package redislock

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestContendedNamesAreAskedInFull checks that a request for a contended name uses the full script
// at once, so that a hand-over costs two requests.
func TestContendedNamesAreAskedInFull(t *testing.T) {
	server := testsvc.Redis(t)
	e, g := behindGate(t, server)
	held := drivertest.Request("n/wanted", time.Minute)
	drivertest.Granted(t, e, held)
	const rounds = 20
	for range rounds {
		next := queued(t, e, drivertest.Request(held.Name, time.Minute), time.Minute, 1)
		drivertest.Release(t, e, held)
		held = next
	}
	if n, plain := g.inFull(), g.seen(); n != 2*rounds || plain != 2 {
		t.Errorf("%d hand-overs: %d requests in full, and %d plain ones; want %d and 2, the first and one in vain", rounds, n, plain, 2*rounds)
	}
}

// TestSharedLeasesAreAskedInFull checks that no plain request is sent in vain for shared leases.
func TestSharedLeasesAreAskedInFull(t *testing.T) {
	server := testsvc.Redis(t)
	e, g := behindGate(t, server)
	for what, by := range map[string]*Engine{"its own": e, "another's": g.around} {
		fullBefore, plainBefore := g.inFull(), g.seen()
		req := shared("n/"+what, time.Minute)
		drivertest.Granted(t, by, req)
		for range 3 {
			if err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL}})[0]; err != nil {
				t.Fatal(err)
			}
		}
		drivertest.Release(t, e, req)
		// The acquire of its own lease, and one plain renewal in vain of another's.
		if n, plain := g.inFull()-fullBefore, g.seen()-plainBefore; n != 5 || plain != 0 {
			t.Errorf("%s: %d requests of batches and in full, and %d plain ones; want 5 and none", what, n, plain)
		}
	}
}

// TestPlainRenewalsInOneRequest checks that the full script renews leases that cannot be renewed
// plainly, and no others.
func TestPlainRenewalsInOneRequest(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	e := open(t, server.URL)
	var batch []driver.ExtendRequest
	for i := range 10 {
		req := drivertest.Request(fmt.Sprint("n/", i), time.Minute)
		drivertest.Granted(t, e, req)
		batch = append(batch, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL})
	}
	for _, spoilt := range []bool{false, true} {
		if spoilt {
			do(t, admin, "DEL", batch[3].Name)
			do(t, admin, "HSET", batch[3].Name, "a", "b")
		}
		do(t, admin, "CONFIG RESETSTAT")
		for i, err := range e.Extend(t.Context(), batch) {
			if (err != nil) != (spoilt && i == 3) {
				t.Errorf("extend %d: %v", i, err)
			}
		}
		want := map[bool]map[string]int64{false: {"evalsha": 1, "get": 10, "pexpire": 10}, true: {"evalsha": 2, "get": 11, "pexpire": 9}}[spoilt]
		got := commandStats(t, admin)
		maps.DeleteFunc(got, func(command string, _ int64) bool { return want[command] == 0 })
		if !maps.Equal(got, want) {
			t.Errorf("spoilt %v: %v, want %v", spoilt, got, want)
		}
	}
}
