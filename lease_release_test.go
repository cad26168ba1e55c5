package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// A release that the store does not answer goes on for as long as the store may
// keep the lease, whoever made it longer.
func TestReleaseGoesOnUntilTheLatestExpiry(t *testing.T) {
	for how, extend := range map[string]func(*holdfast.Lease, *faulty) error{
		"answered": func(l *holdfast.Lease, _ *faulty) error { return l.Extend(context.Background(), time.Hour) },
		"unheard": func(l *holdfast.Lease, engine *faulty) error {
			engine.set(nil, fail(errLink, "extend"))
			_ = l.Extend(context.Background(), time.Hour)
			return nil
		},
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				l := mustAcquire(t, c, "a", nil)
				if err := extend(l, engine); err != nil {
					t.Fatal(err)
				}
				engine.set(fail(driver.ErrUnavailable, "release"), nil)
				wantErr(t, l.Release(t.Context()), holdfast.ErrUnavailable)
				time.Sleep(40 * time.Minute)
				engine.heal()
				time.Sleep(2 * time.Second)
				nothingLeft(t, engine, "a")
			})
		})
	}
}

// It does not go on for ever.
func TestReleaseGivesUpAtTheExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gaveUp := make(chan time.Time, 1)
		engine := newFaulty()
		c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
			if e.Kind == holdfast.CleanupFailed {
				gaveUp <- time.Now()
			}
		}})
		l := mustAcquire(t, c, "a", nil)
		engine.set(fail(driver.ErrUnavailable, "release"), nil)
		_ = l.Release(t.Context())
		start := time.Now()
		if took := (<-gaveUp).Sub(start); took > 30*time.Second {
			t.Errorf("gave up after %s, want at the expiry, after 30s", took)
		}
		engine.heal()
	})
}

// A release that arrives late does not keep the name closed for longer than
// MinHold.
func TestLateReleaseKeepsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, &holdfast.Options{TTL: 2 * time.Minute})
		start := time.Now()
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MinHold: time.Minute})
		time.Sleep(10 * time.Second)
		engine.set(fail(driver.ErrUnavailable, "release"), nil)
		wantErr(t, l.Release(t.Context()), holdfast.ErrUnavailable)
		time.Sleep(30 * time.Second)
		engine.heal()
		next, err := c.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < time.Minute || took > time.Minute+50*time.Millisecond {
			t.Errorf("acquired again after %s, want 1m", took)
		}
		next.Release(t.Context())
	})
}

// Nobody waits for the release of a lease that was lost.
func TestReleaseOfLostLeaseDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		var over time.Time
		err := c.Do(t.Context(), "a", &holdfast.AcquireOptions{TTL: 2 * time.Second}, func(ctx context.Context, l *holdfast.Lease) error {
			engine.set(hang("extend", "release"), nil)
			<-ctx.Done()
			over = time.Now()
			return nil
		})
		wantErr(t, err, holdfast.ErrLost)
		if late := time.Since(over); late != 0 {
			t.Errorf("Do returned %s after its work", late)
		}
		engine.heal()
	})
}

// What the store keeps of a lease that was lost is freed all the same.
func TestLostLeaseIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 2 * time.Second, LockDelay: time.Hour})
		engine.set(fail(errLink, "extend"), nil)
		<-l.Context().Done()
		wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		synctest.Wait()
		nothingLeft(t, engine, "a")
	})
}

// A release does not outlast the lease.
func TestReleaseDoesNotOutlastTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 2 * time.Second, KeepAlive: holdfast.KeepAliveOff})
		time.Sleep(time.Second)
		engine.set(hang("release"), nil)
		start := time.Now()
		wantErr(t, l.Release(t.Context()), holdfast.ErrOutcomeUnknown)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the release took %s, want the 1s that the lease had left", took)
		}
		engine.heal()
	})
}

// Close tidies up even if ctx has ended, or is cancelled meanwhile: that is how
// a signal ends a program.
func TestCloseUnderEndedContext(t *testing.T) {
	for _, cancelled := range []time.Duration{0, 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c, err := holdfast.New(engine, nil)
			if err != nil {
				t.Fatal(err)
			}
			mustAcquire(t, c, "a", nil)
			holder := foreign(t, engine, "b", time.Hour)
			waiting, stop := context.WithCancel(t.Context())
			waiter := enqueue(waiting, c, "b", nil)
			engine.set(delay(100*time.Millisecond), delay(100*time.Millisecond))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(cancelled, cancel)
			if cancelled == 0 {
				<-ctx.Done()
			}
			stop()
			if err := c.Close(ctx); err != nil {
				t.Error(err)
			}
			wantErr(t, (<-waiter).err, context.Canceled)
			holder()
			nothingLeft(t, engine, "a", "b")
		})
	}
}

// With nothing to do Close has no error, whatever has ended.
func TestCloseWithNothingToDo(t *testing.T) {
	for range 100 {
		c, err := holdfast.New(newFaulty(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := mustAcquire(t, c, "a", nil).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, end := range []func(context.Context) (context.Context, context.CancelFunc){
			func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 0) },
			context.WithCancel,
		} {
			ctx, cancel := end(t.Context())
			cancel()
			if err := c.Close(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A store that is dead delays Close under an ended context by the request
// timeout.
func TestCloseUnderEndedContextGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		mustAcquire(t, c, "a", nil)
		engine.set(hang("release", "extend"), nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		wantErr(t, c.Close(ctx), context.Canceled)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("Close took %s, want the request timeout of 5s", took)
		}
	})
}

// TestReleaseTogether: all calls of Release return what the first returns, whether
// they come while it is under way or afterwards; but whoever does not want to wait
// for that need not.
func TestReleaseTogether(t *testing.T) {
	for _, engineSays := range []error{nil, driver.ErrPermission} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, engine, nil)
			patient, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l := mustAcquire(t, c, "a", nil)
			alone := mustAcquire(t, c, "b", nil)
			if first, second := alone.Release(patient), alone.Release(patient); first != nil || second != nil {
				t.Errorf("released: %v, again: %v", first, second)
			}
			engine.set(delay(time.Second), func(context.Context, string) error { return engineSays })
			start := time.Now()
			release := func(ctx context.Context) error {
				err := l.Release(ctx)
				if took := time.Since(start); took != time.Second {
					t.Errorf("Release returned after %s, want 1s", took)
				}
				return err
			}
			var all sync.WaitGroup
			errs := make([]error, 3)
			for i := range errs {
				all.Go(func() { errs[i] = release(patient) })
			}
			time.Sleep(time.Millisecond)
			hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			wantErr(t, l.Release(hurried), context.DeadlineExceeded)
			all.Wait()
			for _, err := range append(errs, release(patient), release(hurried)) {
				if err != errs[0] || !errors.Is(err, engineSays) {
					t.Errorf("%v and %v, want one error for all, as the engine says: %v", errs[0], err, engineSays)
				}
			}
		})
	}
}
