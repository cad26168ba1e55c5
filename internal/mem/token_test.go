package mem_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestClockPastLastToken checks that an acquire fails when the clock, in microseconds, has passed
// the greatest token in the year 2255. Other stores and JSON could not represent greater tokens
// exactly. INVARIANT I2.
func TestClockPastLastToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mem.New(nil)
		defer e.Close()
		last := time.UnixMicro(int64(driver.MaxToken))
		time.Sleep(time.Until(last) - time.Second)
		req := driver.AcquireRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: time.Second}
		reply, err := e.Acquire(t.Context(), req)
		if err != nil || reply.Outcome != driver.Granted || reply.Token > driver.MaxToken {
			t.Fatalf("a second before the last token: %+v, %v; want a grant", reply, err)
		}
		time.Sleep(2 * time.Second)
		req.LeaseID = lockinfo.NewLeaseID()
		for _, name := range []string{"a", "b"} {
			req.Name = name
			if reply, err := e.Acquire(t.Context(), req); !errors.Is(err, driver.ErrUnavailable) {
				t.Errorf("a second after it, name %q: %+v, %v; want ErrUnavailable", name, reply, err)
			}
		}
		if reply, err := e.AcquireAll(t.Context(), []driver.AcquireRequest{req}); !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("AcquireAll: %+v, %v; want ErrUnavailable", reply, err)
		}
	})
}

// TestHandOverPastLastToken checks that a hand-over uses no token above the greatest, whether the
// clock or the last token has reached it. The waiter keeps its place, and it and later callers get
// an error. INVARIANT I2.
func TestHandOverPastLastToken(t *testing.T) {
	for _, c := range []struct {
		name     string
		minToken uint64
		later    time.Duration
	}{{"clock", 0, 2 * time.Second}, {"last token", driver.MaxToken - 1, 0}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := mem.New(nil)
				defer e.Close()
				time.Sleep(time.Until(time.UnixMicro(int64(driver.MaxToken))) - time.Second)
				held := driver.AcquireRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: time.Minute, MinToken: c.minToken}
				waits := driver.AcquireRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: time.Minute, Queue: true, WaiterTTL: time.Minute}
				for _, req := range []driver.AcquireRequest{held, waits} {
					if _, err := e.Acquire(t.Context(), req); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(c.later)
				if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: held.LeaseID}); err != nil {
					t.Fatal(err)
				}
				checkStuck(t, e, waits)
			})
		})
	}
}

// checkStuck checks the state of name "a", whose first waiter cannot be granted the lock.
func checkStuck(t *testing.T, e *mem.Engine, waits driver.AcquireRequest) {
	t.Helper()
	lock, err := e.Inspect(t.Context(), "a")
	if err != nil || len(lock.Holders) != 0 || lock.QueueLength != 1 || lock.LastToken > driver.MaxToken {
		t.Errorf("after the release: %+v, %v; want one place and no holder", lock, err)
	}
	reply := e.Refresh(t.Context(), []driver.RefreshRequest{{Name: "a", LeaseID: waits.LeaseID, WaiterTTL: time.Minute}})[0]
	if !errors.Is(reply.Err, driver.ErrUnavailable) {
		t.Errorf("Refresh = %+v, want ErrUnavailable", reply)
	}
	late := driver.AcquireRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: time.Minute}
	for _, req := range []driver.AcquireRequest{waits, late} {
		if reply, err := e.Acquire(t.Context(), req); !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("Acquire = %+v, %v; want ErrUnavailable", reply, err)
		}
	}
	other := driver.AcquireRequest{Name: "b", LeaseID: lockinfo.NewLeaseID(), TTL: time.Minute}
	if all, err := e.AcquireAll(t.Context(), []driver.AcquireRequest{other, late}); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("AcquireAll = %+v, %v; want ErrUnavailable", all, err)
	}
	if lock, err := e.Inspect(t.Context(), "b"); err != nil || len(lock.Holders) != 0 {
		t.Errorf("after AcquireAll the other name has %+v, %v; want no holder", lock, err)
	}
}
