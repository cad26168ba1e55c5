package leasedoor_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// later sends a request in the background.
func (s *site) later(ctx context.Context, key string, req wire.LeaseRequest) <-chan *httptest.ResponseRecorder {
	answer := make(chan *httptest.ResponseRecorder, 1)
	go func() { answer <- s.send(ctx, "POST", "/v1/leases", key, req) }()
	synctest.Wait()
	return answer
}

// async makes the requests of s ask for status 202 instead of a refusal, as a caller does that will
// ask again.
func (s *site) async() *site {
	s.header = http.Header{"Prefer": {"handling=lenient, Respond-Async; foo"}}
	return s
}

// queueLength returns how many waiters a name has.
func queueLength(t *testing.T, engine driver.Engine, name string) int {
	t.Helper()
	lock, err := engine.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return lock.QueueLength
}

// TestWaitInPieces checks that several requests at several servers are one wait: the place survives
// between them, and later waiters stay behind.
func TestWaitInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine).async(), open(t, engine).async()
		l := a.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		first := wire.LeaseRequest{Name: "n", TTLMS: 10_000, WaitMS: 3_000}
		var q wire.Queued
		a.do(http.StatusAccepted, "POST", "/v1/leases", otherKey, first, &q)
		if q.Place != 1 || q.QueueLength != 1 || q.PlaceExpiresInMS != 5_000 || len(q.Holders) != 1 || q.Holders[0].User != "anonymous" {
			t.Errorf("queued: %+v, want the first place for 5 s", q)
		}
		second := b.later(t.Context(), "second-0123456789", wire.LeaseRequest{Name: "n", WaitMS: 60_000})
		for _, s := range []*site{b, a, b} {
			time.Sleep(4900 * time.Millisecond)
			s.do(http.StatusAccepted, "POST", "/v1/leases", otherKey, first, &q)
			if q.Place != 1 || q.QueueLength != 2 {
				t.Errorf("queued: %+v, want the first place of two", q)
			}
		}
		a.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil) // the first waiter has no connection now
		time.Sleep(time.Second)
		var mine wire.Lease
		b.do(http.StatusOK, "POST", "/v1/leases", otherKey, first, &mine)
		if mine.ExpiresInMS != 10_000 || !mine.Repeated {
			t.Errorf("after a hand-over the lease is %+v, want it to last for its TTL", mine)
		}
		a.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(mine), nil)
		if w := <-second; w.Code != http.StatusCreated {
			t.Errorf("the second is answered %d %s", w.Code, w.Body)
		}
	})
}

// TestLongestPiece checks that one request waits 55 s at most.
func TestLongestPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil)).async()
		s.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		began := time.Now()
		s.do(http.StatusAccepted, "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n", WaitMS: 3_600_000}, nil)
		if took := time.Since(began); took != 55*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestHandOver checks that a waiter is granted the lock at the moment of its release, for the whole
// TTL.
func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		l := a.lease("n", key, wire.LeaseRequest{TTLMS: 60_000})
		next := b.later(t.Context(), otherKey, wire.LeaseRequest{Name: "n", WaitMS: 50_000})
		time.Sleep(20 * time.Second)
		a.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		synctest.Wait()
		select {
		case w := <-next:
			if w.Code != http.StatusCreated {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		default:
			t.Error("the lock is free, and the waiter is not answered")
		}
		if lock, _ := engine.Inspect(t.Context(), "n"); len(lock.Holders) != 1 || lock.Holders[0].ExpiresIn != 30*time.Second {
			t.Errorf("the lease is %+v, want it to last for its TTL", lock.Holders)
		}
	})
}

// TestHangingUpKeepsThePlace checks that a caller that hangs up keeps its place until its waiter
// TTL expires, and no longer.
func TestHangingUpKeepsThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := open(t, engine)
		s.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		ctx, hangUp := context.WithCancel(t.Context())
		waiting := s.later(ctx, otherKey, wire.LeaseRequest{Name: "n", WaitMS: 50_000})
		time.Sleep(20 * time.Second)
		hangUp()
		<-waiting
		time.Sleep(3 * time.Second)
		if n := queueLength(t, engine, "n"); n != 1 {
			t.Errorf("3 s after the caller has hung up there are %d places, want its own", n)
		}
		time.Sleep(2 * time.Second)
		if n := queueLength(t, engine, "n"); n != 0 {
			t.Errorf("5 s after the caller has hung up there are %d places", n)
		}
	})
}

// TestDrainEndsWaits checks that a draining server ends waits at once, and that their places
// continue at another server.
func TestDrainEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		l := a.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		waiting := a.later(t.Context(), otherKey, wire.LeaseRequest{Name: "n", WaitMS: 50_000})
		time.Sleep(10 * time.Second)
		a.server.Drain()
		synctest.Wait()
		select {
		case w := <-waiting:
			a.problem(w, http.StatusServiceUnavailable, "draining")
		default:
			t.Fatal("the waiter is not answered")
		}
		if n := queueLength(t, engine, "n"); n != 1 {
			t.Errorf("there are %d places, want that of the waiter", n)
		}
		p := a.refused(http.StatusServiceUnavailable, "draining", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n"})
		if p.Detail == "" {
			t.Error("no detail")
		}
		a.refused(http.StatusServiceUnavailable, "draining", "POST", "/v1/leases", "third-0123456789abcd", wire.LeaseRequest{Name: "free"})
		a.do(http.StatusOK, "POST", "/v1/leases/renew", "", ref(l), nil)
		a.do(http.StatusNoContent, "POST", "/v1/leases/check", "", ref(l), nil)
		a.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		b.do(http.StatusOK, "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n"}, nil)
	})
}
