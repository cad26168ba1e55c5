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
	"github.com/holdfast-locks/holdfast/memlock"
)

func TestCallReturnsTheValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		c := newClient(t, engine, nil)
		v, err := holdfast.Call(t.Context(), c, "a", nil, func(ctx context.Context, l *holdfast.Lease) (string, error) {
			if got, ok := holdfast.LeaseFromContext(ctx); !ok || got != l {
				t.Error("the context does not carry the lease")
			}
			if holders(t, engine, "a") != 1 {
				t.Error("the lock is not held while the work runs")
			}
			return "value", nil
		})
		if v != "value" || err != nil || holders(t, engine, "a") != 0 {
			t.Errorf("Call = %q, %v; %d holders left", v, err, holders(t, engine, "a"))
		}
	})
}

func TestDoReleasesInEveryCase(t *testing.T) {
	errWork := errors.New("work failed")
	cases := map[string]func(context.Context, *holdfast.Lease) error{
		"error": func(context.Context, *holdfast.Lease) error { return errWork },
		"panic": func(context.Context, *holdfast.Lease) error { panic("work panicked") },
	}
	for name, work := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := memlock.New()
				c := newClient(t, engine, nil)
				func() {
					defer func() { recover() }()
					err := c.Do(t.Context(), "a", nil, work)
					if err != errWork {
						t.Errorf("Do = %v, want the work's error as it is", err)
					}
				}()
				if holders(t, engine, "a") != 0 {
					t.Error("the lock is still held")
				}
			})
		})
	}
}

func TestDoEndsTheWorkWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		c := newClient(t, engine, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Do(ctx, "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
			<-ctx.Done()
			if !l.Valid() {
				t.Error("the lease ended with the caller's context, before the work")
			}
			return ctx.Err()
		})
		wantErr(t, err, context.DeadlineExceeded)
		if errors.Is(err, holdfast.ErrLost) || holders(t, engine, "a") != 0 {
			t.Errorf("error %v, %d holders left", err, holders(t, engine, "a"))
		}
	})
}

func TestDoTellsLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
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
		// Work that ends before the next renewal learns it from the release.
		err := c.Do(t.Context(), "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
			return engine.Release(ctx, driver.ReleaseRequest{Name: "a", LeaseID: l.ID()})
		})
		wantErr(t, err, holdfast.ErrLost)
	})
}

func TestDoUnderDoIsADeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, memlock.New(), nil)
		noWork := func(context.Context, *holdfast.Lease) error { return nil }
		err := c.Do(t.Context(), "a", nil, func(ctx context.Context, _ *holdfast.Lease) error {
			return c.Do(ctx, "b", nil, func(ctx context.Context, _ *holdfast.Lease) error {
				return c.Do(ctx, "a", nil, noWork)
			})
		})
		wantErr(t, err, holdfast.ErrDeadlock)
	})
}

// INVARIANT I1 as a user sees it.
func TestDoExcludes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		var wg sync.WaitGroup
		inside, total := 0, 0
		var last uint64
		for range 4 {
			c := newClient(t, engine, nil)
			for range 8 {
				wg.Go(func() {
					for range 10 {
						err := c.Do(t.Context(), "a", nil, func(_ context.Context, l *holdfast.Lease) error {
							inside++ // the race detector watches, too
							if inside != 1 || l.Token() <= last {
								t.Errorf("%d inside, token %d after %d", inside, l.Token(), last)
							}
							last = l.Token()
							time.Sleep(time.Millisecond)
							inside--
							total++
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if total != 4*8*10 {
			t.Errorf("the work ran %d times, want 320", total)
		}
	})
}

func TestInspectAndList(t *testing.T) {
	engine := memlock.New()
	c := newClient(t, engine, nil)
	for _, name := range []string{"jobs/a", "jobs/b", "other"} {
		defer mustAcquire(t, c, name, nil).Release(t.Context())
	}
	n := 0
	for lock, err := range c.List(t.Context(), "jobs/") {
		if err != nil || len(lock.Holders) != 1 {
			t.Errorf("%+v, %v", lock, err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d locks listed, want 2", n)
	}
	if _, err := c.Inspect(t.Context(), ""); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("empty name: %v", err)
	}
	for _, err := range newClient(t, driver.Forward{Engine: engine, Without: driver.Capabilities{List: true}}, nil).List(t.Context(), "") {
		wantErr(t, err, holdfast.ErrUnsupported)
	}
}

// The work may release its lease with its own context, which ends by that.
func TestReleaseWithTheContextOfTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.set(func(ctx context.Context, op string) error {
			if op != "release" {
				return nil
			}
			synctest.Wait()
			return ctx.Err() // as a store that looks at it
		}, nil)
		c := newClient(t, engine, nil)
		err := c.Do(t.Context(), "outer", nil, func(ctx context.Context, outer *holdfast.Lease) error {
			return c.Do(ctx, "inner", nil, func(ctx context.Context, inner *holdfast.Lease) error {
				return errors.Join(outer.Release(ctx), inner.Release(ctx))
			})
		})
		if err != nil {
			t.Errorf("a release with the context of the work: %v", err)
		}
	})
}
