package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// A waitForm is one of the calls that can wait for a lock. It gives back what it gets.
type waitForm func(ctx context.Context, c *holdfast.Client, wait time.Duration) error

// waitForms are all that can wait, for the names "a", or "a" and "b".
var waitForms = map[string]waitForm{
	"Acquire": func(ctx context.Context, c *holdfast.Client, wait time.Duration) error {
		l, err := c.Acquire(ctx, "a", &holdfast.AcquireOptions{Wait: wait})
		if err == nil {
			err = l.Release(context.WithoutCancel(ctx))
		}
		return err
	},
	"Do": func(ctx context.Context, c *holdfast.Client, wait time.Duration) error {
		return c.Do(ctx, "a", &holdfast.AcquireOptions{Wait: wait}, func(context.Context, *holdfast.Lease) error { return nil })
	},
	"AcquireAll": func(ctx context.Context, c *holdfast.Client, wait time.Duration) error {
		ls, err := c.AcquireAll(ctx, []string{"b", "a"}, &holdfast.AcquireOptions{Wait: wait, KeepAlive: holdfast.KeepAliveOff})
		if err == nil {
			err = ls.Release(context.WithoutCancel(ctx))
		}
		return err
	},
	"Once": func(ctx context.Context, c *holdfast.Client, wait time.Duration) error {
		_, err := c.Once(ctx, "a", &holdfast.OnceOptions{Await: true, Wait: wait}, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, nil })
		_, _ = c.OnceForget(context.WithoutCancel(ctx), "a")
		return err
	},
	"OnceBegin": func(ctx context.Context, c *holdfast.Client, wait time.Duration) error {
		run, _, err := c.OnceBegin(ctx, "a", &holdfast.OnceOptions{Await: true, Wait: wait})
		if err == nil {
			err = run.Fail(context.WithoutCancel(ctx))
		}
		return err
	},
}

// waitEngines are the kinds of engines for which a wait differs.
var waitEngines = map[string]func(*faulty) driver.Engine{
	"queue":    func(f *faulty) driver.Engine { return f },
	"no queue": func(f *faulty) driver.Engine { return unqueued(f) },
	"one by one": func(f *faulty) driver.Engine {
		return driver.Forward{Engine: f, Without: driver.Capabilities{AcquireAll: true}}
	},
	"split":                func(f *faulty) driver.Engine { return split{f} },
	"no queue, one by one": func(f *faulty) driver.Engine { return unqueued(oneByOne(f)) },
}

// eachWait runs test with each form on each kind of engine.
func eachWait(t *testing.T, test func(t *testing.T, f *faulty, c *holdfast.Client, form string, call waitForm)) {
	for kind, as := range waitEngines {
		for form, call := range waitForms {
			t.Run(form+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFaulty()
					test(t, f, newClient(t, as(f), &holdfast.Options{RequestTimeout: 5 * time.Second}), form, call)
				})
			})
		}
	}
}

// TestShortestWait: however short the Wait is, one attempt has the request timeout: a
// free lock is taken, of one that is held it is known who has it, and a store that is
// silent is waited for once.
func TestShortestWait(t *testing.T) {
	eachWait(t, func(t *testing.T, f *faulty, c *holdfast.Client, form string, call waitForm) {
		f.set(delay(50*time.Millisecond), nil)
		for _, wait := range []time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond} {
			if err := call(t.Context(), c, wait); err != nil {
				t.Errorf("free, Wait %s: %v", wait, err)
			}
		}
		want := holdfast.ErrHeld
		if form == "Once" || form == "OnceBegin" {
			want = holdfast.ErrInProgress
		}
		release := foreign(t, f, "a", time.Hour)
		err := call(t.Context(), c, time.Microsecond)
		if wantErr(t, err, want); errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("held: %v", err)
		}
		release()

		f.set(hang("acquire", "acquire-all"), nil)
		for wait, want := range map[time.Duration]time.Duration{time.Microsecond: 5 * time.Second, 7 * time.Second: 7 * time.Second} {
			start, before := time.Now(), f.count("acquire")+f.count("acquire-all")
			wantErr(t, call(t.Context(), c, wait), holdfast.ErrUnavailable)
			if n := f.count("acquire") + f.count("acquire-all") - before; wait < time.Second && n != 1 {
				t.Errorf("%d requests, want one", n)
			}
			if took := time.Since(start); took != want {
				t.Errorf("a silent store was waited for %s, want the request timeout, once, or the Wait: %s", took, want)
			}
		}
		f.heal()
		time.Sleep(time.Minute)
		nothingLeft(t, f, "a", "b")
	})
}

// TestLateNamesHaveAnAttempt: of several names the last one has its attempt too, even if
// the wait for the first has taken all of the Wait but a moment.
func TestLateNamesHaveAnAttempt(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, f *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		f.set(delay(10*time.Millisecond), nil)
		for last, want := range map[string]error{"free": nil, "held": holdfast.ErrHeld} {
			release, releaseLast := foreign(t, f, "a", time.Hour), func() {}
			if last == "held" {
				releaseLast = foreign(t, f, "b", time.Hour)
			}
			time.AfterFunc(time.Minute-time.Millisecond, release)
			ls, err := c.AcquireAll(t.Context(), []string{"a", "b"}, &holdfast.AcquireOptions{Wait: time.Minute})
			if wantErr(t, err, want); err == nil {
				ls.Release(t.Context())
			}
			releaseLast()
			synctest.Wait()
			time.Sleep(time.Minute)
			nothingLeft(t, f, "a", "b")
		}
	})
}
