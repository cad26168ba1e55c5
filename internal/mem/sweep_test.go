package mem

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// acquire acquires name for ttl, which must be granted, and returns the lease ID and the token.
func acquire(t *testing.T, e *Engine, name string, ttl time.Duration) (lockinfo.LeaseID, uint64) {
	t.Helper()
	id := lockinfo.NewLeaseID()
	reply, err := e.Acquire(t.Context(), driver.AcquireRequest{Name: name, LeaseID: id, TTL: ttl})
	if err != nil || reply.Outcome != driver.Granted {
		t.Fatalf("Acquire(%q) = %+v, %v; want a grant", name, reply, err)
	}
	return id, reply.Token
}

// TestSweepForgetsTombstones checks INVARIANT I11 for cancelled lease IDs:
// none outlives TombstoneTTL by more than the minute between two sweeps.
func TestSweepForgetsTombstones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(nil)
		for range 100 {
			err := e.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), Cancel: true})
			if !errors.Is(err, driver.ErrLost) {
				t.Fatalf("Cancel = %v, want ErrLost", err)
			}
		}
		time.Sleep(driver.TombstoneTTL - time.Nanosecond)
		acquire(t, e, "b", time.Second)
		if n := len(e.tombstones); n != 100 {
			t.Errorf("%d tombstones before TombstoneTTL, want 100", n)
		}
		time.Sleep(driver.TombstoneTTL + time.Nanosecond)
		acquire(t, e, "b", time.Second)
		if n := len(e.tombstones); n != 0 {
			t.Errorf("%d tombstones after TombstoneTTL and a sweep, want 0", n)
		}
	})
}

// TestSweepForgetsTokens checks INVARIANT I11 for names: an unused name takes no memory after
// TokenMemory, and its next token is still greater (INVARIANT I2).
func TestSweepForgetsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(nil)
		id, last := acquire(t, e, "released", time.Hour)
		if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "released", LeaseID: id}); err != nil {
			t.Fatal(err)
		}
		acquire(t, e, "expired", time.Hour)
		acquire(t, e, "live", 2*driver.TokenMemory)

		time.Sleep(driver.TokenMemory)
		acquire(t, e, "trigger", time.Second)
		if n := len(e.locks); n != 4 {
			t.Errorf("%d names are remembered at TokenMemory, want 4", n)
		}
		time.Sleep(driver.TombstoneTTL)
		acquire(t, e, "trigger", time.Second)
		if _, ok := e.locks["live"]; !ok || len(e.locks) != 2 {
			t.Errorf("names remembered after TokenMemory: %d, live among them: %t; want 2 and true", len(e.locks), ok)
		}
		if _, next := acquire(t, e, "released", time.Hour); next <= last {
			t.Errorf("token after the name was forgotten = %d, want more than %d", next, last)
		}
	})
}

// TestSweepKeepsLiftedToken checks that a name whose token is ahead of the clock is remembered for
// longer by the same time (INVARIANT I2).
func TestSweepKeepsLiftedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(nil)
		lift := uint64(time.Now().Add(driver.MaxTokenLead).UnixMicro())
		_, err := e.Acquire(t.Context(), driver.AcquireRequest{
			Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: time.Second, MinToken: lift,
		})
		if err != nil {
			t.Fatalf("Acquire with a MinToken of exactly MaxTokenLead ahead: %v", err)
		}
		time.Sleep(driver.TokenMemory + driver.MaxTokenLead/2)
		acquire(t, e, "trigger", time.Second)
		if lock, _ := e.Inspect(t.Context(), "a"); lock.LastToken != lift+1 {
			t.Errorf("last token = %d, want %d", lock.LastToken, lift+1)
		}
	})
}
