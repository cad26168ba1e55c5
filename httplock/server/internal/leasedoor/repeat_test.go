package leasedoor_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// expiresIn returns when the only lease of a name expires.
func expiresIn(t *testing.T, engine driver.Engine, name string) time.Duration {
	t.Helper()
	lock, err := engine.Inspect(t.Context(), name)
	if err != nil || len(lock.Holders) != 1 {
		t.Fatalf("%q has %d leases, error %v; want one", name, len(lock.Holders), err)
	}
	return lock.Holders[0].ExpiresIn
}

// TestKeyReused checks that a request that repeats a key with other options, or from another
// holder, is refused at each server, and does not change the lease.
func TestKeyReused(t *testing.T) {
	shared := wire.LeaseRequest{Name: "n", Mode: "shared", TTLMS: 10_000}
	permits := wire.LeaseRequest{Name: "n", Mode: "semaphore", Limit: 4, Permits: 1, TTLMS: 10_000}
	delayed := wire.LeaseRequest{Name: "n", TTLMS: 5_000, LockDelayMS: 5_000, Holder: &wire.Self{Host: "web-1"}}
	named := wire.LeaseRequest{Name: "n", TTLMS: 10_000, Holder: &wire.Self{Host: "web-1", PID: 7, Program: "job", Label: "a"}}
	for _, test := range []struct {
		what   string
		first  wire.LeaseRequest
		second func(r *wire.LeaseRequest)
		status int
		code   string
	}{
		{"another mode", shared, func(r *wire.LeaseRequest) { r.Mode = "exclusive" }, 422, "key-reused"},
		{"a semaphore", shared, func(r *wire.LeaseRequest) { r.Mode, r.Limit = "semaphore", 2 }, 422, "key-reused"},
		{"another limit", permits, func(r *wire.LeaseRequest) { r.Limit = 5 }, 422, "key-reused"},
		{"more permits", permits, func(r *wire.LeaseRequest) { r.Permits = 3 }, 422, "key-reused"},
		{"a token that is greater", named, func(r *wire.LeaseRequest) { r.MinToken = 1 << 52 }, 422, "key-reused"},
		{"another lock delay", delayed, func(r *wire.LeaseRequest) { r.LockDelayMS = 6_000 }, 422, "key-reused"},
		{"a min hold for a lock delay", delayed, func(r *wire.LeaseRequest) { r.LockDelayMS, r.MinHoldMS = 0, 5_000 }, 422, "key-reused"},
		{"another host", named, func(r *wire.LeaseRequest) { r.Holder = &wire.Self{Host: "web-2", PID: 7, Program: "job", Label: "a"} }, 409, "other-holder"},
		{"another process", named, func(r *wire.LeaseRequest) { r.Holder = &wire.Self{Host: "web-1", PID: 8, Program: "job", Label: "a"} }, 409, "other-holder"},
		{"no holder", named, func(r *wire.LeaseRequest) { r.Holder = nil }, 409, "other-holder"},
	} {
		t.Run(test.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := mem.New(nil)
				a, b := open(t, engine), open(t, engine)
				a.do(http.StatusCreated, "POST", "/v1/leases", key, test.first, nil)
				time.Sleep(time.Second)
				second := test.first
				second.TTLMS = 600_000
				test.second(&second)
				for _, s := range []*site{a, b} {
					for _, wait := range []int64{0, 500} {
						second.WaitMS = wait
						p := s.refused(test.status, test.code, "POST", "/v1/leases", key, second)
						if test.status == 409 && (len(p.Holders) != 1 || p.Holders[0].Host != "web-1") {
							t.Errorf("the refusal names %+v, want the holder of the lease", p.Holders)
						}
					}
				}
				if left := expiresIn(t, engine, "n"); left != 9*time.Second {
					t.Errorf("the requests of others have made the lease last for %s", left)
				}
			})
		})
	}
}

// A poller is an engine without a queue. Like a quorum, it reports a lease ID that it has received
// before as repeated, even if it did not grant it.
type poller struct {
	driver.Forward
	received map[lockinfo.LeaseID]bool
}

func (e *poller) Capabilities() driver.Capabilities {
	c := e.Forward.Capabilities()
	c.Queue = false
	return c
}

func (e *poller) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if req.First && e.received[req.LeaseID] {
		return driver.AcquireReply{Outcome: driver.Repeated}, nil
	}
	e.received[req.LeaseID] = true
	return e.Forward.Acquire(ctx, req)
}

// TestKeyReusedWhileWaiting checks that only one of two hosts acquires a lock if both wait for it
// with one key. The store has no queue.
func TestKeyReusedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		open(t, engine).lease("n", "", wire.LeaseRequest{TTLMS: 5_000})
		statuses := make(chan int, 2)
		for _, host := range []string{"web-1", "web-2"} {
			s := open(t, &poller{Forward: driver.Forward{Engine: engine}, received: map[lockinfo.LeaseID]bool{}})
			go func() {
				reply := s.send(t.Context(), "POST", "/v1/leases", key, wire.LeaseRequest{
					Name: "n", TTLMS: 60_000, WaitMS: 10_000, Holder: &wire.Self{Host: host},
				})
				statuses <- reply.Code
			}()
		}
		if got := []int{<-statuses, <-statuses}; got[0]+got[1] != http.StatusCreated+http.StatusConflict {
			t.Errorf("the hosts are answered %d, want one lease", got)
		}
	})
}

// TestRepeatSaysSo checks that a repeat returns the same lease and its holder, marked as repeated.
func TestRepeatSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		want := wire.LeaseRequest{Name: "n", Mode: "semaphore", Limit: 4, Permits: 3, TTLMS: 60_000, Holder: &wire.Self{Label: "worker"}, Reason: "first"}
		var first, second wire.Lease
		a.do(http.StatusCreated, "POST", "/v1/leases", key, want, &first)
		if first.Repeated || first.Holder != nil {
			t.Errorf("the first is answered %+v", first)
		}
		time.Sleep(time.Second)
		want.TTLMS, want.Reason = 10_000, "second" // do not change the lease
		b.do(http.StatusOK, "POST", "/v1/leases", key, want, &second)
		if second.LeaseID != first.LeaseID || second.Token != first.Token || !second.Repeated || second.Holder == nil || second.Holder.Label != "worker" || second.Holder.Reason != "first" {
			t.Errorf("the repeat is answered %+v, want the lease of %+v", second, first)
		}
		if second.ExpiresInMS != 59_000 {
			t.Errorf("the repeat says that %d ms are left, want 59000", second.ExpiresInMS)
		}
	})
}

// TestNoKey checks that each request without a key is a separate acquisition, and that it leaves
// nothing unless its reply contains a lease.
func TestNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := open(t, engine)
		l := s.lease("n", "", wire.LeaseRequest{TTLMS: 600_000})
		s.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", "", wire.LeaseRequest{Name: "n"})
		readers := map[string]bool{}
		for range 3 {
			r := s.lease("shared", "", wire.LeaseRequest{Mode: "shared"})
			readers[r.LeaseID] = true
		}
		if len(readers) != 3 {
			t.Errorf("3 requests without a key have %d leases", len(readers))
		}
		ctx, hangUp := context.WithCancel(t.Context())
		waiting := s.later(ctx, "", wire.LeaseRequest{Name: "n", WaitMS: 50_000})
		if n := queueLength(t, engine, "n"); n != 1 {
			t.Errorf("%d wait, want one", n)
		}
		hangUp()
		<-waiting
		synctest.Wait()
		if n := queueLength(t, engine, "n"); n != 0 {
			t.Errorf("a caller that cannot come back has left %d places", n)
		}
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
	})
}

// TestEndedWaitLeavesNoPlace checks that a wait that ends without the lock is refused, with its
// last place, and gives up that place at once.
func TestEndedWaitLeavesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := open(t, engine)
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		for _, k := range []string{"", otherKey, otherKey} {
			p := s.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", k, wire.LeaseRequest{Name: "n", WaitMS: 2_000})
			if p.Place != 1 || len(p.Holders) != 1 || p.QueueLength == nil {
				t.Errorf("the refusal is %+v, want place 1 and the holder", p)
			}
			if n := queueLength(t, engine, "n"); n != 0 {
				t.Errorf("%d places are left", n)
			}
		}
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		s.do(http.StatusCreated, "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n"}, nil) // the key can be used again
	})
}

// TestEndedWaitTakesNoLease checks that the end of a wait at one server does not end the repeat of
// the same request at another, whether the lock becomes free at that moment or later.
func TestEndedWaitTakesNoLease(t *testing.T) {
	for _, after := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			store := newFlaky(mem.New(nil))
			a, b := open(t, store), open(t, store)
			l := a.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
			want := wire.LeaseRequest{Name: "n", WaitMS: 2_000}
			// The caller has moved from the first server to the second. The first server does not
			// know this.
			old := a.later(t.Context(), otherKey, want)
			time.Sleep(1900 * time.Millisecond)
			want.WaitMS = 10_000
			repeat := b.later(t.Context(), otherKey, want)
			time.Sleep(after)
			a.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
			<-old
			w := <-repeat
			time.Sleep(time.Second)
			if w.Code/100 != 2 {
				t.Fatalf("the repeat is answered %d %s", w.Code, w.Body)
			}
			if left := expiresIn(t, store, "n"); left < 28*time.Second {
				t.Errorf("the lease of the repeat lasts for %s", left)
			}
		})
	}
}

// TestRevivedLeaseIsLost checks that a holder that has lost the lock learns of the loss, even if a
// late copy of its first request has acquired a lease with the same ID.
func TestRevivedLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 1_000})
		mine := ref(l)
		mine.FencingToken = l.FencingToken
		var renewed wire.Renewed
		s.do(http.StatusOK, "POST", "/v1/leases/renew", "", wire.LeaseRef{Name: "n", LeaseID: l.LeaseID, TTLMS: 1_000, FencingToken: l.FencingToken}, &renewed)
		if renewed.Token == nil || renewed.FencingToken != l.FencingToken {
			t.Errorf("renewed: %+v, want the token %d", renewed, l.FencingToken)
		}
		s.do(http.StatusNoContent, "POST", "/v1/leases/check", "", mine, nil)
		time.Sleep(2 * time.Second)
		other := s.lease("n", otherKey, wire.LeaseRequest{}) // a rival acquires and releases the lock
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(other), nil)
		again := s.lease("n", key, wire.LeaseRequest{}) // the late copy
		if again.LeaseID != l.LeaseID || again.FencingToken <= other.FencingToken {
			t.Fatalf("the late copy has %+v, want the lease ID of %+v", again, l)
		}
		s.refused(http.StatusGone, "lost", "POST", "/v1/leases/check", "", mine)
		s.refused(http.StatusGone, "lost", "POST", "/v1/leases/renew", "", mine)
		renewed = wire.Renewed{}
		s.do(http.StatusOK, "POST", "/v1/leases/renew", "", wire.LeaseRef{Name: "n", LeaseID: l.LeaseID}, &renewed)
		if renewed.Token == nil || renewed.FencingToken != again.FencingToken {
			t.Errorf("renewed without a token: %+v, want to be told %d", renewed, again.FencingToken)
		}
		var all wire.LeaseResults
		s.do(http.StatusOK, "POST", "/v1/leases/renew", "", wire.LeaseRefs{Leases: []wire.LeaseRef{mine.LeaseRef, {Name: "n", LeaseID: again.LeaseID, FencingToken: again.FencingToken}}}, &all)
		if len(all.Leases) != 2 || all.Leases[0].Status != http.StatusGone || all.Leases[1].Status != http.StatusOK || all.Leases[1].Token == nil {
			t.Errorf("renewed together: %+v", all)
		}
	})
}

// TestRefusedStreamLeavesNoPlace checks that a stream that is refused at the end of its wait leaves
// no place, with every kind of stream.
func TestRefusedStreamLeavesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := openNear(t, engine)
		s.lease(name, key, wire.LeaseRequest{TTLMS: 600_000})
		for _, query := range []string{"", "&direct=0", "&renew=client"} {
			for _, k := range []string{"", otherKey} {
				stream := s.hold(query, k, asked(2*time.Second))
				time.Sleep(3 * time.Second)
				if last := stream.last("refused"); last.Code != "lock-held" {
					t.Errorf("%q: the last line is %+v", query, last)
				}
				if n := queueLength(t, engine, name); n != 0 {
					t.Errorf("%q: %d places are left", query, n)
				}
			}
		}
	})
}
