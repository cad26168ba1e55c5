package memlock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// TestClockPastLastToken: in 2255 a clock in microseconds passes the greatest
// token. A lease is then refused, and none is given a token that other stores
// and JSON could not hold exactly. INVARIANT I2.
func TestClockPastLastToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memlock.New()
		defer e.Close()
		last := time.UnixMicro(int64(driver.MaxToken))
		time.Sleep(time.Until(last) - time.Second)
		req := driver.AcquireRequest{Name: "a", LeaseID: driver.NewLeaseID(), TTL: time.Second}
		reply, err := e.Acquire(t.Context(), req)
		if err != nil || reply.Outcome != driver.Granted || reply.Token > driver.MaxToken {
			t.Fatalf("a second before the last token: %+v, %v; want a grant", reply, err)
		}
		time.Sleep(2 * time.Second)
		req.LeaseID = driver.NewLeaseID()
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
