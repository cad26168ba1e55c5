package onetime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/onetime"
)

// A stopwatch makes requests of some kinds take a second each, and records which kinds overlap.
type stopwatch struct {
	mu      sync.Mutex
	running map[string]int
	most    map[string]int  // of one kind at a time
	met     map[string]bool // "a with b"
}

func (w *stopwatch) install(engine *faulty, ops ...string) {
	w.running, w.most, w.met = map[string]int{}, map[string]int{}, map[string]bool{}
	engine.set(func(_ context.Context, op string, _ int) error {
		if slices.Contains(ops, op) {
			w.mu.Lock()
			w.running[op]++
			w.most[op] = max(w.most[op], w.running[op])
			for other, n := range w.running {
				if other != op && n > 0 {
					w.met[op+" with "+other], w.met[other+" with "+op] = true, true
				}
			}
			w.mu.Unlock()
			time.Sleep(time.Second)
		}
		return nil
	}, func(_ context.Context, op string, _ int) error {
		if slices.Contains(ops, op) {
			w.mu.Lock()
			w.running[op]--
			w.mu.Unlock()
		}
		return nil
	})
}

// TestNestedLocks checks that pruning and redeeming exclude each other. Redeems of different tokens
// run together, and redeems of one token in sequence.
func TestNestedLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		s := newService(t, engine, &onetime.Options{PruneBatch: 2, PruneEvery: 24 * time.Hour, Memory: time.Hour})
		for range 10 {
			mustIssue(t, s, "old", 10*time.Millisecond)
		}
		early, late := make([]string, 8), make([]string, 8)
		for i := range early {
			early[i] = mustIssue(t, s, "payload", 100*time.Hour)
			late[i] = mustIssue(t, s, "payload", 100*time.Hour)
		}
		time.Sleep(2 * time.Hour)
		var w stopwatch
		w.install(engine, "prune", "redeem")
		var wg sync.WaitGroup
		for _, secret := range early {
			wg.Go(func() { wantRedeem(t, s, secret, "payload") })
		}
		synctest.Wait() // all are in progress
		for range 2 {
			wg.Go(func() {
				if _, err := s.Prune(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // and pruning waits for the redeems
		for _, secret := range late {
			wg.Go(func() { wantRedeem(t, s, secret, "payload") })
		}
		wg.Wait()
		if w.met["redeem with prune"] || w.most["prune"] != 1 {
			t.Errorf("a step of pruning ran beside another request: %v, %v", w.met, w.most)
		}
		if w.most["redeem"] != len(early) {
			t.Errorf("%d redeems at a time, want %d: the outer lock is shared", w.most["redeem"], len(early))
		}
		if n := engine.count("prune"); n < 6 || engine.left() != len(early)+len(late) {
			t.Errorf("%d steps of pruning, %d tokens left", n, engine.left())
		}

		secret := mustIssue(t, s, "payload", time.Hour)
		w.install(engine, "redeem")
		for i := range 5 {
			wg.Go(func() {
				_, err := s.Redeem(t.Context(), secret)
				if i > 0 && err != nil && !errors.Is(err, onetime.ErrRedeemed) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if w.most["redeem"] != 1 {
			t.Errorf("%d redeems of one token at a time, want 1: the inner lock is exclusive", w.most["redeem"])
		}
	})
}

// TestRedeemsGoOnBetweenBatches checks that redeems continue between the steps of a long pruning.
func TestRedeemsGoOnBetweenBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		s := newService(t, engine, &onetime.Options{PruneBatch: 10, PruneEvery: 24 * time.Hour, Memory: time.Hour})
		secret := mustIssue(t, s, "payload", 100*time.Hour)
		for range 300 {
			mustIssue(t, s, "old", 10*time.Millisecond)
		}
		time.Sleep(2 * time.Hour)
		steps := engine.count("prune")
		var w stopwatch
		w.install(engine, "prune")
		done := make(chan struct{})
		go func() {
			defer close(done)
			if n, err := s.Prune(t.Context()); n != 300 || err != nil {
				t.Errorf("Prune = %d, %v; want 300", n, err)
			}
		}()
		time.Sleep(3500 * time.Millisecond) // in the middle of the fourth step
		start := time.Now()
		wantRedeem(t, s, secret, "payload")
		if took := time.Since(start); took > 500*time.Millisecond {
			t.Errorf("the redeem took %s, want it after the step that runs, in 500ms", took)
		}
		if n := engine.count("prune") - steps; n > 5 {
			t.Errorf("the redeem waited for %d steps", n)
		}
		<-done
		if n := engine.count("prune") - steps; n != 30 && n != 31 {
			t.Errorf("%d steps for 300 tokens, want 30", n)
		}
	})
}

// TestPruneUnderConcurrentRedeems checks that 32 workers get every payload once while two others
// prune, and that only expired tokens are deleted.
func TestPruneUnderConcurrentRedeems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		s := newService(t, engine, &onetime.Options{PruneBatch: 3, Memory: onetime.MinMemory, PruneEvery: 24 * time.Hour})
		ctx, stop := context.WithCancel(t.Context())
		var pruners, workers sync.WaitGroup
		for range 2 {
			pruners.Go(func() {
				for ctx.Err() == nil {
					if _, err := s.Prune(ctx); err != nil && ctx.Err() == nil {
						t.Errorf("Prune: %v", err)
					}
					time.Sleep(rand.N(time.Second))
				}
			})
		}
		const rounds = 20
		redeemed := make([][]string, 32)
		for worker := range redeemed {
			workers.Go(func() {
				for i := range rounds {
					payload := fmt.Sprint(worker, " ", i)
					secret := mustIssue(t, s, payload, time.Hour)
					mustIssue(t, s, "short", 10*time.Millisecond)
					time.Sleep(rand.N(20 * time.Second))
					wantRedeem(t, s, secret, payload)
					redeemed[worker] = append(redeemed[worker], secret)
				}
			})
		}
		workers.Wait()
		during := len(engine.tokens) - engine.left()
		time.Sleep(2 * time.Minute)
		stop()
		pruners.Wait()
		for _, secret := range slices.Concat(redeemed...) {
			if _, err := s.Redeem(t.Context(), secret); !errors.Is(err, onetime.ErrRedeemed) {
				t.Errorf("second Redeem: %v", err)
			}
		}
		if during == 0 || engine.left() != 32*rounds || len(engine.tokens) != 2*32*rounds {
			t.Errorf("%d tokens deleted meanwhile, %d of %d left; want %d", during, engine.left(), len(engine.tokens), 32*rounds)
		}
	})
}

// TestSelfPruningStoreNeedsOneRequest checks that on a store that prunes itself a redeem is one
// request, without locks and pruning.
func TestSelfPruningStoreNeedsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.selfPruning = true
		var pruned atomic.Int64
		s := newService(t, engine, &onetime.Options{Observer: func(e observe.Event) {
			if e.Kind == observe.TokensPruned {
				pruned.Add(1)
			}
		}})
		before := runtime.NumGoroutine()
		for range 10 {
			wantRedeem(t, s, mustIssue(t, s, "payload", time.Hour), "payload")
		}
		time.Sleep(time.Second)                          // until all events have arrived
		if n := runtime.NumGoroutine() - before; n > 0 { // negative if one of an earlier test has ended
			t.Errorf("%d goroutines were started", n)
		}
		time.Sleep(100 * time.Hour)
		if n := pruned.Load(); n != 0 {
			t.Errorf("%d rounds of pruning by itself", n)
		}
		if n, err := s.Prune(t.Context()); n != 0 || err != nil {
			t.Errorf("Prune = %d, %v", n, err)
		}
		if engine.count("redeem") != 10 || engine.count("deposit") != 10 || engine.total() != 20 {
			t.Errorf("requests: %v, want 10 deposits and 10 redeems", engine.calls)
		}
	})
}

// TestMadeUpTokensLeaveNothing checks that an invented token acquires no lock. The store would have
// to remember the fencing token of such a lock.
func TestMadeUpTokensLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		s := newService(t, engine, nil)
		elsewhere := newService(t, newFaulty(), nil)
		for range 100 {
			_, err := s.Redeem(t.Context(), mustIssue(t, elsewhere, "", time.Hour))
			wantErr(t, err, onetime.ErrUnknown)
		}
		if n := engine.count("acquire"); n != 0 || engine.left() != 0 {
			t.Errorf("%d locks were asked for, %d tokens are kept", n, engine.left())
		}

		secret := mustIssue(t, s, "payload", time.Hour)
		wantRedeem(t, s, secret, "payload")
		id, _ := s.ID(secret)
		want := map[string]bool{"onetime": true, "onetime/" + id[:32]: true}
		if fmt.Sprint(engine.names) != fmt.Sprint(want) {
			t.Errorf("locks: %v, want %v", engine.names, want)
		}
	})
}

// TestLostLocksDoNotCostThePayload checks that a redeem succeeds even if its lock is lost or cannot
// be released.
func TestLostLocksDoNotCostThePayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		client := newClient(t, engine, nil)
		s, err := onetime.New(client, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		secret := mustIssue(t, s, "payload", time.Hour)
		engine.set(func(ctx context.Context, op string, n int) error {
			if op == "redeem" {
				for name := range engine.names {
					lock, _ := engine.Inspect(ctx, name)
					for _, h := range lock.Holders {
						engine.Release(ctx, driver.ReleaseRequest{Name: name, LeaseID: h.LeaseID})
					}
				}
			}
			return nil
		}, nil)
		wantRedeem(t, s, secret, "payload")
		engine.heal()
		for name := range engine.names {
			if lock, err := client.Inspect(t.Context(), name); err != nil || len(lock.Holders) > 0 {
				t.Errorf("%q is left locked: %v", name, err)
			}
		}
		// A caller that does not get the lock redeems nothing.
		secret = mustIssue(t, s, "payload", time.Hour)
		lease, err := client.Acquire(t.Context(), "onetime", nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = s.Redeem(ctx, secret)
		wantErr(t, err, context.DeadlineExceeded, holdfast.ErrHeld)
		lease.Release(t.Context())
		wantRedeem(t, s, secret, "payload")
	})
}
