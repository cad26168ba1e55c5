package leasedoor_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

var errLink = errors.New("the connection was reset")

// A flaky store loses the replies to some requests.
type flaky struct {
	*hook.Engine
	lose  atomic.Int32 // how many of the next replies are lost
	sends atomic.Int32 // requests so far
}

func newFlaky(engine driver.Engine) *flaky {
	f := &flaky{}
	f.Engine = &hook.Engine{Forward: driver.Forward{Engine: engine}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
		f.sends.Add(1)
		err := send()
		if f.lose.Add(-1) >= 0 {
			return errLink
		}
		return err
	}}
	return f
}

// away returns an engine that loses requests of one method. If carriedOut is set, it loses their
// replies instead.
func away(engine driver.Engine, method string, lost func() bool, carriedOut bool) driver.Engine {
	return &hook.Engine{Forward: driver.Forward{Engine: engine}, Each: func(_ context.Context, req hook.Request, send func() error) error {
		if req.Method != method || !lost() {
			return send()
		}
		if !carriedOut {
			return driver.ErrUnavailable
		}
		_ = send()
		return errLink
	}}
}

// TestLostReplies checks that the server repeats a request whose reply from the store was lost, and
// that nothing is done twice.
func TestLostReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFlaky(mem.New(nil))
		s := open(t, store)
		lossy := func() { store.lose.Store(1) }
		lossy()
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 10_000})
		lossy()
		s.do(http.StatusOK, "POST", "/v1/leases/renew", "", ref(l), nil)
		lossy()
		s.do(http.StatusNoContent, "POST", "/v1/leases/check", "", ref(l), nil)
		lossy()
		s.results("renew", wire.LeaseRefs{Leases: []wire.LeaseRef{{Name: "n", LeaseID: l.LeaseID}, {Name: "n", LeaseID: "0123456789abcdef0123456789abcdef"}}}, 200, 410)
		lossy()
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		s.refused(http.StatusGone, "lost", "POST", "/v1/leases/release", "", ref(l))
		l = s.lease("n", otherKey, wire.LeaseRequest{})
		lossy()
		var broke wire.Broke
		s.do(http.StatusOK, "POST", "/v1/locks/n/break", "", wire.BreakRequest{FencingToken: l.FencingToken}, &broke)
		if len(broke.Broken) != 1 {
			t.Errorf("broken: %+v", broke)
		}
		lossy()
		var run wire.Lease
		s.do(http.StatusCreated, "POST", "/v1/once/k", key, wire.OnceRequest{}, &run)
		lossy()
		s.do(http.StatusNoContent, "PUT", "/v1/once/k/result", "", wire.OnceResult{LeaseID: run.LeaseID}, nil)
	})
}

// TestUnknownOutcome checks that the server reports an unknown outcome while the store does not
// reply, and that the same key finds the outcome later.
func TestUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFlaky(mem.New(nil))
		s := open(t, store)
		store.lose.Store(1 << 20)
		began := time.Now()
		s.refused(http.StatusGatewayTimeout, "outcome-unknown", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "n"})
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the answer took %s", took)
		}
		s.refused(http.StatusGatewayTimeout, "outcome-unknown", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n", WaitMS: 20_000})
		store.lose.Store(0)
		time.Sleep(10 * time.Second) // by then the second request is given up, and the lock is free
		l := s.lease("n", key, wire.LeaseRequest{})
		store.lose.Store(1 << 20)
		s.refused(http.StatusGatewayTimeout, "outcome-unknown", "POST", "/v1/leases/renew", "", ref(l))
		s.refused(http.StatusGatewayTimeout, "outcome-unknown", "POST", "/v1/leases/release", "", ref(l))
		store.lose.Store(0)
		s.refused(http.StatusGone, "lost", "POST", "/v1/leases/release", "", ref(l)) // the lost request has released the lease
	})
}

// TestWaitDuringAnOutage checks that a wait survives a short outage of the store, and keeps its
// place.
func TestWaitDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		engine := mem.New(nil)
		s := open(t, &hook.Engine{Forward: driver.Forward{Engine: engine}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
			if away.Load() {
				return driver.ErrUnavailable
			}
			return send()
		}})
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		waiting := s.later(t.Context(), otherKey, wire.LeaseRequest{Name: "n", WaitMS: 50_000})
		time.Sleep(time.Second)
		away.Store(true)
		s.refused(http.StatusServiceUnavailable, "store-unavailable", "POST", "/v1/leases", "third-0123456789", wire.LeaseRequest{Name: "n"})
		time.Sleep(10 * time.Second)
		away.Store(false)
		time.Sleep(2 * time.Second)
		if n := queueLength(t, engine, "n"); n != 1 {
			t.Errorf("after the outage there are %d places, want one", n)
		}
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		if w := <-waiting; w.Code != http.StatusCreated {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// TestLostNotices checks that a waiter without notices acquires the lock after one refresh.
func TestLostNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, deaf{driver.Forward{Engine: mem.New(nil)}})
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		waiting := s.later(t.Context(), otherKey, wire.LeaseRequest{Name: "n", WaitMS: 50_000})
		time.Sleep(3 * time.Second)
		began := time.Now()
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		w := <-waiting
		if took := time.Since(began); w.Code != http.StatusCreated || took > 2*time.Second {
			t.Errorf("%d after %s", w.Code, took)
		}
	})
}

// A deaf engine sends no notices.
type deaf struct{ driver.Forward }

func (deaf) Watch(lockinfo.LeaseID) driver.Watch { return silence{} }

type silence struct{}

func (silence) C() <-chan driver.Notice { return nil }
func (silence) Stop()                   {}

// TestWaitWithoutQueue checks that a wait polls an engine without a queue, and that it is refused
// at its end if the lock is still held.
func TestWaitWithoutQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, driver.Forward{Engine: mem.New(nil), Without: driver.Capabilities{Queue: true}})
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		s.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n", WaitMS: 2_000})
		waiting := s.later(t.Context(), otherKey, wire.LeaseRequest{Name: "n", WaitMS: 50_000})
		time.Sleep(time.Second)
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		began := time.Now()
		w := <-waiting
		if took := time.Since(began); w.Code != http.StatusCreated || took > 250*time.Millisecond {
			t.Errorf("%d after %s", w.Code, took)
		}
	})
}

// TestSpentKey checks that a key is reported as spent if the store cannot grant its lease ID any
// more.
func TestSpentKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, spent{driver.Forward{Engine: mem.New(nil)}})
		s.refused(http.StatusConflict, "key-spent", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "n"})
	})
}

type spent struct{ driver.Forward }

func (spent) Acquire(context.Context, driver.AcquireRequest) (driver.AcquireReply, error) {
	return driver.AcquireReply{Outcome: driver.Spent}, nil
}

// TestPlacesAreRefreshedTogether checks that the server refreshes the places of many waiters in few
// requests.
func TestPlacesAreRefreshedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 500
		store := newFlaky(mem.New(nil))
		s := open(t, store).async()
		s.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		answers := make(chan int, waiters)
		for i := range waiters {
			go func() {
				w := s.send(t.Context(), "POST", "/v1/leases", keyOf(i), wire.LeaseRequest{Name: "n", WaitMS: 40_000})
				answers <- w.Code
			}()
		}
		time.Sleep(5 * time.Second)
		before := store.sends.Load()
		time.Sleep(30 * time.Second)
		if n, most := store.sends.Load()-before, int32(30/5*3*(waiters/driver.MaxBatch+2)); n > most {
			t.Errorf("%d requests in 30 s, want %d at most", n, most)
		}
		for range waiters {
			if code := <-answers; code != http.StatusAccepted {
				t.Errorf("%d, want a place", code)
			}
		}
	})
}

// TestSlowPart checks that a part of the store that hangs delays the results of the other parts
// only briefly.
func TestSlowPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &parts{Forward: driver.Forward{Engine: mem.New(nil)}}
		s := open(t, store)
		a, b := s.lease("a", key, wire.LeaseRequest{}), s.lease("b", key, wire.LeaseRequest{})
		store.hang = true
		began := time.Now()
		var all wire.LeaseResults
		s.do(http.StatusOK, "POST", "/v1/leases/renew", "", wire.LeaseRefs{Leases: []wire.LeaseRef{
			{Name: "a", LeaseID: a.LeaseID}, {Name: "b", LeaseID: b.LeaseID},
		}}, &all)
		if took := time.Since(began); all.Leases[0].Status != http.StatusOK || all.Leases[1].Code != "outcome-unknown" || took > 200*time.Millisecond {
			t.Errorf("after %s: %+v", took, all)
		}
		time.Sleep(20 * time.Second) // the hanging request is given up
	})
}

// parts is a store with two parts. One part can hang.
type parts struct {
	driver.Forward
	hang bool
}

func (*parts) Route(name string) uint32 { return uint32(name[0]) }

func (p *parts) Capabilities() driver.Capabilities {
	c := p.Forward.Capabilities()
	c.Routes = true
	return c
}

func (p *parts) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	if p.hang && reqs[0].Name == "b" {
		<-ctx.Done()
		return []error{ctx.Err()}
	}
	return p.Forward.Extend(ctx, reqs)
}

// TestExpiryCountsFromBeforeTheRequest checks INVARIANT I3: the remaining time of a lease counts
// from before the request to the store, however late its reply arrives. This holds after a
// hand-over, too.
func TestExpiryCountsFromBeforeTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, r hook.Request, send func() error) error {
			err := send()
			if r.Method == "Acquire" || r.Method == "Extend" {
				time.Sleep(700 * time.Millisecond)
			}
			return err
		}}
		s := open(t, slow)
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 10_000})
		if l.ExpiresInMS != 9_300 || l.TTLMS != 10_000 {
			t.Errorf("granted: %+v, want 9,300 ms left", l)
		}
		var renewed wire.Renewed
		renew := ref(l)
		renew.TTLMS = 10_000
		s.do(http.StatusOK, "POST", "/v1/leases/renew", "", renew, &renewed)
		if renewed.ExpiresInMS != 9_300 {
			t.Errorf("renewed: %+v, want 9,300 ms left", renewed)
		}
		waiting := s.later(t.Context(), otherKey, wire.LeaseRequest{Name: "n", TTLMS: 10_000, WaitMS: 20_000})
		time.Sleep(3 * time.Second)
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		if err := json.Unmarshal((<-waiting).Body.Bytes(), &l); err != nil || l.ExpiresInMS != 9_300 {
			t.Errorf("handed over: %+v, %v, want 9,300 ms left", l, err)
		}
	})
}

// TestNothingIsDoneLater checks that a request acquires nothing after the time that its caller
// waits for a reply.
func TestNothingIsDoneLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		var slow atomic.Bool
		s := open(t, &hook.Engine{Forward: driver.Forward{Engine: engine}, Each: func(ctx context.Context, _ hook.Request, send func() error) error {
			if slow.Load() {
				time.Sleep(time.Second)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return send()
		}})
		slow.Store(true)
		s.header = http.Header{"Holdfast-Timeout-Ms": {"900"}}
		s.refused(http.StatusGatewayTimeout, "outcome-unknown", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "n"})
		slow.Store(false)
		if lock, _ := engine.Inspect(t.Context(), "n"); len(lock.Holders) != 0 {
			t.Errorf("after the caller has given up there is %+v", lock.Holders)
		}
		s.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		began := time.Now()
		s.refused(http.StatusGatewayTimeout, "outcome-unknown", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n", WaitMS: 50_000})
		if took := time.Since(began); took != 900*time.Millisecond {
			t.Errorf("a wait took %s, want the 900ms that its caller has", took)
		}
		s.header.Set("Holdfast-Timeout-Ms", "-1")
		s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n"})
	})
}

// TestUncancelledLeaseCounts checks that a lease whose cancel failed counts towards the limit until
// it must have expired.
func TestUncancelledLeaseCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		store := away(away(mem.New(nil), "Acquire", broken.Load, true), "Release", broken.Load, false)
		s := openWith(t, store, server.Options{Limits: server.Limits{Leases: 1}})
		s.refused(http.StatusGatewayTimeout, "outcome-unknown", "POST", "/v1/leases", "", wire.LeaseRequest{Name: "n", TTLMS: 60_000})
		time.Sleep(10 * time.Second)
		broken.Store(false)
		s.refused(http.StatusTooManyRequests, "too-many-leases", "POST", "/v1/leases", "", wire.LeaseRequest{Name: "m"})
		time.Sleep(time.Minute)
		s.lease("m", "", wire.LeaseRequest{})
	})
}

// TestUnreleasedLeaseCounts checks the same for an engine's lease whose release failed.
func TestUnreleasedLeaseCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := away(mem.New(nil), "Release", func() bool { return true }, false)
		s := openWith(t, store, server.Options{Limits: server.Limits{Leases: 1}})
		req := drivertest.Request("n", time.Minute)
		s.do(http.StatusOK, "POST", "/v1/driver/acquire", "", req, nil)
		s.refused(http.StatusServiceUnavailable, "store-unavailable", "POST", "/v1/driver/release", "", driver.ReleaseRequest{Name: "n", LeaseID: req.LeaseID})
		s.refused(http.StatusTooManyRequests, "too-many-leases", "POST", "/v1/leases", "", wire.LeaseRequest{Name: "m"})
	})
}
