package redislock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// grantedLater makes the lease of a name look as if the server's clock had gone back by an hour
// since its grant.
func grantedLater(t testing.TB, admin rueidis.Client, name string, id lockinfo.LeaseID) {
	t.Helper()
	later := func(record string, field int) string {
		fields := strings.SplitN(record, " ", field+2)
		var us int64
		if _, err := fmt.Sscan(fields[field], &us); err != nil || us < 1e15 {
			t.Fatalf("%q says that it was granted at %q: %v", record, fields[field], err)
		}
		fields[field] = fmt.Sprint(us + time.Hour.Microseconds())
		return strings.Join(fields, " ")
	}
	detail := companionKeys(name)[kindDetail]
	if record := text(t, admin, "HGET", detail, "h"+string(id)); record != "" {
		do(t, admin, "HSET", detail, "h"+string(id), later(record, 3))
		return
	}
	do(t, admin, "SET", name, later(text(t, admin, "GET", name), 4), "KEEPTTL")
}

// TestSinceAfterClockStep checks that every request reports that a lease is held for no time, and
// not for less, before the server's clock has reached the grant again.
func TestSinceAfterClockStep(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	m := admitted(t, server.URL)
	for name, held := range map[string]driver.AcquireRequest{
		"exclusive": drivertest.Request("exclusive", time.Minute), "shared": shared("shared", time.Minute),
	} {
		drivertest.Granted(t, e, held)
		grantedLater(t, admin, name, held.LeaseID)
		none := func(how string, since time.Duration) {
			t.Helper()
			if since != 0 {
				t.Errorf("%s, %s: held for %s", name, how, since)
			}
		}
		none("a refusal", drivertest.Held(t, e, drivertest.Request(name, time.Minute)).Since)
		once := drivertest.Request(name, time.Minute)
		once.Once = true // with the full script
		none("a refusal of do-once work", drivertest.Held(t, e, once).Since)
		waiter := drivertest.Request(name, time.Minute)
		waiter.Queue, waiter.WaiterTTL = true, time.Minute
		none("a place", drivertest.Held(t, e, waiter).Since)
		none("a refresh", refresh(t, e, waiter).Since)
		none("a vote", votes(t, m, proposal(name), driver.VoteHeld).Since)
		if lock, err := e.Inspect(t.Context(), name); err != nil || len(lock.Holders) != 1 {
			t.Errorf("inspect: %+v, %v", lock, err)
		} else {
			none("inspect", lock.Holders[0].Since)
		}
	}
}
