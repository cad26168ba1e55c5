package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// TestReleaseGoesOnUntilTheLatestExpiry checks that an unanswered release is repeated for as long
// as the store may keep the lease, including its extensions.
func TestReleaseGoesOnUntilTheLatestExpiry(t *testing.T) {
	for how, extend := range map[string]func(*holdfast.Lease, *faulty) error{
		"answered": func(l *holdfast.Lease, _ *faulty) error { return l.Extend(context.Background(), time.Hour) },
		"unheard": func(l *holdfast.Lease, engine *faulty) error {
			engine.set(nil, fail(errLink, "extend"))
			_ = l.Extend(context.Background(), time.Hour)
			return nil
		},
	} {
		runWithClient(t, how, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			l := mustAcquire(t, c, "a", nil)
			must(t, extend(l, engine))
			engine.set(fail(driver.ErrUnavailable, "release"), nil)
			wantErr(t, l.Release(t.Context()), holdfast.ErrUnavailable)
			time.Sleep(40 * time.Minute)
			engine.heal()
			time.Sleep(2 * time.Second)
			nothingLeft(t, engine, "a")
		})
	}
}

// TestReleaseGivesUpAtTheExpiry checks that an unanswered release is not repeated forever.
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
		took := (<-gaveUp).Sub(start)
		expect(t, took <= 30*time.Second, "gave up after %s, want at the expiry, after 30s", took)
		engine.heal()
	})
}

// TestLateReleaseKeepsNoLonger checks that a late release does not keep the name closed for longer
// than MinHold.
func TestLateReleaseKeepsNoLonger(t *testing.T) {
	inBubble(t, &holdfast.Options{TTL: 2 * time.Minute}, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		start := time.Now()
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MinHold: time.Minute})
		time.Sleep(10 * time.Second)
		engine.set(fail(driver.ErrUnavailable, "release"), nil)
		wantErr(t, l.Release(t.Context()), holdfast.ErrUnavailable)
		time.Sleep(30 * time.Second)
		engine.heal()
		next, err := c.Acquire(t.Context(), "a", nil)
		must(t, err)
		took := time.Since(start)
		expect(t, took >= time.Minute && took <= time.Minute+50*time.Millisecond, "acquired again after %s, want 1m", took)
		next.Release(t.Context())
	})
}

// TestReleaseOfLostLeaseDoesNotWait checks that Do does not wait for the release of a lost lease.
func TestReleaseOfLostLeaseDoesNotWait(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		var over time.Time
		err := c.Do(t.Context(), "a", &holdfast.AcquireOptions{TTL: 2 * time.Second}, func(ctx context.Context, l *holdfast.Lease) error {
			engine.set(hang("extend", "release"), nil)
			<-ctx.Done()
			over = time.Now()
			return nil
		})
		wantErr(t, err, holdfast.ErrLost)
		late := time.Since(over)
		expect(t, late == 0, "Do returned %s after its work", late)
		engine.heal()
	})
}

// TestLostLeaseIsFreed checks that the release of a lost lease frees the name in the store.
func TestLostLeaseIsFreed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 2 * time.Second, LockDelay: time.Hour})
		engine.set(fail(errLink, "extend"), nil)
		<-l.Context().Done()
		wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		synctest.Wait()
		nothingLeft(t, engine, "a")
	})
}

// TestReleaseDoesNotOutlastTheLease checks that Release does not wait beyond the expiry.
func TestReleaseDoesNotOutlastTheLease(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 2 * time.Second, KeepAlive: holdfast.KeepAliveOff})
		time.Sleep(time.Second)
		engine.set(hang("release"), nil)
		start := time.Now()
		wantErr(t, l.Release(t.Context()), holdfast.ErrOutcomeUnknown)
		took := time.Since(start)
		expect(t, took == time.Second, "the release took %s, want the 1s that the lease had left", took)
		engine.heal()
	})
}

// TestReleaseTogether checks that all calls of Release return the same error, at the same time or
// later, and that a call whose context ends does not wait for the others.
func TestReleaseTogether(t *testing.T) {
	for _, engineSays := range []error{nil, driver.ErrPermission} {
		inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			patient, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l := mustAcquire(t, c, "a", nil)
			alone := mustAcquire(t, c, "b", nil)
			first, second := alone.Release(patient), alone.Release(patient)
			expect(t, first == nil && second == nil, "released: %v, again: %v", first, second)
			engine.set(delay(time.Second), func(context.Context, string) error { return engineSays })
			start := time.Now()
			release := func(ctx context.Context) error {
				err := l.Release(ctx)
				took := time.Since(start)
				expect(t, took == time.Second, "Release returned after %s, want 1s", took)
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
				expect(t, err == errs[0] && errors.Is(err, engineSays), "%v and %v, want one error for all, as the engine says: %v", errs[0], err, engineSays)
			}
		})
	}
}

// The following tests are about requests that are under way when a lease or an acquire ends, and
// their replies.

// neverDuringRenewal makes each renewal take a second, and fails t if a request op is sent
// meanwhile. extending reports whether a renewal is under way.
func neverDuringRenewal(t *testing.T, engine *faulty, op string) (extending *atomic.Bool) {
	extending = new(atomic.Bool)
	engine.set(func(_ context.Context, sent string) error {
		switch sent {
		case "extend":
			extending.Store(true)
			time.Sleep(time.Second)
			extending.Store(false)
		case op:
			expect(t, !extending.Load(), "a %s was sent while a renewal was under way", op)
		}
		return nil
	}, nil)
	return extending
}

// TestReleaseWaitsForRenewals checks that the release is not sent while a renewal is under way.
// INVARIANT I9.
func TestReleaseWaitsForRenewals(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		extending := neverDuringRenewal(t, engine, "release")
		l := mustAcquire(t, c, "a", nil)
		for !extending.Load() {
			time.Sleep(time.Millisecond)
		}
		began := time.Now()
		wantErr(t, l.Release(t.Context()), nil)
		took := time.Since(began)
		expect(t, took >= 900*time.Millisecond && took <= time.Second, "Release took %s, want it to wait for the renewal, and for no longer", took)
	})
}

// TestReleaseWaitsForVerify checks that the release is not sent while a Verify is under way, which
// sends an Extend. INVARIANT I9.
func TestReleaseWaitsForVerify(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		extending := neverDuringRenewal(t, engine, "release")
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff})
		verified := make(chan error)
		go func() { verified <- l.Verify(t.Context()) }()
		synctest.Wait()
		need(t, extending.Load(), "Verify is not under way")
		wantErr(t, l.Release(t.Context()), nil)
		err := <-verified
		expect(t, err == nil, "Verify before the release: %v", err)
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
	})
}

// TestVerifyLengthensNothing checks that Verify does not lengthen the lease.
func TestVerifyLengthensNothing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 10 * time.Second, KeepAlive: holdfast.KeepAliveOff})
		deadline := l.Deadline()
		time.Sleep(5 * time.Second)
		must(t, l.Verify(t.Context()))
		lock, err := engine.Inspect(t.Context(), "a")
		expect(t, err == nil && len(lock.Holders) == 1 && lock.Holders[0].ExpiresIn <= 5*time.Second, "after Verify: %v, %v; want the 5 s that were left", lock, err)
		expect(t, l.Deadline().Equal(deadline), "Verify moved the deadline by %s", l.Deadline().Sub(deadline))
	})
}

// TestExtendDuringRelease checks that nothing lengthens the lease once Release has begun, even
// while the release request is under way. INVARIANT I9.
func TestExtendDuringRelease(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", nil)
		engine.set(func(_ context.Context, op string) error {
			if op == "release" {
				wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLost)
				wantErr(t, l.ExtendBy(t.Context(), time.Minute), holdfast.ErrLost)
			}
			return nil
		}, nil)
		wantErr(t, l.Release(t.Context()), nil)
		n := engine.count("extend")
		expect(t, n == 0, "%d renewals were sent after Release had begun", n)
	})
}

// TestRenewalAnsweredAfterSuspension checks that a loss is final. The machine is suspended while a
// renewal is under way, until after the deadline. When it wakes the reply has arrived, before the
// client has read the clock. INVARIANT I3.
func TestRenewalAnsweredAfterSuspension(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		var asleep atomic.Int64
		start := time.Now()
		holdfast.SetBootClock(c, func() time.Duration {
			return time.Hour + time.Since(start) + time.Duration(asleep.Load())
		})
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: 10 * time.Second, KeepAlive: holdfast.KeepAliveOff})
		engine.set(nil, func(_ context.Context, op string) error {
			if op == "extend" {
				asleep.Store(int64(11 * time.Second))
			}
			return nil
		})
		wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLost)
		expect(t, !l.Valid() && l.Context().Err() != nil, "valid: %t, context: %v; want the lease lost", l.Valid(), l.Context().Err())
		wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
	})
}

// An unheard engine carries out every acquire after half of its delay, even if the caller has given
// up, and answers after the other half.
type unheard struct {
	*faulty
	delay time.Duration
}

func (u *unheard) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	type answer struct {
		reply driver.AcquireReply
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		time.Sleep(u.delay / 2)
		reply, err := u.faulty.Acquire(context.WithoutCancel(ctx), req)
		time.Sleep(u.delay / 2)
		answers <- answer{reply, err}
	}()
	select {
	case a := <-answers:
		return a.reply, a.err
	case <-ctx.Done():
		return driver.AcquireReply{}, ctx.Err()
	}
}

// TestUnheardGrantIsCancelled checks that no lease is left, whether the context ends before the
// store receives the request or after it grants the lease. INVARIANT I5.
func TestUnheardGrantIsCancelled(t *testing.T) {
	for _, wait := range []bool{true, false} {
		runInBubble(t, fmt.Sprintf("wait %t", wait), func(t *testing.T) {
			engine := &unheard{faulty: newFaulty(), delay: 100 * time.Millisecond}
			c := newClient(t, engine, nil)
			acquire := c.TryAcquire
			if wait {
				acquire = c.Acquire
			}
			for ms := range 99 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
				_, err := acquire(ctx, "a", nil)
				cancel()
				wantErr(t, err, context.DeadlineExceeded)
				time.Sleep(time.Second)
				n := holders(t, engine.Engine, "a")
				need(t, n == 0, "context ended after %d ms: %d leases stayed behind", ms, n)
			}
		})
	}
}

// TestZombieOfReleasedLeaseMeetsTombstone checks that an acquire that arrives late, after its
// repeat was granted and the lease released, does not acquire the lock again. INVARIANT I5.
func TestZombieOfReleasedLeaseMeetsTombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		zombies := make(chan driver.AcquireRequest, 1)
		c := newClient(t, &losing{faulty: engine, lost: zombies}, nil)
		l := mustAcquire(t, c, "a", nil)
		wantErr(t, l.Release(t.Context()), nil)
		reply, err := engine.Acquire(t.Context(), <-zombies)
		expect(t, err == nil && reply.Outcome == driver.Cancelled, "the zombie got %+v, %v; want Cancelled", reply, err)
	})
}

// A losing engine fails the first acquire, and sends the request to lost.
type losing struct {
	*faulty
	lost chan driver.AcquireRequest
	once sync.Once
}

func (l *losing) Acquire(ctx context.Context, req driver.AcquireRequest) (reply driver.AcquireReply, err error) {
	l.once.Do(func() {
		l.lost <- req
		err = errLink
	})
	if err != nil {
		return reply, err
	}
	return l.faulty.Acquire(ctx, req)
}

// TestLockDelayAfterRenewals checks that LockDelay also applies after renewals by the keep-alive
// and by the caller.
func TestLockDelayAfterRenewals(t *testing.T) {
	const ttl, delay = 10 * time.Second, time.Minute
	for _, keepAlive := range []holdfast.KeepAlive{holdfast.KeepAliveOn, holdfast.KeepAliveOff} {
		inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: ttl, LockDelay: delay, KeepAlive: keepAlive})
			for range 30 { // much longer than the delay
				time.Sleep(5 * time.Second)
				if keepAlive == holdfast.KeepAliveOff {
					must(t, l.Extend(t.Context(), ttl))
				}
			}
			lock, err := engine.Inspect(t.Context(), "a")
			need(t, err == nil && len(lock.Holders) == 1, "%+v, %v; want the lease", lock, err)
			after := lock.Holders[0].ExpiresIn - l.Remaining()
			expect(t, after >= delay, "keep-alive %v: the store's expiry is %s after the deadline, want %s", keepAlive, after, delay)
			l.Release(t.Context())
		})
	}
}

// TestVerifyOfNameKeptClosed checks that a lease that another client released is lost, even while
// the name stays closed.
func TestVerifyOfNameKeptClosed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", nil)
		err := engine.Engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: l.ID(), KeepFor: time.Minute})
		must(t, err)
		wantErr(t, l.Verify(t.Context()), holdfast.ErrLost)
		wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
	})
}
