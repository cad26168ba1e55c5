package leasedoor_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestDowngrade checks that an exclusive lease becomes a shared lease with the same token and
// expiry, and that a waiter for a shared lease is granted at once. A repeat at another server gets
// the same reply.
func TestDowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		l := a.lease("n", key, wire.LeaseRequest{TTLMS: 60_000})
		reader := b.later(t.Context(), otherKey, wire.LeaseRequest{Name: "n", Mode: "shared", WaitMS: 50_000})
		time.Sleep(10 * time.Second)
		want := wire.Downgraded{LeaseID: l.LeaseID, Name: "n", Mode: "shared", Token: l.Token, ExpiresInMS: 50_000}
		for _, s := range []*site{a, b} {
			var got wire.Downgraded
			s.do(http.StatusOK, "POST", "/v1/leases/downgrade", "", wire.LeaseRef{Name: "n", LeaseID: l.LeaseID, FencingToken: l.FencingToken}, &got)
			if got != want {
				t.Errorf("downgraded: %+v, want %+v", got, want)
			}
		}
		if w := <-reader; w.Code != http.StatusOK && w.Code != http.StatusCreated {
			t.Errorf("who waited to share the lock: %d %s", w.Code, w.Body)
		}
		a.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", "", wire.LeaseRequest{Name: "n"})
		// The key now stands for a shared lease.
		a.refused(http.StatusUnprocessableEntity, "key-reused", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "n"})
		a.do(http.StatusOK, "POST", "/v1/leases", key, wire.LeaseRequest{Name: "n", Mode: "shared"}, nil)
		a.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		a.refused(http.StatusGone, "lost", "POST", "/v1/leases/downgrade", "", wire.LeaseRef{Name: "n", LeaseID: l.LeaseID})
	})
}

// TestDowngradeRefused checks that a downgrade with another token, or of a semaphore permit, is
// refused. The server repeats a downgrade whose reply was lost, and reports an engine without
// shared leases as unsupported.
func TestDowngradeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lose atomic.Int32
		engine := mem.New(nil)
		s := open(t, away(engine, "Downgrade", func() bool { return lose.Add(-1) >= 0 }, true))
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 60_000})
		s.refused(http.StatusGone, "lost", "POST", "/v1/leases/downgrade", "", wire.LeaseRef{Name: "n", LeaseID: l.LeaseID, FencingToken: l.FencingToken - 1})
		if lock, err := engine.Inspect(t.Context(), "n"); err != nil || lock.Mode.String() != "exclusive" {
			t.Errorf("after a downgrade with another token: %+v, %v", lock, err)
		}
		permit := s.lease("permits", key, wire.LeaseRequest{Mode: "semaphore", Limit: 3})
		s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/leases/downgrade", "", wire.LeaseRef{Name: "permits", LeaseID: permit.LeaseID})
		lose.Store(1)
		s.do(http.StatusOK, "POST", "/v1/leases/downgrade", "", wire.LeaseRef{Name: "n", LeaseID: l.LeaseID}, nil)
		if lock, err := engine.Inspect(t.Context(), "n"); err != nil || lock.Mode.String() != "shared" {
			t.Errorf("after the downgrade: %+v, %v", lock, err)
		}
		none := open(t, driver.Forward{Engine: mem.New(nil), Without: driver.Capabilities{Shared: true}})
		m := none.lease("n", key, wire.LeaseRequest{})
		none.refused(http.StatusNotImplemented, "unsupported", "POST", "/v1/leases/downgrade", "", wire.LeaseRef{Name: "n", LeaseID: m.LeaseID})
	})
}
