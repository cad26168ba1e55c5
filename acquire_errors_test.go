package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestNesting checks that a call that would wait for a lease of its own context fails with
// ErrDeadlock. A TryAcquire that can succeed or fail at once is sent. An error of nil stands for a
// lease.
func TestNesting(t *testing.T) {
	exclusive := &holdfast.AcquireOptions{}
	deadlock, mismatch := holdfast.ErrDeadlock, holdfast.ErrKindMismatch
	tests := []struct {
		held      []*holdfast.AcquireOptions // outermost first
		want      *holdfast.AcquireOptions
		try, wait error
	}{
		{[]*holdfast.AcquireOptions{exclusive}, exclusive, deadlock, deadlock},
		{[]*holdfast.AcquireOptions{exclusive}, shared, deadlock, deadlock},
		{[]*holdfast.AcquireOptions{exclusive}, semaphore(3, 1), deadlock, deadlock},
		{[]*holdfast.AcquireOptions{shared}, exclusive, deadlock, deadlock},
		{[]*holdfast.AcquireOptions{shared}, shared, nil, deadlock},
		{[]*holdfast.AcquireOptions{shared, shared}, shared, nil, deadlock},
		{[]*holdfast.AcquireOptions{shared}, semaphore(3, 1), mismatch, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, exclusive, deadlock, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, shared, mismatch, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, semaphore(3, 1), nil, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, semaphore(3, 2), nil, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, semaphore(3, 3), holdfast.ErrHeld, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 3)}, semaphore(3, 1), holdfast.ErrHeld, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1), semaphore(3, 1)}, semaphore(3, 1), nil, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1), semaphore(3, 1)}, semaphore(3, 2), holdfast.ErrHeld, deadlock},
		{[]*holdfast.AcquireOptions{semaphore(3, 1)}, semaphore(5, 1), mismatch, deadlock},
	}
	for _, tt := range tests {
		var held string
		for _, o := range tt.held {
			held += fmt.Sprint(o.Mode, ", ")
		}
		runInBubble(t, fmt.Sprint(held, "then ", tt.want.Mode), func(t *testing.T) {
			c := newClient(t, newFaulty(), nil)
			ctx := t.Context()
			for _, o := range tt.held {
				outer, err := c.TryAcquire(ctx, "a", o)
				must(t, err)
				between, err := c.TryAcquire(outer.Context(), fmt.Sprint("another ", outer.Token()), nil)
				must(t, err)
				ctx = between.Context()
			}
			check := func(what string, l *holdfast.Lease, err, want error) {
				t.Helper()
				expect(t, errors.Is(err, want) && (err == nil) == (want == nil), "%s: %v, want %v", what, err, want)
				if l != nil {
					l.Release(t.Context())
				}
			}
			start := time.Now()
			l, err := c.TryAcquire(ctx, "a", tt.want)
			check("TryAcquire", l, err, tt.try)
			l, err = c.Acquire(ctx, "a", tt.want)
			check("Acquire", l, err, tt.wait)
			took := time.Since(start)
			expect(t, took == 0, "took %s, want an answer at once", took)
		})
	}
}

// TestNestingUnderLeasesThatAreOver checks that an ended lease in the context prevents no
// acquisition.
func TestNestingUnderLeasesThatAreOver(t *testing.T) {
	for _, mode := range []*holdfast.AcquireOptions{{}, shared, semaphore(1, 1)} {
		for _, lost := range []bool{false, true} {
			runInBubble(t, fmt.Sprint(mode.Mode, " lost ", lost), func(t *testing.T) {
				c := newClient(t, newFaulty(), nil)
				opts := *mode
				opts.MaxHold = time.Minute
				outer := mustAcquire(t, c, "a", &opts)
				values := context.WithoutCancel(outer.Context())
				if lost {
					time.Sleep(time.Minute + time.Second)
				} else {
					outer.Release(t.Context())
				}
				l, err := c.Acquire(values, "a", mode)
				must(t, err)
				wantErr(t, errOf(c.Acquire(l.Context(), "a", mode)), holdfast.ErrDeadlock)
				l.Release(t.Context())
			})
		}
	}
}

// TestNestingOfAcquireAll checks that the leases of AcquireAll are nested in one another and in the
// caller's context.
func TestNestingOfAcquireAll(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		outer := mustAcquire(t, c, "b", nil)
		requests := len(engine.calls)
		for _, acquire := range []func(context.Context, []string, *holdfast.AcquireOptions) (*holdfast.Leases, error){
			c.AcquireAll, c.TryAcquireAll,
		} {
			wantErr(t, errOf(acquire(outer.Context(), []string{"a", "b"}, nil)), holdfast.ErrDeadlock)
		}
		expect(t, len(engine.calls) == requests, "requests were sent: %v", engine.calls)
		ls, err := c.AcquireAll(outer.Context(), []string{"x", "y", "z"}, nil)
		must(t, err)
		for _, name := range []string{"b", "x", "y", "z"} {
			wantErr(t, errOf(c.TryAcquire(ls.Context(), name, nil)), holdfast.ErrDeadlock)
		}
		inner, err := c.Acquire(ls.Context(), "c", nil)
		must(t, err)
		values := context.WithoutCancel(inner.Context())
		ls.Release(t.Context())
		again, err := c.AcquireAll(values, []string{"x", "y"}, nil)
		expect(t, err == nil, "after the release: %v", err)
		again.Release(t.Context())
		inner.Release(t.Context())
		outer.Release(t.Context())
	})
}

// TestNestingUnderDowngraded checks that a downgraded lease counts as shared.
func TestNestingUnderDowngraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		outer := mustAcquire(t, c, "a", nil)
		must(t, outer.Downgrade(t.Context()))
		l, err := c.TryAcquire(outer.Context(), "a", shared)
		must(t, err)
		l.Release(t.Context())
		wantErr(t, errOf(c.Acquire(outer.Context(), "a", shared)), holdfast.ErrDeadlock)
		outer.Release(t.Context())
	})
}

// TestEngineThatCannotBeCompared checks nesting with an engine that == cannot compare, because it
// is a struct that contains a map.
func TestEngineThatCannotBeCompared(t *testing.T) {
	type byValue struct {
		driver.Engine
		_ map[string]int
	}
	engine := byValue{Engine: plain{newFaulty()}}
	c, other := newClient(t, engine, nil), newClient(t, engine, nil)
	l := mustAcquire(t, c, "a", nil)
	defer l.Release(t.Context())
	wantErr(t, errOf(c.TryAcquire(l.Context(), "a", nil)), holdfast.ErrDeadlock)
	wantErr(t, errOf(other.TryAcquire(l.Context(), "a", nil)), holdfast.ErrHeld)
}

func TestDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c, other := newClient(t, engine, nil), newClient(t, engine, nil)
		outer := mustAcquire(t, c, "a", nil)
		inner, err := c.Acquire(outer.Context(), "b", nil)
		must(t, err)
		for _, client := range []*holdfast.Client{c, other} {
			wantErr(t, errOf(client.Acquire(inner.Context(), "a", nil)), holdfast.ErrDeadlock)
			wantErr(t, errOf(client.TryAcquire(inner.Context(), "b", nil)), holdfast.ErrDeadlock)
		}
		elsewhere := newClient(t, mem.New(nil), nil)
		if l, err := elsewhere.TryAcquire(inner.Context(), "a", nil); err != nil {
			t.Errorf("the same name in another store: %v", err)
		} else {
			l.Release(t.Context())
		}
		values := context.WithoutCancel(inner.Context())
		inner.Release(t.Context())
		outer.Release(t.Context())
		l, err := c.Acquire(values, "a", nil)
		need(t, err == nil, "after the release: %v", err)
		l.Release(t.Context())
	})
}

// TestAcquireAllCannotDeadlock checks that callers that request the same locks in different orders
// never wait for one another in a circle.
func TestAcquireAllCannotDeadlock(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		names := [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c"}, {"c", "a"}}
		var wg sync.WaitGroup
		inside := map[string]int{}
		start := time.Now()
		for i := range 8 {
			c := newClient(t, as, nil)
			wg.Go(func() {
				for range 20 {
					ls, err := c.AcquireAll(t.Context(), names[i%4], nil)
					if err != nil {
						t.Error(err)
						return
					}
					for _, name := range names[i%4] {
						inside[name]++ // the race detector checks this, too
						expect(t, inside[name] == 1, "%d hold %s", inside[name], name)
					}
					time.Sleep(time.Duration(i) * time.Millisecond)
					for _, name := range names[i%4] {
						inside[name]--
					}
					ls.Release(t.Context())
				}
			})
		}
		wg.Wait()
		took := time.Since(start)
		expect(t, took <= time.Second, "took %s, want the sum of the work, about 560ms", took)
		nothingLeft(t, engine, "a", "b", "c")
	})
}

func TestDoUnderDoIsADeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), nil)
		noWork := func(context.Context, *holdfast.Lease) error { return nil }
		err := c.Do(t.Context(), "a", nil, func(ctx context.Context, _ *holdfast.Lease) error {
			return c.Do(ctx, "b", nil, func(ctx context.Context, _ *holdfast.Lease) error {
				return c.Do(ctx, "a", nil, noWork)
			})
		})
		wantErr(t, err, holdfast.ErrDeadlock)
	})
}

func TestOnceUnderItselfIsADeadlock(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		for _, await := range []time.Duration{0, holdfast.Forever} {
			clear(engine.calls)
			once(t, c, nil, newJob(func(ctx context.Context, _ *holdfast.Lease, _ int) ([]byte, error) {
				return nil, c.Do(ctx, "inner", nil, func(ctx context.Context, _ *holdfast.Lease) error {
					ctx, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					wantErr(t, errOf(c.Once(ctx, "k", &holdfast.OnceOptions{Await: await}, returns("never").fn)), holdfast.ErrDeadlock)
					return nil
				})
			}))
			n := engine.count("acquire")
			expect(t, n == 2, "%d acquires, want 2: none for what cannot be", n)
			c.Records().Forget(t.Context(), "k")
		}
		// Different keys nest.
		once(t, c, nil, newJob(func(ctx context.Context, _ *holdfast.Lease, _ int) ([]byte, error) {
			r, err := c.Once(ctx, "other", nil, returns("inner").fn)
			return r.Value, err
		}))
	})
}

// TestAdoptionAndNesting checks that no lease in the context prevents Adopt, which never waits, and
// that acquisitions under an adopted lease detect a deadlock.
func TestAdoptionAndNesting(t *testing.T) {
	engine := newFaulty()
	c, other := newClient(t, engine, nil), newClient(t, engine, nil)
	l := mustAcquire(t, c, "a", nil)
	ctx := l.Context()
	again, err := other.Adopt(ctx, holdfast.NewHandle("a", l.ID(), l.Token(), holdfast.Exclusive), nil)
	must(t, err)
	mustLeave(t, l)
	wantErr(t, errOf(other.Acquire(again.Context(), "a", nil)), holdfast.ErrDeadlock)
	expect(t, again.Context().Err() == nil, "the adopted lease ended with the one that was left")
	again.Release(t.Context())
}

// TestEndOfWaitSaysWhy checks that the error of a wait that ends while the store refuses requests
// contains the store's error.
func TestEndOfWaitSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaulty()
		f.set(func(_ context.Context, op string) error {
			if op != "acquire" {
				return nil
			}
			return fmt.Errorf("%w: in quarantine for another 5m", holdfast.ErrUnavailable)
		}, nil)
		c, err := holdfast.New(f, &holdfast.Options{SharedEngine: true})
		must(t, err)
		defer func() {
			wantErr(t, c.Close(), nil)
		}()
		start := time.Now()
		_, err = c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{MaxWait: time.Second})
		took := time.Since(start)
		expect(t, errors.Is(err, holdfast.ErrUnavailable) && strings.Contains(err.Error(), "in quarantine for another 5m") && took == time.Second,
			"after %s: %v; want what the store said", took, err)
	})
}

// TestShortWaitOnABusyStore checks that a wait that ends within milliseconds of an unanswered
// request returns the store's last reply, however short the wait is. After a longer silence the
// wait returns ErrUnavailable, because the lock may have another holder.
func TestShortWaitOnABusyStore(t *testing.T) {
	for wait, want := range map[time.Duration]error{
		20 * time.Millisecond:  holdfast.ErrHeld,
		300 * time.Millisecond: holdfast.ErrUnavailable,
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, plain{engine}, nil)
			release := foreign(t, engine, "a", time.Minute)
			calls := 0
			engine.set(func(ctx context.Context, op string) error {
				if op == "acquire" {
					if calls++; calls > 1 {
						<-ctx.Done()
						return fmt.Errorf("%w: no answer", holdfast.ErrUnavailable)
					}
				}
				return nil
			}, nil)
			wantErr(t, errOf(c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{MaxWait: wait})), want)
			engine.heal()
			release()
		})
	}
}

// TestEndedWaitClaimsNoHolder checks that the error of an ended wait names no present holder if the
// store reported none, or reported it too long ago. The error does report that the store does not
// answer.
func TestEndedWaitClaimsNoHolder(t *testing.T) {
	for _, as := range fullAndPlain {
		synctest.Test(t, func(t *testing.T) {
			f := newFaulty()
			c := newClient(t, as(f), nil)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := c.Acquire(ended, "a", nil)
			wantOnly(t, err, context.Canceled)
			_, err = c.AcquireAll(ended, []string{"a", "b"}, nil)
			wantOnly(t, err, context.Canceled)

			// The store was silent from the beginning.
			f.set(hang("acquire"), nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err = c.Acquire(ctx, "a", nil)
			wantOnly(t, err, context.DeadlineExceeded)
			cancel()
			f.heal()

			// The store stops answering after it has reported the holder.
			for _, dead := range deadStores {
				release := foreign(t, f, "a", time.Hour)
				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
				waiter := enqueue(ctx, c, "a", nil)
				time.Sleep(time.Second)
				f.set(dead("acquire", "refresh"), nil)
				err = (<-waiter).err
				wantOnly(t, err, context.DeadlineExceeded, holdfast.ErrUnavailable)
				s := err.Error()
				expect(t, strings.HasPrefix(s, `holdfast: acquire "a": context deadline exceeded: store is unavailable`) && strings.Contains(s, "before that held by"),
					"%q, want that the store is away, and who had the lock before", s)
				cancel()
				f.heal()
				release()
			}
		})
	}
}

// wantOnly fails t unless err is each error of want, and no other error that a wait may end with.
func wantOnly(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, is := range want {
		wantErr(t, err, is)
	}
	for _, is := range []error{
		context.Canceled, context.DeadlineExceeded, holdfast.ErrHeld, holdfast.ErrInProgress, holdfast.ErrUnavailable, holdfast.ErrLost,
		holdfast.ErrOutcomeUnknown, holdfast.ErrClosed,
	} {
		wanted := false
		for _, w := range want {
			wanted = wanted || w == is
		}
		if !wanted && errors.Is(err, is) {
			t.Errorf("error = %v: it is also %v", err, is)
		}
	}
}
