package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// A laptop is the machine of a client. While the machine sleeps its boot-time clock advances, but
// its monotonic clock does not.
type laptop struct {
	start  time.Time
	asleep atomic.Int64
}

func newLaptop(c *holdfast.Client) *laptop {
	m := &laptop{start: time.Now()}
	holdfast.SetBootClock(c, func() time.Duration {
		return time.Hour + time.Since(m.start) + time.Duration(m.asleep.Load())
	})
	return m
}

func (m *laptop) sleep(d time.Duration) { m.asleep.Add(int64(d)) }

// TestContextEndsAfterSuspension checks that after a suspension that was too long for a lease its
// context ends within a second without any call. INVARIANT I3.
func TestContextEndsAfterSuspension(t *testing.T) {
	for _, keepAlive := range []holdfast.KeepAlive{holdfast.KeepAliveOn, holdfast.KeepAliveOff} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, newFaulty(), nil)
			m := newLaptop(c)
			opts := &holdfast.AcquireOptions{KeepAlive: keepAlive}
			l, other := mustAcquire(t, c, "a", opts), mustAcquire(t, c, "b", &holdfast.AcquireOptions{TTL: time.Hour, KeepAlive: keepAlive})
			time.Sleep(1700 * time.Millisecond)
			m.sleep(40 * time.Second)
			woke := time.Now()
			<-l.Context().Done()
			late := time.Since(woke)
			expect(t, late <= time.Second, "the context ended %s after the suspension, want 1s at most", late)
			wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
			expect(t, other.Valid(), "a lease of an hour is lost as well")
		})
	}
}

// TestShortSuspension checks that a shorter suspension shortens the remaining time. The lease is
// renewed at once, or ends before the store ends it.
func TestShortSuspension(t *testing.T) {
	for _, cutOff := range []bool{false, true} {
		inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			m := newLaptop(c)
			l := mustAcquire(t, c, "a", nil)
			time.Sleep(2500 * time.Millisecond)
			m.sleep(23 * time.Second)
			if cutOff {
				engine.set(hang("extend"), nil)
			}
			// 30 s less the margin, the time before the suspension, and the suspension.
			left := 30*time.Second - 3002*time.Millisecond - 25500*time.Millisecond
			r := l.Remaining()
			expect(t, r == left, "%s remain after the suspension, want %s", r, left)
			woke := time.Now()
			time.Sleep(time.Second)
			synctest.Wait()
			if !cutOff {
				r := l.Remaining()
				expect(t, r >= 25*time.Second, "%s remain a second after the suspension: it was not renewed", r)
				return
			}
			<-l.Context().Done()
			took := time.Since(woke)
			expect(t, took == left, "the context ended %s after the suspension, want %s", took, left)
		})
	}
}

// TestSuspensionDuringRequest checks that a lease counts from before a suspension that happened
// while its request was under way.
func TestSuspensionDuringRequest(t *testing.T) {
	for _, op := range []string{"acquire", "extend"} {
		inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			m := newLaptop(c)
			mustAcquire(t, c, "other", &holdfast.AcquireOptions{TTL: time.Hour})
			sent := time.Now()
			suspend := func(ctx context.Context, o string) error {
				if o == op {
					sent = time.Now()
					m.sleep(17 * time.Second)
					engine.set(fail(errLink, "extend"), nil)
					time.Sleep(2 * time.Second) // meanwhile the keep-alive detects the suspension
				}
				return nil
			}
			if op == "acquire" {
				engine.set(nil, suspend)
			}
			l := mustAcquire(t, c, "a", nil)
			if op == "extend" {
				engine.set(nil, suspend)
			}
			<-l.Context().Done()
			took := time.Since(sent)
			expect(t, took == 9998*time.Millisecond, "%s: trusted for %s and a suspension of 17s, want 9.998s with a TTL of 30s", op, took)
		})
	}
}

// TestHoldsCountSuspension checks that MaxHold and MinHold include the time of suspensions.
func TestHoldsCountSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		m := newLaptop(c)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MaxHold: time.Minute})
		time.Sleep(20 * time.Second)
		m.sleep(20 * time.Second)
		woke := time.Now()
		<-l.Context().Done()
		took := time.Since(woke)
		expect(t, took <= 20*time.Second, "held for another %s after the suspension, want 20s at most", took)
		wantErr(t, context.Cause(l.Context()), holdfast.ErrMaxHold)

		kept := mustAcquire(t, c, "b", &holdfast.AcquireOptions{MinHold: time.Minute, TTL: time.Hour})
		m.sleep(50 * time.Second)
		must(t, kept.Release(t.Context()))
		lock, err := c.Inspect(t.Context(), "b")
		expect(t, err == nil && len(lock.Holders) == 1 && lock.Holders[0].ExpiresIn <= 10*time.Second, "after 50 s of a MinHold of a minute: %+v, %v", lock, err)
	})
}

// TestRemainingOfSeveralAfterSuspension checks that Remaining of several leases accounts for a
// suspension that the keep-alive has not detected yet. INVARIANT I8.
func TestRemainingOfSeveralAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		m := newLaptop(c)
		ls, err := c.AcquireAll(t.Context(), []string{"a", "b"}, nil)
		must(t, err)
		defer func() { _ = ls.Release(t.Context()) }() // other tests check what it returns
		before := ls.Remaining()
		m.sleep(10 * time.Second)
		left, want := ls.Remaining(), before-10*time.Second
		expect(t, left == want, "trusted for %s, want %s", left, want)
	})
}

// The rates of a clock that chrony slews at its default limit.
const slewedForward, slewedBack = 1.083, 0.917

// A slewedStore is a faulty whose clock runs at another rate than the holder's, which is the test's
// clock.
type slewedStore struct {
	*faulty
	rate float64
}

func (s slewedStore) span(d time.Duration) time.Duration { return time.Duration(float64(d) / s.rate) }

func (s slewedStore) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	req.TTL, req.WaiterTTL = s.span(req.TTL), s.span(req.WaiterTTL)
	return s.faulty.Acquire(ctx, req)
}

func (s slewedStore) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	slewed := make([]driver.ExtendRequest, len(reqs))
	for i, r := range reqs {
		r.TTL = s.span(r.TTL)
		slewed[i] = r
	}
	return s.faulty.Extend(ctx, slewed)
}

// TestSlewedClocks checks that while the clock of either side is slewed no lease is valid, and no
// context alive, when the store may grant the lock to another. With a raw clock, this also applies
// while both clocks are slewed against each other. INVARIANT I3.
func TestSlewedClocks(t *testing.T) {
	rates := []float64{1, slewedForward, slewedBack}
	for _, ttl := range []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second} {
		for _, raw := range []bool{false, true} {
			for _, store := range rates {
				for _, holder := range rates {
					if !raw && store != 1 && holder != 1 {
						continue // docs/safety.md describes what is covered
					}
					for _, keepAlive := range []holdfast.KeepAlive{holdfast.KeepAliveOn, holdfast.KeepAliveOff} {
						t.Run(fmt.Sprintf("TTL %s raw %t store %g holder %g keep-alive %s", ttl, raw, store, holder, keepAlive), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) { checkSlewed(t, ttl, raw, store, holder, keepAlive) })
						})
					}
				}
			}
		}
	}
}

func checkSlewed(t *testing.T, ttl time.Duration, raw bool, store, holder float64, keepAlive holdfast.KeepAlive) {
	engine := slewedStore{newFaulty(), store / holder}
	c := newClient(t, engine, nil)
	if raw {
		slewHolder(c, func(mono time.Duration) time.Duration { return time.Duration(float64(mono) / holder) })
	}
	l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: ttl, KeepAlive: keepAlive})
	if keepAlive == holdfast.KeepAliveOn {
		time.Sleep(ttl)
	}
	need(t, l.Valid(), "lost before the holder was cut off: %v", context.Cause(l.Context()))
	engine.set(fail(errLink, "extend"), nil)
	// While both are slewed against each other, timers are late by the divergence of a second.
	late := time.Duration(0)
	if store > 1 && holder < 1 {
		late = 100 * time.Millisecond
	}
	for expired := time.Duration(0); expired <= late; time.Sleep(time.Millisecond) {
		if holders(t, engine.Engine, "a") > 0 {
			continue
		}
		need(t, !l.Valid(), "valid for another %s when the store has ended it", l.Remaining())
		if expired == late && l.Context().Err() == nil {
			t.Errorf("the context lives %s after the expiry", expired)
		}
		expired += time.Millisecond
	}
}

// slewHolder gives a client without leases slewed monotonic and boot-time clocks. raw converts the
// monotonic time to that of the raw clock.
func slewHolder(c *holdfast.Client, raw func(mono time.Duration) time.Duration) {
	start := time.Now()
	since := func() time.Duration { return time.Since(start) }
	holdfast.SetClocks(c, func() time.Duration { return time.Hour + since() }, func() time.Duration { return time.Minute + raw(since()) })
}

// TestSlewedThereAndBack checks that a clock that was slewed forward and then back is treated like
// one that was only slewed back.
func TestSlewedThereAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		slewHolder(c, func(mono time.Duration) time.Duration {
			forward := min(mono, time.Minute)
			return time.Duration(float64(forward)/slewedForward + float64(mono-forward)/slewedBack)
		})
		for range 60 {
			time.Sleep(time.Second)
			mustAcquire(t, c, "a", nil).Release(t.Context())
		}
		start := time.Now()
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff})
		<-l.Context().Done()
		want := time.Duration(slewedBack * float64(27*time.Second-2*time.Millisecond))
		took := time.Since(start)
		expect(t, took <= want+100*time.Millisecond && took >= want-20*time.Millisecond, "trusted for %s of a slow clock, want %s", took, want)
	})
}

// TestSlewingHurriesNoRenewal checks that leases are not renewed more often while a clock is
// slewed, which may take minutes.
func TestSlewingHurriesNoRenewal(t *testing.T) {
	for _, holder := range []float64{1, slewedForward, slewedBack} {
		inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			slewHolder(c, func(mono time.Duration) time.Duration { return time.Duration(float64(mono) / holder) })
			l := mustAcquire(t, c, "a", nil)
			time.Sleep(time.Minute + time.Second)
			n := engine.count("extend")
			expect(t, n == 12 && l.Valid(), "%d renewals in a minute at the rate %g, want 12", n, holder)
		})
	}
}

// TestKeepAliveWithSlowStore checks that a lease is kept if the store takes 0.4 of the TTL to
// answer. If it takes longer than the TTL, the lease is lost before its expiry.
func TestKeepAliveWithSlowStore(t *testing.T) {
	inBubble(t, &holdfast.Options{TTL: 10 * time.Second}, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", nil)
		engine.set(delay(2*time.Second), delay(2*time.Second))
		time.Sleep(10 * time.Minute)
		need(t, l.Valid(), "latency of 0.4 TTL: %v", context.Cause(l.Context()))
		engine.set(delay(6*time.Second), delay(6*time.Second))
		select {
		case <-l.Context().Done():
		case <-time.After(time.Minute):
			t.Fatal("latency of 1.2 TTL: still trusted after a minute")
		}
		expect(t, holders(t, engine.Engine, "a") == 1, "notified after the store's expiry")
		engine.heal()
		l.Release(t.Context())
	})
}

func TestMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		start := time.Now()
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MaxHold: 5 * time.Minute})
		wantErr(t, l.Extend(t.Context(), time.Hour), nil)
		<-l.Context().Done()
		held := time.Since(start)
		expect(t, held <= 5*time.Minute && held >= 5*time.Minute*9/10-2*time.Millisecond, "held for %s, want 5m less the margin", held)
		cause := context.Cause(l.Context())
		wantErr(t, cause, holdfast.ErrMaxHold)
		wantErr(t, cause, holdfast.ErrLost)
		time.Sleep(time.Until(start.Add(5*time.Minute + time.Second)))
		expect(t, holders(t, engine, "a") == 0, "the store still holds the lease after MaxHold")
		l.Release(t.Context())
	})
}

func TestMaxHoldShorterThanTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), nil)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MaxHold: 2 * time.Second})
		<-l.Context().Done()
		wantErr(t, context.Cause(l.Context()), holdfast.ErrMaxHold)
	})
}

// A brief engine supports TTLs up to a minute, and counts acquire requests.
type brief struct {
	*mem.Engine
	asked int
}

func (b *brief) Capabilities() driver.Capabilities {
	c := b.Engine.Capabilities()
	c.MaxTTL = time.Minute
	return c
}

func (b *brief) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	b.asked++
	return b.Engine.Acquire(ctx, req)
}

// TestMaxTTLIsCheckedAtAcquire checks that times that the store cannot keep are refused before a
// request is sent, including MinHold. If only the release were refused, the work might run twice.
func TestMaxTTLIsCheckedAtAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &brief{Engine: mem.New(nil)}
		c, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
		must(t, err)
		defer func() {
			wantErr(t, c.Close(), nil)
		}()
		const long = time.Minute + time.Millisecond
		for name, opts := range map[string]*holdfast.AcquireOptions{
			"TTL":       {TTL: long},
			"MinHold":   {MinHold: long},
			"LockDelay": {TTL: 40 * time.Second, LockDelay: 21 * time.Second},
		} {
			_, err := c.Acquire(t.Context(), name, opts)
			_, tryErr := c.TryAcquire(t.Context(), name+" at once", opts)
			_, allErr := c.AcquireAll(t.Context(), []string{name + " and", name + " more"}, opts)
			expect(t, errors.Is(err, holdfast.ErrInvalid) && errors.Is(tryErr, holdfast.ErrInvalid) && errors.Is(allErr, holdfast.ErrInvalid),
				"%s: %v, %v, %v; want ErrInvalid", name, err, tryErr, allErr)
		}
		expect(t, engine.asked == 0, "%d requests were sent", engine.asked)
		lease, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: 30 * time.Second, LockDelay: 30 * time.Second, MinHold: time.Minute})
		must(t, err)
		if err := lease.Extend(t.Context(), 31*time.Second); !errors.Is(err, holdfast.ErrInvalid) || !lease.Valid() {
			t.Errorf("Extend: %v, want ErrInvalid", err)
		}
		wantErr(t, lease.Release(t.Context()), nil)
	})
}

// TestHeldErrorIsAged checks that the times in a HeldError are as of the end of the wait.
func TestHeldErrorIsAged(t *testing.T) {
	for _, as := range fullAndPlain {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, as(engine), nil)
			release := foreign(t, engine, "a", 30*time.Second)
			_, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{MaxWait: 12300 * time.Millisecond})
			var held *holdfast.HeldError
			expect(t, errors.As(err, &held) && held.ExpiresIn <= 17700*time.Millisecond && held.ExpiresIn >= 17690*time.Millisecond,
				"%v, want held for another 17.7s", err)
			if held != nil && (held.Since > 12310*time.Millisecond || held.Since < 12300*time.Millisecond) {
				t.Errorf("held for %s, want 12.3s", held.Since)
			}
			release()
		})
	}
}
