package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// TestPlainLost checks that each request of a call whose connection was given up is repeated alone,
// and finds its lease if it was granted (INVARIANT I6). The repeat of a release cannot find out,
// and the outcome of a call that was lost in another way is unknown.
func TestPlainLost(t *testing.T) {
	given, silent := fmt.Errorf("test: %w", rediscore.ErrGivenUp), errors.New("test: no answer")
	for _, drop := range []bool{false, true} {
		for _, cause := range []error{given, silent} {
			t.Run(fmt.Sprintf("drop %v, %v", drop, cause), func(t *testing.T) {
				untilTogether(t, func(t *testing.T, admin rueidis.Client, e *Engine, g *gate) bool {
					g.drop, g.cause = drop, cause
					return plainLost(t, admin, e, g)
				})
			})
		}
	}
}

func plainLost(t *testing.T, admin rueidis.Client, e *Engine, g *gate) bool {
	requests, replies, errs := make([]driver.AcquireRequest, 4), make([]driver.AcquireReply, 4), make([]error, 4)
	ask := func(request func(i int)) (all []func()) {
		for i := range requests {
			all = append(all, func() { request(i) })
		}
		return all
	}
	repeated := errors.Is(g.cause, rediscore.ErrGivenUp)
	g.lose = len(requests)
	if !g.together(t, acquiring(e), ask(func(i int) {
		requests[i] = drivertest.Request(fmt.Sprint("n/", i), time.Minute)
		replies[i], errs[i] = e.Acquire(t.Context(), requests[i])
	})...) {
		return false
	}
	there := int64(0)
	if repeated || !g.drop {
		there = 1
	}
	for i, req := range requests {
		if repeated != (errs[i] == nil) || driver.Definite(errs[i]) || repeated && replies[i].Outcome != driver.Granted {
			t.Errorf("acquire: %+v, %v", replies[i], errs[i])
		}
		if n := number(t, admin, "EXISTS", req.Name); n != there {
			t.Fatalf("%s: %d locks, want %d", req.Name, n, there)
		}
		if there == 1 && repeated {
			if token := number(t, admin, "GET", keyspace{}.fence(req.Name)); token != int64(replies[i].Token) {
				t.Errorf("%s: token %d, the last is %d", req.Name, replies[i].Token, token)
			}
		}
	}
	if there == 0 {
		return true // there is nothing to release
	}
	g.lose = len(requests)
	if !g.together(t, releasing(e), ask(func(i int) {
		errs[i] = e.Release(t.Context(), driver.ReleaseRequest{Name: requests[i].Name, LeaseID: requests[i].LeaseID})
	})...) {
		return false
	}
	for i, req := range requests {
		if certain := repeated && g.drop; certain != (errs[i] == nil) || driver.Definite(errs[i]) {
			t.Errorf("release: %v", errs[i])
		}
		if n := number(t, admin, "EXISTS", req.Name); n != 0 {
			t.Errorf("%s is there after its release", req.Name)
		}
	}
	return true
}

// TestPlainCancelled checks that the pending request of a caller that gives up is never sent, and
// that one in flight is cancelled by the first request that reaches the store, even if the plain
// request arrives later. INVARIANT I5.
func TestPlainCancelled(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	e, g := behindGate(t, server)
	g.shut()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	requests := make([]driver.AcquireRequest, 8)
	for i := range requests {
		requests[i] = drivertest.Request(fmt.Sprint("n/", i), time.Minute)
		before := waiting()
		all.Go(func() {
			_, err := e.Acquire(ctx, requests[i])
			if !errors.Is(err, context.Canceled) || driver.Definite(err) {
				t.Errorf("acquire: %v", err)
			}
		})
		drivertest.Eventually(t, "a request waits", func() bool { return waiting() > before })
	}
	under := g.seen()
	cancel()
	all.Wait()
	for _, req := range requests {
		if g.carries(req.Name) {
			err := g.around.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID, Cancel: true})
			wantIs(t, "cancel", err, driver.ErrLost)
		}
	}
	close(g.open)
	drivertest.Cycle(t, e, "later") // follows them on the connection
	if n := g.seen(); n != under+2 {
		t.Errorf("%d calls, want %d, and two of a later pair", n, under)
	}
	for _, req := range requests {
		if n := number(t, admin, "EXISTS", req.Name, keyspace{}.fence(req.Name)); n != 0 {
			t.Errorf("%s has left something behind", req.Name)
		}
	}
}

// TestPlainOverlaps checks that no lease overlaps another, ours or a foreign client's, whichever
// scripts were used. INVARIANTS I1, I2.
func TestPlainOverlaps(t *testing.T) {
	const names, clients, rounds = 24, 32, 100
	server := testsvc.Redis(t)
	engines := []*Engine{open(t, server.URL), open(t, server.URL)}
	admin := plain(t, server)
	var holders [names]atomic.Int32
	var tokens [names]atomic.Uint64
	var pairs, foreign atomic.Int64
	inside := func(i int, who string) func() {
		if n := holders[i].Add(1); n != 1 {
			t.Errorf("%s: %d have lock %d", who, n, i)
		}
		return func() { holders[i].Add(-1) }
	}
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			e := engines[c%len(engines)]
			for range rounds {
				i := rand.IntN(names)
				req := drivertest.Request(fmt.Sprint("n/", i), time.Minute)
				reply, err := e.Acquire(t.Context(), req)
				if err != nil {
					t.Error(err)
				}
				if err != nil || reply.Outcome != driver.Granted {
					continue
				}
				leave := inside(i, "a lease")
				if last := tokens[i].Swap(reply.Token); last >= reply.Token {
					t.Errorf("lock %d: token %d after %d", i, reply.Token, last)
				}
				runtime.Gosched()
				leave()
				pairs.Add(1)
				if err := e.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for c := range 4 {
		all.Go(func() {
			for range rounds {
				i := rand.IntN(names)
				key := fmt.Sprint("n/", i)
				if do(t, admin, "SET", key, fmt.Sprint("foreign", c), "NX", "PX", "60000").Error() != nil {
					continue
				}
				leave := inside(i, "a foreign client")
				runtime.Gosched()
				leave()
				foreign.Add(1)
				do(t, admin, "DEL", key)
			}
		})
	}
	all.Wait()
	if pairs.Load() < clients*rounds/4 || foreign.Load() < rounds {
		t.Errorf("%d pairs, %d of foreign clients: the test proves little", pairs.Load(), foreign.Load())
	}
}
