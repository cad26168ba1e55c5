package leasedoor_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestLockDelay checks that a lock delay keeps the name closed after the lease has expired, but not
// after a release. For the holder the lease is as long as the TTL, whichever server renews it.
func TestLockDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		req := wire.LeaseRequest{Name: "n", TTLMS: 10_000, LockDelayMS: 5_000, Labels: map[string]string{"shop": "7"}}
		l := a.lease("n", key, req)
		if l.TTLMS != 10_000 || l.ExpiresInMS != 10_000 || expiresIn(t, engine, "n") != 15*time.Second {
			t.Errorf("the lease is %+v, and the store keeps it for %s", l, expiresIn(t, engine, "n"))
		}
		time.Sleep(3 * time.Second)
		var again wire.Lease
		b.do(http.StatusOK, "POST", "/v1/leases", key, req, &again)
		if again.Token != l.Token || again.ExpiresInMS != 10_000 || again.Holder.Labels["shop"] != "7" {
			t.Errorf("the repeat is %+v of %+v", again, l)
		}
		renew := ref(l)
		renew.TTLMS, renew.FencingToken = 20_000, l.FencingToken
		var renewed wire.Renewed
		b.do(http.StatusOK, "POST", "/v1/leases/renew", "", renew, &renewed)
		if renewed.ExpiresInMS != 20_000 || expiresIn(t, engine, "n") != 25*time.Second {
			t.Errorf("renewed: %+v, and the store keeps it for %s", renewed, expiresIn(t, engine, "n"))
		}
		req.TTLMS = 5_000 // does not shorten the lease
		b.do(http.StatusOK, "POST", "/v1/leases", key, req, &again)
		if again.ExpiresInMS != 20_000 {
			t.Errorf("the repeat says that %d ms are left, want 20000", again.ExpiresInMS)
		}
		time.Sleep(20 * time.Second)
		for _, path := range []string{"renew", "check", "downgrade"} { // only the lock delay remains
			r := ref(l)
			b.refused(http.StatusGone, "lost", "POST", "/v1/leases/"+path, "", r)
		}
		if left := expiresIn(t, engine, "n"); left != 5*time.Second {
			t.Errorf("the delay ends in %s, want 5s", left)
		}
		time.Sleep(5*time.Second - time.Millisecond)
		b.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n"})
		time.Sleep(time.Millisecond)
		next := b.lease("n", otherKey, wire.LeaseRequest{LockDelayMS: 5_000})
		a.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(next), nil)
		a.lease("n", "", wire.LeaseRequest{})
	})
}

// TestForgedMinHold checks that a release keeps a name closed for MaxTTL at most. A client of the
// engine interface can forge the label of the minimum hold time, because it chooses lease ID and
// labels.
func TestForgedMinHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := open(t, engine)
		for _, ms := range []string{"1000000000000", "9223372036854775807"} {
			req := drivertest.Request("n"+ms, time.Hour)
			req.LeaseID, req.Holder.Labels = lease.Labelled(req.LeaseID, true), map[string]string{"holdfast/min_hold_ms": ms}
			s.do(http.StatusOK, "POST", "/v1/driver/acquire", "", req, nil)
			s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", wire.LeaseRef{Name: req.Name, LeaseID: string(req.LeaseID)}, nil)
			if left := expiresIn(t, engine, req.Name); left != holdfast.MaxTTL {
				t.Errorf("%s ms: the name is kept closed for %s", ms, left)
			}
		}
	})
}

// TestLockDelayUnknown checks that a renewal is refused if the server cannot read the lock delay,
// or if TTL and delay together are too long. Other leases of the request are renewed.
func TestLockDelayUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off atomic.Bool
		engine := mem.New(nil)
		s := open(t, away(engine, "Inspect", off.Load, false))
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 600_000, LockDelayMS: 5_000})
		m := s.lease("m", key, wire.LeaseRequest{TTLMS: 600_000})
		refs := wire.LeaseRefs{Leases: []wire.LeaseRef{
			{Name: "n", LeaseID: l.LeaseID, FencingToken: l.FencingToken, TTLMS: 30 * 24 * 3600 * 1000},
			{Name: "m", LeaseID: m.LeaseID, FencingToken: m.FencingToken, TTLMS: 30 * 24 * 3600 * 1000},
		}}
		s.results("renew", refs, http.StatusBadRequest, http.StatusOK)
		refs.Leases[0].TTLMS, refs.Leases[1].TTLMS = 900_000, 30*24*3600*1000
		off.Store(true)
		s.results("renew", refs, http.StatusServiceUnavailable, http.StatusOK)
		off.Store(false)
		if left := expiresIn(t, engine, "n"); left > 605*time.Second || left < 590*time.Second {
			t.Errorf("the lease that was not renewed ends in %s", left)
		}
		s.results("renew", refs, http.StatusOK, http.StatusOK)
	})
}

// TestStreamWithLockDelay checks that a stream renews its lease with the lock delay, and does not
// free the lock when the connection closes: the client may have died.
func TestStreamWithLockDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := openNear(t, engine)
		c := s.hold("", key, wire.LeaseRequest{Name: "n", TTLMS: 30_000, LockDelayMS: 10_000})
		line := c.last("acquired")
		if line.OnClose != "run_out" || line.TTLMS != 30_000 || *line.ExpiresInMS > 30_000 {
			t.Errorf("acquired: %+v", line.HoldLine)
		}
		time.Sleep(100 * time.Second)
		synctest.Wait()
		if left := expiresIn(t, engine, "n"); left <= 30*time.Second || left > 40*time.Second {
			t.Errorf("the store keeps the lease of a stream for %s", left)
		}
		c.close()
		synctest.Wait()
		left := expiresIn(t, engine, "n")
		if left <= 30*time.Second {
			t.Errorf("after the end the store keeps the lease for %s", left)
		}
		time.Sleep(left - time.Millisecond)
		s.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n"})
		time.Sleep(time.Millisecond)
		s.lease("n", otherKey, wire.LeaseRequest{})
	})
}
