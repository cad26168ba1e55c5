package holdfast_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// A laptop is what runs a client. While it sleeps its monotonic clock stands
// still, and its boot-time clock does not.
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

// INVARIANT I3: after a suspension that was too long for the lease its context
// ends within a second, though nobody asks.
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
			if late := time.Since(woke); late > time.Second {
				t.Errorf("the context ended %s after the suspension, want 1s at most", late)
			}
			wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
			if !other.Valid() {
				t.Error("a lease of an hour is lost as well")
			}
		})
	}
}

// A shorter suspension shortens what is left: the lease is renewed at once, or
// ends when the store ends it.
func TestShortSuspension(t *testing.T) {
	for _, cutOff := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, engine, nil)
			m := newLaptop(c)
			l := mustAcquire(t, c, "a", nil)
			time.Sleep(2500 * time.Millisecond)
			m.sleep(25 * time.Second)
			if cutOff {
				engine.set(hang("extend"), nil)
			}
			// 30 s less the margin, what is over, and the suspension.
			left := 30*time.Second - 302*time.Millisecond - 27500*time.Millisecond
			if r := l.Remaining(); r != left {
				t.Errorf("%s remain after the suspension, want %s", r, left)
			}
			woke := time.Now()
			time.Sleep(time.Second)
			synctest.Wait()
			if !cutOff {
				if r := l.Remaining(); r < 28*time.Second {
					t.Errorf("%s remain a second after the suspension: it was not renewed", r)
				}
				return
			}
			<-l.Context().Done()
			if took := time.Since(woke); took != left {
				t.Errorf("the context ended %s after the suspension, want %s", took, left)
			}
		})
	}
}

// A request that was under way during the suspension was sent before it.
func TestSuspensionDuringRequest(t *testing.T) {
	for _, op := range []string{"acquire", "extend"} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, engine, nil)
			m := newLaptop(c)
			mustAcquire(t, c, "other", &holdfast.AcquireOptions{TTL: time.Hour})
			sent := time.Now()
			suspend := func(ctx context.Context, o string) error {
				if o == op {
					sent = time.Now()
					m.sleep(20 * time.Second)
					engine.set(fail(errLink, "extend"), nil)
					time.Sleep(2 * time.Second) // the keep-alive looks meanwhile
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
			if took := time.Since(sent); took != 9698*time.Millisecond {
				t.Errorf("%s: trusted for %s and a suspension of 20s, want 9.698s with a TTL of 30s", op, took)
			}
		})
	}
}

// MaxHold and MinHold count the time for which the machine was suspended.
func TestHoldsCountSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		m := newLaptop(c)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{MaxHold: time.Minute})
		time.Sleep(20 * time.Second)
		m.sleep(20 * time.Second)
		woke := time.Now()
		<-l.Context().Done()
		if took := time.Since(woke); took > 20*time.Second {
			t.Errorf("held for another %s after the suspension, want 20s at most", took)
		}
		wantErr(t, context.Cause(l.Context()), holdfast.ErrMaxHold)

		kept := mustAcquire(t, c, "b", &holdfast.AcquireOptions{MinHold: time.Minute, TTL: time.Hour})
		m.sleep(50 * time.Second)
		if err := kept.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		lock, err := c.Inspect(t.Context(), "b")
		if err != nil || len(lock.Holders) != 1 || lock.Holders[0].ExpiresIn > 10*time.Second {
			t.Errorf("after 50 s of a MinHold of a minute: %+v, %v", lock, err)
		}
	})
}

// INVARIANT I8: several leases know of a suspension as soon as one does, which
// is before the keep-alive has looked.
func TestRemainingOfSeveralAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		m := newLaptop(c)
		ls, err := c.AcquireAll(t.Context(), []string{"a", "b"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ls.Release(t.Context()) }() // what it returns is tested elsewhere
		before := ls.Remaining()
		m.sleep(10 * time.Second)
		if left, want := ls.Remaining(), before-10*time.Second; left != want {
			t.Errorf("trusted for %s, want %s", left, want)
		}
	})
}
