package holdfast_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestHandedOverLeaseIsTrustedNoLongerThanItLasts checks that the holder never trusts a lease that
// was handed over for longer than the store keeps it, however slowly the store answers.
// INVARIANT I3.
func TestHandedOverLeaseIsTrustedNoLongerThanItLasts(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, time.Second, 30 * time.Second, time.Hour} {
		for _, keepAlive := range []holdfast.KeepAlive{holdfast.KeepAliveOn, holdfast.KeepAliveOff} {
			for _, slow := range [][2]time.Duration{{0, 0}, {70, 0}, {0, 70}, {40, 90}} {
				runInBubble(t, fmt.Sprint("TTL ", ttl, " keep-alive ", keepAlive, " delays ", slow), func(t *testing.T) {
					checkHandOver(t, ttl, keepAlive, slow)
				})
			}
		}
	}
}

func checkHandOver(t *testing.T, ttl time.Duration, keepAlive holdfast.KeepAlive, slow [2]time.Duration) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	for i := range 9 { // the hand-over happens at different times between refreshes
		wait := 300*time.Millisecond + time.Duration(i)*197*time.Millisecond
		release := foreign(t, engine, "a", time.Hour)
		engine.set(delay(slow[0]*time.Millisecond), delay(slow[1]*time.Millisecond))
		start := time.Now()
		waiting := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{TTL: ttl, KeepAlive: keepAlive})
		time.Sleep(wait)
		release()
		o := granted(t, waiting)
		took := o.at.Sub(start)
		need(t, took == wait, "acquired after %s, want at the release, after %s", took, wait)
		trusted(t, engine, o.lease, 3*time.Millisecond, 1200*time.Millisecond)
		o.lease.Release(t.Context())
		engine.heal()
		time.Sleep(10 * time.Second)
		nothingLeft(t, engine, "a")
	}
}

// TestHandOverAfterLostRefreshes checks that a waiter whose requests are lost trusts a late
// hand-over for no longer than its last reply allows.
func TestHandOverAfterLostRefreshes(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		for ms := 4500; ms < 7000; ms += 20 {
			release := foreign(t, engine, "a", time.Hour)
			waiting := enqueue(t.Context(), c, "a", nil)
			engine.set(fail(driver.ErrUnavailable, "refresh"), nil)
			time.Sleep(time.Duration(ms) * time.Millisecond)
			release()
			synctest.Wait()
			engine.heal()
			o := granted(t, waiting)
			trusted(t, engine, o.lease, 5*time.Millisecond, 6*time.Second)
			expect(t, o.lease.Valid(), "released after %d ms: lost: %v", ms, context.Cause(o.lease.Context()))
			o.lease.Release(t.Context())
			time.Sleep(10 * time.Second)
			nothingLeft(t, engine, "a")
		}
	})
}

// TestHandOverIsConfirmed checks that the client requests the whole TTL of a lease that was handed
// over once, after 100 ms, even with keep-alive off.
func TestHandOverIsConfirmed(t *testing.T) {
	for _, keepAlive := range []holdfast.KeepAlive{holdfast.KeepAliveOn, holdfast.KeepAliveOff} {
		for _, ttl := range []time.Duration{3 * time.Second, 30 * time.Second, time.Hour} {
			runWithClient(t, fmt.Sprint("keep-alive ", keepAlive, " TTL ", ttl), nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
				time.AfterFunc(300*time.Millisecond, foreign(t, engine, "a", time.Hour))
				l := granted(t, enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{TTL: ttl, KeepAlive: keepAlive})).lease
				time.Sleep(99 * time.Millisecond)
				n := engine.count("extend")
				expect(t, n == 0, "%d requests in the first 99 ms, want none", n)
				time.Sleep(time.Millisecond)
				synctest.Wait()
				want := ttl - ttl/10 - 2*time.Millisecond
				expect(t, l.Remaining() == want && engine.count("extend") == 1,
					"after 100 ms and %d requests trusted for %s, want %s", engine.count("extend"), l.Remaining(), want)
				time.Sleep(ttl * 9 / 10)
				if n := engine.count("extend"); l.Valid() != (keepAlive == holdfast.KeepAliveOn) || !l.Valid() && n != 1 {
					t.Errorf("after the TTL: valid %t, %d requests", l.Valid(), n)
				}
				l.Release(t.Context())
			})
		}
	}
}

// TestShortHandOverIsNotConfirmed checks that a lease needs no confirmation if its TTL is shorter
// than the rest of its place.
func TestShortHandOverIsNotConfirmed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		time.AfterFunc(100*time.Millisecond, foreign(t, engine, "a", time.Hour))
		opts := &holdfast.AcquireOptions{TTL: 200 * time.Millisecond, KeepAlive: holdfast.KeepAliveOff}
		l := granted(t, enqueue(t.Context(), c, "a", opts)).lease
		left := l.Remaining()
		expect(t, left == 178*time.Millisecond, "trusted for %s, want the TTL less the margin, 178ms", left)
		<-l.Context().Done()
		n := engine.count("extend")
		expect(t, n == 0, "%d requests, want none", n)
		wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
	})
}

// TestFailedConfirmationIsRepeated checks that a confirmation that fails or is not answered is sent
// again in time.
func TestFailedConfirmationIsRepeated(t *testing.T) {
	for name, fault := range map[string]func(context.Context, string) error{
		"refused":      fail(driver.ErrUnavailable, "extend"),
		"reply lost":   fail(errLink, "extend"),
		"not answered": hang("extend"),
	} {
		for _, ttl := range []time.Duration{time.Second, 30 * time.Second, 24 * time.Hour} {
			runWithClient(t, fmt.Sprint(name, " TTL ", ttl), nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
				time.AfterFunc(300*time.Millisecond, foreign(t, engine, "a", time.Hour))
				l := granted(t, enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{TTL: ttl})).lease
				engine.set(fault, nil)
				time.Sleep(min(ttl, 5*time.Second) / 3)
				least := 4
				if name == "not answered" {
					least = 1
				}
				n := engine.count("extend")
				expect(t, n >= least && n <= 20, "%d requests in a third of the waiter TTL, want %d to 20", n, least)
				engine.heal()
				trusted(t, engine, l, 20*time.Millisecond, 10*time.Second)
				expect(t, l.Valid(), "lost: %v", context.Cause(l.Context()))
				l.Release(t.Context())
			})
		}
	}
}

// TestHandOverIsLost checks that the lease ends at once if the store answers the confirmation with
// ErrLost, and before the store grants the lock to another waiter if it never answers.
// INVARIANT I3.
func TestHandOverIsLost(t *testing.T) {
	for _, cutOff := range []bool{false, true} {
		runWithClient(t, fmt.Sprint("cut off ", cutOff), nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			time.AfterFunc(300*time.Millisecond, foreign(t, engine, "a", time.Hour))
			l := granted(t, enqueue(t.Context(), c, "a", nil)).lease
			start := time.Now()
			if cutOff {
				engine.set(hang("extend"), nil)
			} else {
				engine.Engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: l.ID()}) // by an operator
			}
			<-l.Context().Done()
			took := time.Since(start)
			n := holders(t, engine.Engine, "a")
			expect(t, cutOff || took == 100*time.Millisecond, "notified after %s, want with the confirmation", took)
			expect(t, !cutOff || took >= 4*time.Second && n == 1, "notified after %s with %d leases in the store, want before its expiry", took, n)
			wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
			engine.heal()
			wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		})
	}
}

// TestHandOverKeepsOptions checks that the options of the acquisition apply to a lease that was
// handed over, and count from the hand-over.
func TestHandOverKeepsOptions(t *testing.T) {
	handOver := func(t *testing.T, opts holdfast.AcquireOptions, check func(*testing.T, *faulty, *holdfast.Client, *holdfast.Lease)) {
		inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			time.AfterFunc(13*time.Second, foreign(t, engine, "a", time.Hour))
			l := granted(t, enqueue(t.Context(), c, "a", &opts)).lease
			check(t, engine, c, l)
			l.Release(t.Context())
			time.Sleep(3 * time.Minute)
			nothingLeft(t, engine, "a")
		})
	}
	t.Run("MaxHold", func(t *testing.T) {
		for _, maxHold := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 30 * time.Second, time.Hour} {
			handOver(t, holdfast.AcquireOptions{MaxHold: maxHold}, func(t *testing.T, _ *faulty, _ *holdfast.Client, l *holdfast.Lease) {
				start := time.Now()
				<-l.Context().Done()
				wantErr(t, context.Cause(l.Context()), holdfast.ErrMaxHold)
				held := time.Since(start)
				expect(t, held <= maxHold && held >= maxHold*89/100-2*time.Millisecond, "held for %s, want MaxHold, %s, less the margin", held, maxHold)
			})
		}
	})
	t.Run("MinHold", func(t *testing.T) {
		handOver(t, holdfast.AcquireOptions{MinHold: time.Minute}, func(t *testing.T, _ *faulty, c *holdfast.Client, l *holdfast.Lease) {
			start := time.Now()
			time.Sleep(time.Second)
			l.Release(t.Context())
			next := granted(t, enqueue(t.Context(), c, "a", nil))
			took := next.at.Sub(start)
			expect(t, took >= time.Minute && took <= time.Minute+50*time.Millisecond, "the next came after %s, want after MinHold, 1m", took)
			next.lease.Release(t.Context())
		})
	})
	t.Run("StallAfter", func(t *testing.T) {
		handOver(t, holdfast.AcquireOptions{StallAfter: 20 * time.Second}, func(t *testing.T, _ *faulty, _ *holdfast.Client, l *holdfast.Lease) {
			time.Sleep(15 * time.Second)
			l.Heartbeat()
			time.Sleep(15 * time.Second)
			start := time.Now()
			<-l.Context().Done()
			wantErr(t, context.Cause(l.Context()), holdfast.ErrStalled)
			took := time.Since(start)
			expect(t, took <= 35*time.Second, "lost %s after the last heartbeat", took+15*time.Second)
		})
	})
	t.Run("LockDelay", func(t *testing.T) {
		handOver(t, holdfast.AcquireOptions{LockDelay: time.Minute, TTL: 10 * time.Second}, func(t *testing.T, engine *faulty, _ *holdfast.Client, l *holdfast.Lease) {
			lock, _ := engine.Inspect(t.Context(), "a")
			left := lock.Holders[0].ExpiresIn
			expect(t, left == 70*time.Second && l.Remaining() <= 10*time.Second,
				"handed over for %s, trusted for %s; want 1m10s and less than 10s", left, l.Remaining())
			trusted(t, engine, l, 50*time.Millisecond, 30*time.Second)
		})
	})
}

// TestUnheardHandOverEndsWithPlace checks that a waiter whose requests arrive, but whose replies
// are all lost, delays the waiters behind it by one waiter TTL at most after it was handed the
// lock. INVARIANT I7.
func TestUnheardHandOverEndsWithPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		unlucky := newFaultyOn(engine.Engine)
		unlucky.deaf = true
		release := foreign(t, engine, "a", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		lost := enqueue(ctx, newClient(t, unlucky, nil), "a", nil)
		unlucky.set(nil, fail(errLink, "acquire", "refresh", "release"))
		soon, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		next := enqueue(soon, newClient(t, engine, nil), "a", nil)
		time.Sleep(20 * time.Second)
		start := time.Now()
		release()
		o := granted(t, next)
		took := o.at.Sub(start)
		expect(t, took <= 5*time.Second+10*time.Millisecond, "the next had the lock after %s, want 5s at most", took)
		o.lease.Release(t.Context())
		cancel()
		<-lost
		unlucky.heal()
		time.Sleep(time.Minute)
		nothingLeft(t, engine, "a")
	})
}

// TestLeaseFoundLateIsKept checks that a waiter without replies for longer than its place lasts
// keeps a lease that it then finds, and does not start over at the end of the queue.
func TestLeaseFoundLateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		late := newFaultyOn(engine.Engine)
		late.deaf = true
		release := foreign(t, engine, "a", time.Hour)
		soon, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		first := enqueue(soon, newClient(t, late, nil), "a", nil)
		late.set(nil, fail(errLink, "refresh"))
		next := enqueue(t.Context(), newClient(t, engine, nil), "a", nil)
		time.Sleep(20 * time.Second)
		release()
		late.heal()
		o := granted(t, first)
		trusted(t, engine, o.lease, 20*time.Millisecond, 10*time.Second)
		n := late.count("acquire")
		expect(t, n == 2, "%d attempts, want 2", n)
		o.lease.Release(t.Context())
		granted(t, next).lease.Release(t.Context())
		nothingLeft(t, engine, "a")
	})
}

// whole starts an Acquire with WholeTTL of a lock that another client holds for 300 ms.
func whole(t *testing.T, engine *faulty, opts holdfast.AcquireOptions) <-chan outcome {
	t.Helper()
	opts.WholeTTL = true
	time.AfterFunc(300*time.Millisecond, foreign(t, engine, "a", time.Hour))
	return enqueue(t.Context(), newClient(t, engine, nil), "a", &opts)
}

// TestWholeTTL checks that with WholeTTL a lease that was handed over has its whole TTL when it is
// returned, at the cost of one more request, whether a notice or a refresh reports the hand-over.
func TestWholeTTL(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		for _, ttl := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 30 * time.Second, time.Hour} {
			runInBubble(t, fmt.Sprint("TTL ", ttl, " deaf ", deaf), func(t *testing.T) {
				engine := newFaulty()
				engine.deaf = deaf
				o := granted(t, whole(t, engine, holdfast.AcquireOptions{TTL: ttl, KeepAlive: holdfast.KeepAliveOff}))
				left, want := o.lease.Remaining(), ttl-ttl/10-2*time.Millisecond
				expect(t, left == want, "trusted for %s, want %s", left, want)
				acquires, extends := engine.count("acquire"), engine.count("extend")
				expect(t, acquires == 2 && extends == 0, "%d acquires and %d extends, want one of the first kind to confirm", acquires, extends)
				trusted(t, engine, o.lease, ttl/20, 2*ttl)
			})
		}
	}
}

// TestWholeTTLIsAskedForUntilAnswered checks that a confirmation that fails or is not answered is
// repeated for as long as the wait lasts.
func TestWholeTTLIsAskedForUntilAnswered(t *testing.T) {
	faults := map[string][2]func(context.Context, string) error{
		"refused":      {fail(driver.ErrUnavailable, "acquire"), nil},
		"request lost": {fail(errLink, "acquire"), nil},
		"reply lost":   {nil, fail(errLink, "acquire")},
		"not answered": {hang("acquire"), nil},
	}
	for name, fault := range faults {
		for _, lasts := range []time.Duration{2 * time.Second, 20 * time.Second} { // less and more than the first lease
			runInBubble(t, fmt.Sprint(name, " for ", lasts), func(t *testing.T) {
				engine := newFaulty()
				done := whole(t, engine, holdfast.AcquireOptions{})
				engine.set(fault[0], fault[1])
				time.AfterFunc(lasts, engine.heal)
				o := granted(t, done)
				trusted(t, engine, o.lease, 50*time.Millisecond, time.Second)
				left := o.lease.Remaining()
				expect(t, left >= 25*time.Second, "trusted for %s, want the TTL of 30s", left)
				o.lease.Release(t.Context())
				time.Sleep(2 * time.Minute)
				nothingLeft(t, engine, "a")
			})
		}
	}
}

// TestWholeTTLRefused checks that a confirmation that the store refuses with a permanent error ends
// the wait and leaves nothing in the store.
func TestWholeTTLRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		done := whole(t, engine, holdfast.AcquireOptions{})
		engine.set(fail(fmt.Errorf("%w: by a test", driver.ErrPermission), "acquire"), nil)
		wantErr(t, (<-done).err, holdfast.ErrPermission)
		synctest.Wait()
		nothingLeft(t, engine, "a")
	})
}

// TestWholeTTLLostGoesOnWaiting checks that the wait continues for the rest of its time if the
// lease is lost before it is confirmed. Late copies of the notice of that lease are not taken for
// another grant (INVARIANT I1).
func TestWholeTTLLostGoesOnWaiting(t *testing.T) {
	for _, theirs := range []time.Duration{4 * time.Second, time.Hour} { // how long the other client holds the lock
		runInBubble(t, fmt.Sprint("for ", theirs), func(t *testing.T) {
			engine := newFaulty()
			var lost lockinfo.Holding
			engine.set(func(ctx context.Context, op string) error {
				if lock, _ := engine.Engine.Inspect(ctx, "a"); op == "acquire" && lost.Token == 0 && len(lock.Holders) == 1 && lock.Holders[0].ExpiresIn < time.Minute {
					lost = lock.Holders[0]
					engine.Engine.Release(ctx, driver.ReleaseRequest{Name: "a", LeaseID: lost.LeaseID}) // by an operator
					foreign(t, engine, "a", theirs)
					for i := range 3 { // late copies of the old notice
						time.AfterFunc(time.Duration(i+1)*time.Second, func() { engine.tell(driver.Notice{Token: lost.Token}) })
					}
				}
				return nil
			}, nil)
			engine.deaf = true
			start := time.Now()
			o := <-whole(t, engine, holdfast.AcquireOptions{MaxWait: 10 * time.Second})
			took := o.at.Sub(start)
			if theirs == time.Hour {
				wantErr(t, o.err, holdfast.ErrHeld)
				expect(t, took == 10*time.Second, "the wait of 10s ended after %s", took)
				return
			}
			need(t, o.err == nil && o.lease.Token() > lost.Token && took >= theirs,
				"after %s: %v, %v; another client had the lock for %s", took, o.lease, o.err, theirs)
			trusted(t, engine, o.lease, 50*time.Millisecond, time.Second)
			o.lease.Release(t.Context())
		})
	}
}
