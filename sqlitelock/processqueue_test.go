package sqlitelock

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// TestProcessesQueue checks that the lock is handed over from process to process in the order in
// which they began to wait. INVARIANT I7.
func TestProcessesQueue(t *testing.T) {
	const processes, rounds = 5, 4
	e := openNew(t)
	var waiters []*child
	for range processes {
		waiters = append(waiters, spawn(t, "wait", e.path))
	}
	var took, cycles []time.Duration
	for round := range rounds {
		req := drivertest.Request("t", time.Minute)
		drivertest.Granted(t, e, req)
		token := lastToken(t, e, "t")
		for i := range waiters {
			cycles = append(cycles, timeCycle(t, e))
			waiters[(i+round)%processes].fallAsleep("t", int64(i+1)) // another order each time
		}
		before := boot(t, e)
		drivertest.Release(t, e, req)
		for i := range waiters {
			granted := waiters[(i+round)%processes].hear("granted")
			at := time.Duration(granted[0])
			if at <= before || uint64(granted[1]) <= token {
				t.Errorf("place %d was granted %s after the one before, with token %d after %d", i+1, at-before, granted[1], token)
			}
			took = append(took, at-before)
			before, token = at, uint64(granted[1])
		}
		drivertest.Eventually(t, "the last has released", func() bool {
			lock, err := e.Inspect(t.Context(), "t")
			return err == nil && len(lock.Holders) == 0
		})
	}
	checkHandOff(t, "from one process to the next", took, cycles)
	for _, c := range waiters {
		c.end()
	}
}

// await waits for a place to become a lease as a client does: it sends a refresh after a notice,
// when the lease in the way expires, and three times in WaiterTTL.
func await(t testing.TB, e *Engine, req driver.AcquireRequest, w driver.Watch) {
	t.Helper()
	for limit, left := time.Now().Add(drivertest.Patience), req.WaiterTTL; ; {
		select {
		case <-w.C():
		case <-time.After(min(left+2*time.Millisecond, req.WaiterTTL/3)):
		}
		reply := e.Refresh(t.Context(), []driver.RefreshRequest{{Name: req.Name, LeaseID: req.LeaseID, WaiterTTL: req.WaiterTTL}})[0]
		switch {
		case reply.Err != nil || time.Now().After(limit):
			t.Fatalf("refresh: %+v", reply)
		case reply.Outcome == driver.Granted:
			return
		}
		left = reply.ExpiresIn
	}
}

// TestKilledWaiter checks that a killed waiter delays the next waiter by at most its waiter TTL,
// whether it is killed before or after the lock is handed over to it.
func TestKilledWaiter(t *testing.T) {
	const waiterTTL = 700 * time.Millisecond
	e := openNew(t)
	for _, when := range []string{"before", "after"} {
		req := drivertest.Request("t", time.Minute)
		drivertest.Granted(t, e, req)
		victim := spawn(t, "queue", e.path, "t", waiterTTL.String())
		if place := victim.hear("place")[0]; place != 1 {
			t.Fatalf("the victim has place %d", place)
		}
		next, w := drivertest.Queued(t, e, "t", waiterTTL)
		if when == "before" {
			victim.kill()
		}
		released := boot(t, e)
		drivertest.Release(t, e, req)
		if when == "after" {
			victim.kill()
		}
		await(t, e, next, w)
		took := boot(t, e) - released
		t.Logf("killed %s the hand-over: the next has the lock after %s", when, took)
		if took > waiterTTL+time.Second {
			t.Errorf("killed %s the hand-over: the next has the lock after %s, want %s at most and a little", when, took, waiterTTL)
		}
		drivertest.Release(t, e, next)
	}
}
