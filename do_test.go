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
	"github.com/holdfast-locks/holdfast/internal/mem"
)

func TestCallReturnsTheValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		v, err := holdfast.Call(t.Context(), c, "a", nil, func(ctx context.Context, l *holdfast.Lease) (string, error) {
			got, ok := holdfast.LeaseFromContext(ctx)
			expect(t, ok && got == l, "the context does not carry the lease")
			expect(t, holders(t, engine, "a") == 1, "the lock is not held while the work runs")
			return "value", nil
		})
		expect(t, v == "value" && err == nil && holders(t, engine, "a") == 0, "Call = %q, %v; %d holders left", v, err, holders(t, engine, "a"))
	})
}

func TestDoReleasesInEveryCase(t *testing.T) {
	errWork := errors.New("work failed")
	cases := map[string]func(context.Context, *holdfast.Lease) error{
		"error": func(context.Context, *holdfast.Lease) error { return errWork },
		"panic": func(context.Context, *holdfast.Lease) error { panic("work panicked") },
	}
	for name, work := range cases {
		runInBubble(t, name, func(t *testing.T) {
			engine := mem.New(nil)
			c := newClient(t, engine, nil)
			func() {
				defer func() { recover() }()
				err := c.Do(t.Context(), "a", nil, work)
				expect(t, err == errWork, "Do = %v, want the work's error as it is", err)
			}()
			expect(t, holders(t, engine, "a") == 0, "the lock is still held")
		})
	}
}

func TestDoEndsTheWorkWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Do(ctx, "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
			<-ctx.Done()
			expect(t, l.Valid(), "the lease ended with the caller's context, before the work")
			return ctx.Err()
		})
		wantErr(t, err, context.DeadlineExceeded)
		expect(t, !errors.Is(err, holdfast.ErrLost) && holders(t, engine, "a") == 0, "error %v, %d holders left", err, holders(t, engine, "a"))
	})
}

func TestDoTellsLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		errWork := errors.New("work failed")
		for _, result := range []error{nil, errWork} {
			err := c.Do(t.Context(), "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
				engine.Release(ctx, driver.ReleaseRequest{Name: "a", LeaseID: l.ID()})
				<-ctx.Done()
				wantErr(t, context.Cause(ctx), holdfast.ErrLost)
				return result
			})
			wantErr(t, err, holdfast.ErrLost)
			if result != nil {
				wantErr(t, err, errWork)
			}
		}
		// If the work ends before the next renewal, the release detects the loss.
		err := c.Do(t.Context(), "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
			return engine.Release(ctx, driver.ReleaseRequest{Name: "a", LeaseID: l.ID()})
		})
		wantErr(t, err, holdfast.ErrLost)
	})
}

// TestDoExcludes checks that Do runs the work of one caller at a time. INVARIANT I1.
func TestDoExcludes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		var wg sync.WaitGroup
		inside, total := 0, 0
		var last uint64
		for range 4 {
			c := newClient(t, engine, nil)
			for range 8 {
				wg.Go(func() {
					for range 10 {
						err := c.Do(t.Context(), "a", nil, func(_ context.Context, l *holdfast.Lease) error {
							inside++ // the race detector checks this, too
							expect(t, inside == 1 && l.Token() > last, "%d inside, token %d after %d", inside, l.Token(), last)
							last = l.Token()
							time.Sleep(time.Millisecond)
							inside--
							total++
							return nil
						})
						expect(t, err == nil, "%v", err)
					}
				})
			}
		}
		wg.Wait()
		expect(t, total == 4*8*10, "the work ran %d times, want 320", total)
	})
}

// TestReleaseWithTheContextOfTheWork checks that the work may release its lease with its own
// context, which the release ends.
func TestReleaseWithTheContextOfTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.set(func(ctx context.Context, op string) error {
			if op != "release" {
				return nil
			}
			synctest.Wait()
			return ctx.Err() // like a store that checks the context
		}, nil)
		c := newClient(t, engine, nil)
		err := c.Do(t.Context(), "outer", nil, func(ctx context.Context, outer *holdfast.Lease) error {
			return c.Do(ctx, "inner", nil, func(ctx context.Context, inner *holdfast.Lease) error {
				return errors.Join(outer.Release(ctx), inner.Release(ctx))
			})
		})
		expect(t, err == nil, "a release with the context of the work: %v", err)
	})
}

// TestTryDoSkipsAtOnce checks that TryDo does not run the work if the lock is held, and returns the
// holder at once. Otherwise it runs the work like Do.
func TestTryDoSkipsAtOnce(t *testing.T) {
	for _, as := range fullAndPlain {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			deploy := holdfast.Holder{Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh"}
			other, c := newClient(t, as(engine), &holdfast.Options{Holder: deploy}), newClient(t, as(engine), nil)
			busy := mustAcquire(t, other, "orders/42", nil)
			time.Sleep(12 * time.Minute)

			start := time.Now()
			// A MaxWait is ignored, as by TryAcquire.
			err := c.TryDo(t.Context(), "orders/42", &holdfast.AcquireOptions{MaxWait: time.Hour}, func(context.Context, *holdfast.Lease) error {
				t.Error("the work ran although somebody else has the lock")
				return nil
			})
			var held *holdfast.HeldError
			expect(t, errors.As(err, &held) && held.Holder.Host == "web-3" && held.Since >= 12*time.Minute && time.Since(start) == 0,
				"after %s: %v, want at once that web-3 has it for 12m", time.Since(start), err)
			const says = `holdfast: acquire "orders/42": held by deploy@web-3 (pid 812, deploy.sh) for 12m`
			expect(t, err.Error() == says, "%q\nwant %q", err, says)
			n, err := holdfast.TryCall(t.Context(), c, "orders/42", nil, func(context.Context, *holdfast.Lease) (int, error) { return 7, nil })
			if wantErr(t, err, holdfast.ErrHeld); n != 0 {
				t.Errorf("%d came back from work that did not run", n)
			}

			busy.Release(t.Context())
			n, err = holdfast.TryCall(t.Context(), c, "orders/42", nil, func(ctx context.Context, l *holdfast.Lease) (int, error) {
				got, ok := holdfast.LeaseFromContext(ctx)
				expect(t, ok && got == l && l.Valid() && holders(t, engine, "orders/42") == 1, "the work does not run under the lease")
				return 7, nil
			})
			expect(t, n == 7 && err == nil, "TryCall = %d, %v; want 7", n, err)
			errWork := errors.New("work failed")
			if err := c.TryDo(t.Context(), "orders/42", nil, func(context.Context, *holdfast.Lease) error { return errWork }); err != errWork {
				t.Errorf("%v, want the work's error as it is", err)
			}
			nothingLeft(t, engine, "orders/42")
		})
	}
}

// unpanicked returns the error of call, which must not panic.
func unpanicked(t testing.TB, call func() error) (err error) {
	t.Helper()
	defer func() {
		p := recover()
		expect(t, p == nil, "it panics: %v", p)
	}()
	return call()
}

// TestNoWork checks that nil work is refused before a request is sent.
func TestNoWork(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
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
		n := engine.count("acquire")
		expect(t, n == 0, "%d requests were sent", n)
	})
}

// TestTryDoTellsAnOutage checks that TryDo does not return ErrHeld if the store does not answer.
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
