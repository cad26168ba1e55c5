package httplock_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A counter counts requests by their paths.
type counter struct {
	acquires, streams, others atomic.Int64
	open                      atomic.Int64 // streams that are open now
}

func (c *counter) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/driver/acquire":
			c.acquires.Add(1)
		case "/v1/driver/news":
			c.streams.Add(1)
			c.open.Add(1)
			defer c.open.Add(-1)
		default:
			c.others.Add(1)
		}
		h.ServeHTTP(w, r)
	})
}

// A pair is two servers of one store, and an engine that knows both servers.
type pair struct {
	*network
	store     *mem.Engine
	engine    *httplock.Engine
	used      *host // the server that the engine uses
	left      *host
	usedCount *counter
	leftCount *counter
}

func newPair(t *testing.T) *pair {
	p := &pair{network: &network{}, store: mem.New(nil), usedCount: &counter{}, leftCount: &counter{}}
	p.used = p.with(t, first, p.store, nil, p.usedCount.around)
	p.left = p.with(t, second, p.store, nil, p.leftCount.around)
	p.engine = p.open(t, first+","+second)
	if p.leftCount.others.Load() > 0 {
		p.used, p.left, p.usedCount, p.leftCount = p.left, p.used, p.leftCount, p.usedCount
	}
	return p
}

// TestFailover checks what happens when the server that an engine uses is killed or drains: places
// keep their order, and waiters receive notices through the other server.
func TestFailover(t *testing.T) {
	for name, end := range map[string]func(h *host){
		"killed": (*host).kill,
		"drains": func(h *host) { h.drain() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				held := drivertest.Request("job", time.Hour)
				drivertest.Granted(t, p.store, held)
				var places []driver.AcquireRequest
				var watches []driver.Watch
				for range 5 {
					req, w := drivertest.Queued(t, p.engine, "job", time.Minute)
					places, watches = append(places, req), append(watches, w)
				}
				time.Sleep(time.Second)
				if p.usedCount.open.Load() != 1 || p.leftCount.streams.Load() != 0 {
					t.Fatal("the engine does not listen to the server that it asks")
				}
				end(p.used)
				time.Sleep(2 * time.Second)
				if p.leftCount.open.Load() != 1 || p.leftCount.acquires.Load() != 5 {
					t.Fatalf("%d streams and %d places at the other server, want 1 and 5", p.leftCount.open.Load(), p.leftCount.acquires.Load())
				}
				for i, w := range watches {
					drivertest.Release(t, p.store, held)
					began := time.Now()
					if notice := <-w.C(); notice.Token != 0 {
						t.Fatalf("place %d: received token %d, which may be that of an earlier lease of the same ID", i+1, notice.Token)
					}
					reply := p.engine.Refresh(t.Context(), []driver.RefreshRequest{{Name: "job", LeaseID: places[i].LeaseID, WaiterTTL: time.Minute}})[0]
					if took := time.Since(began); reply.Err != nil || reply.Outcome != driver.Granted || took > 0 {
						t.Fatalf("place %d: %+v after %s, want the lock at once", i+1, reply, took)
					}
					held = places[i]
				}
			})
		})
	}
}

// TestFailoverBack: an engine that avoids all servers sends to the one that failed first, which may
// have come back.
func TestFailoverBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		name := first
		if p.used != p.host(first) {
			name = second
		}
		p.used.kill()
		drivertest.Granted(t, p.engine, drivertest.Request("a", time.Hour))
		p.with(t, name, p.store, nil)
		time.Sleep(time.Second)
		p.left.kill()
		for _, name := range []string{"b", "c"} {
			drivertest.Granted(t, p.engine, drivertest.Request(name, time.Hour))
		}
	})
}

// TestFailoverOfAClient checks that a client's lease and its waits continue at the other server
// after the first one was killed.
func TestFailoverOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		client, err := holdfast.New(p.engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		lease, err := client.Acquire(t.Context(), "job", nil)
		if err != nil {
			t.Fatal(err)
		}
		type result struct {
			lease *holdfast.Lease
			err   error
		}
		waits := make(chan result, 1)
		go func() {
			l, err := client.Acquire(t.Context(), "job", nil)
			waits <- result{l, err}
		}()
		time.Sleep(time.Second)
		p.used.kill()
		time.Sleep(time.Minute)
		if err := lease.Context().Err(); err != nil {
			t.Fatalf("the lease: %v", err)
		}
		began := time.Now()
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := <-waits
		if took := time.Since(began); r.err != nil || took > 50*time.Millisecond {
			t.Fatalf("%v after %s", r.err, took)
		}
		if err := r.lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLostPlaceIsNotMadeAnew checks that the engine does not queue again under the same lease ID
// when a place was lost while no server could be reached. A notice for the earlier place could
// still arrive.
func TestLostPlaceIsNotMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		drivertest.Granted(t, p.store, drivertest.Request("job", time.Hour))
		_, w := drivertest.Queued(t, p.engine, "job", 2*time.Second)
		time.Sleep(time.Second)
		p.left.kill()
		p.used.kill()
		time.Sleep(5 * time.Second)
		if lock, err := p.store.Inspect(t.Context(), "job"); err != nil || lock.QueueLength != 0 {
			t.Fatalf("%v, %v", lock, err)
		}
		p.with(t, first, p.store, nil)
		select {
		case <-w.C(): // the waiter must look again
		case <-time.After(5 * time.Second):
			t.Error("the client that lost its place gets no notice to look")
		}
		if lock, err := p.store.Inspect(t.Context(), "job"); err != nil || lock.QueueLength != 0 {
			t.Errorf("%v, %v: want no place", lock, err)
		}
	})
}

// TestNothingIsSent checks that an idle engine sends no request, that a watch without a place sends
// none, and that all places share one stream.
func TestNothingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		sent := func() int64 {
			return p.usedCount.acquires.Load() + p.usedCount.streams.Load() + p.usedCount.others.Load() + p.leftCount.others.Load()
		}
		before := sent()
		for range 100 {
			defer p.engine.Watch(lockinfo.NewLeaseID()).Stop()
		}
		defer p.engine.OnLoss(func(driver.Loss) {})()
		time.Sleep(time.Hour)
		if n := sent() - before; n != 0 {
			t.Errorf("%d requests were sent that nobody has asked for", n)
		}
		drivertest.Granted(t, p.store, drivertest.Request("job", 2*time.Hour))
		for range 20 {
			drivertest.Queued(t, p.engine, "job", 2*time.Hour)
		}
		time.Sleep(time.Hour)
		if n := p.usedCount.streams.Load(); n != 1 {
			t.Errorf("%d streams for 20 places, want 1", n)
		}
	})
}

// TestHandOverBeforeTheAnswer checks that a waiter receives its notice at once if the lock is
// handed to its place before its own request is answered. There is no stream yet.
func TestHandOverBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		held := drivertest.Request("job", time.Hour)
		drivertest.Granted(t, store, held)
		_, e := served(t, &hook.Engine{Forward: driver.Forward{Engine: store}, Each: func(_ context.Context, r hook.Request, send func() error) error {
			err := send()
			if r.Method == "Acquire" {
				drivertest.Release(t, store, held)
			}
			return err
		}})
		_, w := drivertest.Queued(t, e, "job", time.Hour)
		began := time.Now()
		drivertest.HandedOver(t, w)
		if took := time.Since(began); took != 0 {
			t.Errorf("notified after %s", took)
		}
	})
}

// TestLossesAreTold checks that a holder learns of the loss of its lease through the stream, though
// it never waits.
func TestLossesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, e := served(t, mem.New(nil))
		client, err := holdfast.New(e, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		lease, err := client.Acquire(t.Context(), "job", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		began := time.Now()
		if _, err := e.Break(t.Context(), driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: "job", Token: lease.Token(), Author: "ada"}); err != nil {
			t.Fatal(err)
		}
		<-lease.Context().Done()
		if took := time.Since(began); took != 0 {
			t.Errorf("the holder knew after %s", took)
		}
	})
}
