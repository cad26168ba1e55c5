package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

func TestKeepAliveHoldsForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", nil)
		token := l.Token()
		time.Sleep(6 * time.Hour)
		if !l.Valid() || l.Token() != token || holders(t, engine.Engine, "a") != 1 {
			t.Errorf("after 6 hours: valid %v, cause %v", l.Valid(), context.Cause(l.Context()))
		}
		if n := engine.count("extend"); n < 6*3600/6 || n > 6*3600/4 {
			t.Errorf("%d renewals in 6 hours, want about one in 5 s", n)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// One scheduler: no goroutine per lease, and renewals in batches.
func TestKeepAliveBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		before := runtime.NumGoroutine()
		var leases []*holdfast.Lease
		for i := range 300 {
			leases = append(leases, mustAcquire(t, c, fmt.Sprint("name ", i), nil))
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
		}
		if n := runtime.NumGoroutine() - before; n > 0 {
			t.Errorf("%d goroutines for 300 leases, want none", n)
		}
		time.Sleep(5 * time.Minute)
		for _, l := range leases {
			if !l.Valid() {
				t.Fatalf("%s: %v", l.Name(), context.Cause(l.Context()))
			}
			l.Release(t.Context())
		}
		// 3 or 4 batches of at most 128 every 5 s.
		if n := engine.count("extend"); n > 4*62 {
			t.Errorf("%d requests in 5 minutes for 300 leases, want about 240", n)
		}
		for _, size := range engine.sizes {
			if size > driver.MaxBatch {
				t.Fatalf("a batch of %d, the limit is %d", size, driver.MaxBatch)
			}
		}
	})
}

// INVARIANT I9: a failed renewal is retried until the deadline.
func TestKeepAliveSurvivesBlips(t *testing.T) {
	blips := map[string]func(context.Context, string) error{
		"refused":      fail(driver.ErrUnavailable, "extend"),
		"reply lost":   fail(errLink, "extend"),
		"not answered": hang("extend"),
	}
	for name, blip := range blips {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				l := mustAcquire(t, c, "a", nil)
				for range 10 {
					engine.set(blip, nil)
					time.Sleep(14 * time.Second)
					engine.heal()
					time.Sleep(20 * time.Second)
				}
				if !l.Valid() {
					t.Errorf("lost in blips of 14 s with a TTL of 30 s: %v", context.Cause(l.Context()))
				}
				l.Release(t.Context())
			})
		})
	}
}

// INVARIANT I3: cut off, the holder is told at the deadline, which is before
// the store's expiry, and no sooner and no later.
func TestKeepAliveTellsLossAtDeadline(t *testing.T) {
	for name, fault := range map[string]func(context.Context, string) error{
		"fails": fail(errLink, "extend"),
		"hangs": hang("extend"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				l := mustAcquire(t, c, "a", nil)
				time.Sleep(time.Minute)
				engine.set(fault, nil)
				<-l.Context().Done()
				if now := time.Now(); !now.Equal(l.Deadline()) {
					t.Errorf("told %s after the deadline", now.Sub(l.Deadline()))
				}
				why := context.Cause(l.Context())
				wantErr(t, why, holdfast.ErrLost)
				if told := strings.HasSuffix(why.Error(), "(the last renewal: outcome is unknown: connection reset)"); told != (name == "fails") {
					t.Errorf("the loss says: %v", why)
				}
				if holders(t, engine.Engine, "a") != 1 {
					t.Error("told after the store's expiry")
				}
				engine.heal()
				time.Sleep(time.Minute)
				if l.Valid() || l.Remaining() != 0 {
					t.Error("loss is not final")
				}
				wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLost)
				wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
			})
		})
	}
}

func TestKeepAliveTellsWhenTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", nil)
		engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: l.ID()}) // by an operator
		start := time.Now()
		<-l.Context().Done()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("told after %s, want within 5 s", took)
		}
		wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
	})
}

// A store that takes 0.4 of the TTL to answer keeps the lease; one that takes
// longer than the TTL loses it, before the expiry.
func TestKeepAliveWithSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, &holdfast.Options{TTL: 10 * time.Second})
		l := mustAcquire(t, c, "a", nil)
		engine.set(delay(2*time.Second), delay(2*time.Second))
		time.Sleep(10 * time.Minute)
		if !l.Valid() {
			t.Fatalf("latency of 0.4 TTL: %v", context.Cause(l.Context()))
		}
		engine.set(delay(6*time.Second), delay(6*time.Second))
		select {
		case <-l.Context().Done():
		case <-time.After(time.Minute):
			t.Fatal("latency of 1.2 TTL: still trusted after a minute")
		}
		if holders(t, engine.Engine, "a") != 1 {
			t.Error("told after the store's expiry")
		}
		engine.heal()
		l.Release(t.Context())
	})
}

func TestMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		c := newClient(t, engine, nil)
		start := time.Now()
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MaxHold: 5 * time.Minute})
		if err := l.Extend(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		<-l.Context().Done()
		held := time.Since(start)
		if held > 5*time.Minute || held < 5*time.Minute-4*time.Second {
			t.Errorf("held for %s, want 5m less the margin", held)
		}
		cause := context.Cause(l.Context())
		wantErr(t, cause, holdfast.ErrMaxHold)
		wantErr(t, cause, holdfast.ErrLost)
		time.Sleep(4 * time.Second)
		if holders(t, engine, "a") != 0 {
			t.Error("the store still holds the lease after MaxHold")
		}
		l.Release(t.Context())
	})
}

func TestMaxHoldShorterThanTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MaxHold: 2 * time.Second})
		<-l.Context().Done()
		wantErr(t, context.Cause(l.Context()), holdfast.ErrMaxHold)
	})
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{Progress: time.Minute})
		for range 30 {
			time.Sleep(50 * time.Second)
			l.Progress()
		}
		if !l.Valid() {
			t.Fatalf("lost in spite of progress: %v", context.Cause(l.Context()))
		}
		time.Sleep(75 * time.Second) // stalled, but the deadline is still ahead
		l.Progress()
		time.Sleep(50 * time.Second)
		if !l.Valid() {
			t.Fatalf("progress before the deadline did not resume the keep-alive: %v", context.Cause(l.Context()))
		}
		start := time.Now()
		<-l.Context().Done()
		if took := time.Since(start); took > 90*time.Second {
			t.Errorf("lost %s after the last progress, want within 1m and a TTL", took+50*time.Second)
		}
		wantErr(t, context.Cause(l.Context()), holdfast.ErrStalled)
	})
}

// INVARIANT I9: no renewal is sent after Release has begun, and Release waits
// for those under way.
func TestNoRenewalAfterRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		for i := range 300 {
			engine.set(nil, delay(time.Duration(i)*time.Millisecond))
			l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: time.Second})
			time.Sleep(time.Duration(rand.IntN(900)) * time.Millisecond)
			start := time.Now()
			l.Release(t.Context())
			released := time.Now()
			time.Sleep(2 * time.Second)
			engine.mu.Lock()
			last := engine.last
			engine.mu.Unlock()
			if last.After(start) {
				t.Fatalf("a renewal was sent %s after Release began (which took %s)", last.Sub(start), released.Sub(start))
			}
		}
	})
}

func TestObserverSeesTheLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var kinds []string
		engine := newFaulty()
		c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
			mu.Lock()
			defer mu.Unlock()
			if s := e.Kind.String(); len(kinds) == 0 || kinds[len(kinds)-1] != s {
				kinds = append(kinds, s)
			}
		}})
		l := mustAcquire(t, c, "a", nil)
		c.TryAcquire(t.Context(), "a", nil)
		time.Sleep(15 * time.Second)
		l.Release(t.Context())
		l = mustAcquire(t, c, "a", nil)
		engine.set(fail(errLink, "extend"), nil)
		<-l.Context().Done()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := "[acquired refused renewed released acquired renew-failed lost]"
		if got := fmt.Sprint(kinds); got != want {
			t.Errorf("events = %s, want %s", got, want)
		}
	})
}

func TestCloseReleasesAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := mustAcquire(t, c, "a", nil)
		engine.set(nil, func(ctx context.Context, op string) error {
			if op == "acquire" {
				return errLink
			}
			time.Sleep(time.Second)
			return nil
		})
		_, err = c.TryAcquire(t.Context(), "b", nil)
		wantErr(t, err, holdfast.ErrUnavailable)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if holders(t, engine.Engine, "a")+holders(t, engine.Engine, "b") != 0 {
			t.Error("Close left a lease behind")
		}
		if !errors.Is(context.Cause(l.Context()), context.Canceled) {
			t.Errorf("cause = %v", context.Cause(l.Context()))
		}
		_, err = c.TryAcquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrClosed)
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

// Close waits for a release that somebody else has begun: the engine may be
// closed after it.
func TestCloseWaitsForReleaseUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := mustAcquire(t, c, "a", nil)
		engine.set(delay(3*time.Second), nil)
		done := make(chan error, 1)
		go func() { done <- l.Release(t.Context()) }()
		time.Sleep(time.Second)
		start := time.Now()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("Close took %s, want the 2s that the release takes yet", took)
		}
		nothingLeft(t, engine, "a")
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		mustAcquire(t, c, "a", nil)
		engine.set(hang("release", "extend"), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		wantErr(t, c.Close(ctx), context.DeadlineExceeded)
		if took := time.Since(start); took != time.Second {
			t.Errorf("Close took %s, want 1s", took)
		}
	})
}
