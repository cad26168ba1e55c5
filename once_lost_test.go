package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

func TestOnceLostWhileItRuns(t *testing.T) {
	errWork := errors.New("work failed")
	for _, result := range []error{nil, errWork} {
		t.Run(fmt.Sprint(result), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				_, err := c.Once(t.Context(), "k", nil, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
					engine.Engine.Release(ctx, driver.ReleaseRequest{Name: "k", LeaseID: l.ID()})
					<-ctx.Done()
					wantErr(t, context.Cause(ctx), holdfast.ErrLost)
					return []byte("stale"), result
				})
				wantErr(t, err, holdfast.ErrLost)
				if result != nil {
					wantErr(t, err, result)
				}
				wantFree(t, engine, c)
			})
		})
	}
}

// Work that ends before the next renewal learns the loss from the store.
func TestOnceLostUnnoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		_, err := c.Once(t.Context(), "k", nil, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
			return []byte("stale"), engine.Engine.Release(ctx, driver.ReleaseRequest{Name: "k", LeaseID: l.ID()})
		})
		wantErr(t, err, holdfast.ErrLost)
		wantFree(t, engine, c)
	})
}

func TestOnceWorkReleasesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		_, err := c.Once(t.Context(), "k", nil, func(_ context.Context, l *holdfast.Lease) ([]byte, error) {
			return []byte("unprotected"), l.Release(t.Context())
		})
		wantErr(t, err, holdfast.ErrLost)
		wantFree(t, engine, c)
	})
}

// INVARIANT I4: whoever was paused past its lease overwrites nothing.
func TestOnceZombieIsRefused(t *testing.T) {
	pauses := map[string]struct {
		forgets bool // the first process dies for the store, not only for itself
		retain  time.Duration
	}{
		"result kept":      {retain: time.Hour},
		"result over":      {retain: time.Second},
		"result forgotten": {retain: time.Hour, forgets: true},
	}
	for name, p := range pauses {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFaulty()
				paused := newFaultyOn(store.Engine)
				paused.set(fail(errLink, "extend"), nil)
				a, b := newClient(t, paused, nil), newClient(t, store, nil)
				_, err := a.Once(t.Context(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) {
					time.Sleep(time.Minute) // it does not look at its context
					if r := once(t, b, &holdfast.OnceOptions{Retention: p.retain}, returns("second")); r.Replayed {
						t.Error("the second did not run")
					}
					time.Sleep(2 * time.Second)
					if p.forgets {
						b.OnceForget(t.Context(), "k")
					}
					return []byte("zombie"), nil
				})
				wantErr(t, err, holdfast.ErrLost)
				if p.retain == time.Hour && !p.forgets {
					if s := wantState(t, b, holdfast.OnceDone); string(s.Result.Value) != "second" {
						t.Errorf("the store keeps %q, want the second's", s.Result.Value)
					}
					return
				}
				wantFree(t, store, b)
			})
		})
	}
}

// A process that is paused between its work and the request to store, and is
// overtaken there, does not know that it is late.
func TestOnceOvertakenBeforeComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		a, b := newClient(t, engine, nil), newClient(t, engine, nil)
		var lease *holdfast.Lease
		engine.set(func(ctx context.Context, op string) error {
			if op == "complete" && lease != nil {
				stale := lease
				lease = nil
				engine.Engine.Release(ctx, driver.ReleaseRequest{Name: "k", LeaseID: stale.ID()}) // it expires
				once(t, b, nil, returns("second"))
			}
			return nil
		}, nil)
		_, err := a.Once(t.Context(), "k", nil, func(_ context.Context, l *holdfast.Lease) ([]byte, error) {
			lease = l
			return []byte("first"), nil
		})
		wantErr(t, err, holdfast.ErrLost)
		if s := wantState(t, b, holdfast.OnceDone); string(s.Result.Value) != "second" {
			t.Errorf("the store keeps %q, want the second's", s.Result.Value)
		}
	})
}

func TestOnceMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		for want, o := range map[error]holdfast.OnceOptions{
			holdfast.ErrMaxHold: {MaxHold: time.Minute},
			holdfast.ErrStalled: {Progress: 5 * time.Second},
		} {
			_, err := c.Once(t.Context(), "k", &o, func(ctx context.Context, _ *holdfast.Lease) ([]byte, error) {
				<-ctx.Done()
				wantErr(t, context.Cause(ctx), want)
				return nil, context.Cause(ctx)
			})
			wantErr(t, err, want)
			wantErr(t, err, holdfast.ErrLost)
			synctest.Wait() // it is freed in the background
			nothingLeft(t, engine, "k")
		}
	})
}

func TestOnceAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		_, err := c.Once(t.Context(), "k", nil, func(ctx context.Context, _ *holdfast.Lease) ([]byte, error) {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
			<-ctx.Done() // or the test hangs
			return []byte("unprotected"), nil
		})
		wantErr(t, err, holdfast.ErrLost)
		nothingLeft(t, engine, "k")
		_, err = c.Once(t.Context(), "k", nil, mustNotRun(t).fn)
		wantErr(t, err, holdfast.ErrClosed)
	})
}
