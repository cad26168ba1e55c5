package onetime_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/onetime"
)

// TestPrunesByItself checks that the pruner runs from the first use until Close, and prunes in
// time. It reports a failure, and continues.
func TestPrunesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		var mu sync.Mutex
		var failed []error
		pruned := 0
		observer := func(e observe.Event) {
			mu.Lock()
			defer mu.Unlock()
			pruned += e.Count
			if e.Kind == observe.PruneFailed {
				failed = append(failed, e.Err)
			}
		}
		s, err := onetime.New(newClient(t, engine, nil), &onetime.Options{
			PruneEvery: time.Hour, Memory: 2 * time.Hour, PruneBatch: 7, Observer: observer,
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Hour)
		if n := engine.total(); n != 0 {
			t.Errorf("%d requests before the first use", n)
		}
		secrets := map[string]string{}
		for i := range 50 {
			payload := fmt.Sprint("payload ", i)
			secrets[payload] = mustIssue(t, s, payload, time.Hour)
		}
		wantRedeem(t, s, secrets["payload 1"], "payload 1")

		time.Sleep(3*time.Hour - time.Minute)
		if n := engine.left(); n != 50 {
			t.Errorf("%d tokens before Memory has passed, want 50", n)
		}
		engine.set(lose("prune", always, driver.ErrUnavailable), nil)
		time.Sleep(2 * time.Hour)
		engine.heal()
		mu.Lock()
		if len(failed) == 0 || len(failed) > 3 {
			t.Errorf("%d failures in two hours were reported", len(failed))
		}
		for _, err := range failed {
			wantErr(t, err, holdfast.ErrUnavailable)
		}
		mu.Unlock()
		time.Sleep(time.Hour + time.Minute)
		mu.Lock()
		if n := engine.left(); n != 0 || pruned != 50 {
			t.Errorf("%d tokens, %d were reported as pruned; want 0 and 50", n, pruned)
		}
		mu.Unlock()

		steps := engine.count("prune")
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Hour)
		if n := engine.count("prune") - steps; n != 0 {
			t.Errorf("%d steps of pruning after Close", n)
		}
		// A pruner that still runs would keep the bubble from ending.
	})
}

// TestRedeemStartsThePruner checks that a redeem starts the pruner, because the issuer may be
// another process.
func TestRedeemStartsThePruner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		issuer := newService(t, engine, nil)
		secret := mustIssue(t, issuer, "payload", 10*time.Millisecond)
		issuer.Close(t.Context())
		s := newService(t, engine, nil)
		s.Redeem(t.Context(), secret)
		time.Sleep(25 * time.Hour)
		if n := engine.left(); n != 0 {
			t.Errorf("%d tokens are kept", n)
		}
		if n := engine.count("prune"); n < 25*6 || n > 25*6*4/3+1 {
			t.Errorf("%d steps of pruning in 25 hours, want one each 7.5 to 10 minutes", n)
		}
	})
}

// TestCloseWhilePruning checks that Close ends a step that hangs. If the engine ignores this, Close
// returns when ctx ends.
func TestCloseWhilePruning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		s := newService(t, engine, nil)
		mustIssue(t, s, "payload", time.Hour)
		engine.set(hang("prune", always), nil)
		for engine.count("prune") == 0 {
			time.Sleep(time.Second)
		}
		start := time.Now()
		if err := s.Close(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("Close = %v after %s, want it to end the step", err, time.Since(start))
		}

		// An engine that ignores the end of its context.
		s = newService(t, engine, nil)
		mustIssue(t, s, "payload", time.Hour)
		engine.set(func(_ context.Context, op string, _ int) error {
			if op == "prune" {
				time.Sleep(time.Minute)
			}
			return nil
		}, nil)
		for n := engine.count("prune"); engine.count("prune") == n; {
			time.Sleep(time.Second)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wantErr(t, s.Close(ctx), context.DeadlineExceeded)
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}
