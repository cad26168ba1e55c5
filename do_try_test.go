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

// TestTryDoSkipsAtOnce: the work that somebody else does is skipped at once, and who
// that is comes back; work that nobody does is done as by Do.
func TestTryDoSkipsAtOnce(t *testing.T) {
	for _, as := range []func(*faulty) driver.Engine{
		func(f *faulty) driver.Engine { return f },
		func(f *faulty) driver.Engine { return plain{f} },
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			deploy := holdfast.Holder{Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh"}
			other, c := newClient(t, as(engine), &holdfast.Options{Holder: deploy}), newClient(t, as(engine), nil)
			busy := mustAcquire(t, other, "orders/42", nil)
			time.Sleep(12 * time.Minute)

			start := time.Now()
			// A Wait is ignored, as by TryAcquire.
			err := c.TryDo(t.Context(), "orders/42", &holdfast.AcquireOptions{Wait: time.Hour}, func(context.Context, *holdfast.Lease) error {
				t.Error("the work ran although somebody else has the lock")
				return nil
			})
			var held *holdfast.HeldError
			if !errors.As(err, &held) || held.Holder.Host != "web-3" || held.Since < 12*time.Minute || time.Since(start) != 0 {
				t.Errorf("after %s: %v, want at once that web-3 has it for 12m", time.Since(start), err)
			}
			const says = `holdfast: acquire "orders/42": held by deploy@web-3 (pid 812, deploy.sh) for 12m`
			if err.Error() != says {
				t.Errorf("%q\nwant %q", err, says)
			}
			n, err := holdfast.TryCall(t.Context(), c, "orders/42", nil, func(context.Context, *holdfast.Lease) (int, error) { return 7, nil })
			if wantErr(t, err, holdfast.ErrHeld); n != 0 {
				t.Errorf("%d came back from work that did not run", n)
			}

			busy.Release(t.Context())
			n, err = holdfast.TryCall(t.Context(), c, "orders/42", nil, func(ctx context.Context, l *holdfast.Lease) (int, error) {
				if got, ok := holdfast.LeaseFromContext(ctx); !ok || got != l || !l.Valid() || holders(t, engine, "orders/42") != 1 {
					t.Error("the work does not run under the lease")
				}
				return 7, nil
			})
			if n != 7 || err != nil {
				t.Errorf("TryCall = %d, %v; want 7", n, err)
			}
			errWork := errors.New("work failed")
			if err := c.TryDo(t.Context(), "orders/42", nil, func(context.Context, *holdfast.Lease) error { return errWork }); err != errWork {
				t.Errorf("%v, want the work's error as it is", err)
			}
			nothingLeft(t, engine, "orders/42")
		})
	}
}

// unpanicked returns the error of a call, which must not panic.
func unpanicked(t testing.TB, call func() error) (err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("it panics: %v", p)
		}
	}()
	return call()
}

// TestNoWork: work that is nil is refused before anything is sent.
func TestNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		for _, call := range []func() error{
			func() error { return c.Do(t.Context(), "a", nil, nil) },
			func() error { return c.TryDo(t.Context(), "a", nil, nil) },
			func() error { _, err := holdfast.Call[int](t.Context(), c, "a", nil, nil); return err },
			func() error { _, err := holdfast.TryCall[int](t.Context(), c, "a", nil, nil); return err },
		} {
			if err := unpanicked(t, call); err == nil || !errors.Is(err, holdfast.ErrInvalid) || err.Error() != `holdfast: do "a": invalid work: it is nil` {
				t.Errorf("error %v", err)
			}
		}
		if n := engine.count("acquire"); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

// TestTryDoTellsAnOutage: a store that does not answer is not somebody who works.
func TestTryDoTellsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := newFaulty()
		dead.set(fail(driver.ErrUnavailable, "acquire"), nil)
		for _, c := range []*holdfast.Client{newClient(t, dead, nil), newClient(t, plain{dead}, nil)} {
			err := c.TryDo(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) error { return nil })
			if wantErr(t, err, holdfast.ErrUnavailable); errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%v is ErrHeld as well", err)
			}
		}
	})
}
