package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// An owned engine counts the calls of Close. Its store stays open, so that tests can inspect it.
type owned struct {
	*faulty
	closed atomic.Int32
	err    error // of Close
}

func (o *owned) Close() error {
	o.closed.Add(1)
	return o.err
}

// newOwner returns a client that owns its engine.
func newOwner(t *testing.T, opts *holdfast.Options) (*holdfast.Client, *owned) {
	t.Helper()
	engine := &owned{faulty: newFaulty()}
	c, err := holdfast.New(engine, opts)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c, engine
}

// wantClosed fails t unless the engine was closed, or was not closed if want is false.
func wantClosed(t *testing.T, engine *owned, want bool) {
	t.Helper()
	closed := engine.closed.Load() > 0
	expect(t, closed == want, "the engine was closed: %t, want %t", closed, want)
}

// TestCloseTidiesUp checks that Close releases leases, ends waits, waits for the clean-ups of both,
// and closes the engine. A second Close does nothing.
func TestCloseTidiesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, engine := newOwner(t, nil)
		l := mustAcquire(t, c, "a", nil)
		holder := foreign(t, engine.faulty, "b", time.Hour)
		waiter := enqueue(t.Context(), c, "b", nil)
		engine.set(delay(100*time.Millisecond), delay(100*time.Millisecond))
		wantErr(t, c.Close(), nil)
		wantClosed(t, engine, true)
		wantErr(t, (<-waiter).err, holdfast.ErrClosed)
		wantErr(t, context.Cause(l.Context()), context.Canceled)
		holder()
		nothingLeft(t, engine.faulty, "a", "b")
		wantErr(t, c.Close(), nil)
		wantErr(t, c.Shutdown(t.Context()), nil)
		wantErr(t, errOf(c.TryAcquire(t.Context(), "a", nil)), holdfast.ErrClosed)
	})
}

// TestCloseGivesUp checks that a dead store delays Close by the request timeout at most, and that
// Close closes the engine nevertheless.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, engine := newOwner(t, &holdfast.Options{RequestTimeout: 3 * time.Second})
		mustAcquire(t, c, "a", nil)
		engine.set(hang("release", "extend"), nil)
		start := time.Now()
		wantErr(t, c.Close(), context.DeadlineExceeded)
		took := time.Since(start)
		expect(t, took == 3*time.Second, "Close took %s, want the request timeout of 3s", took)
		wantClosed(t, engine, true)
	})
}

// TestCloseWaitsForReleaseUnderWay checks that Close closes the engine only after a release that
// has already begun.
func TestCloseWaitsForReleaseUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, engine := newOwner(t, nil)
		l := mustAcquire(t, c, "a", nil)
		engine.set(delay(3*time.Second), nil)
		done := make(chan error, 1)
		go func() { done <- l.Release(t.Context()) }()
		time.Sleep(time.Second)
		start := time.Now()
		wantErr(t, c.Close(), nil)
		took := time.Since(start)
		expect(t, took == 2*time.Second, "Close took %s, want the 2s that the release takes yet", took)
		nothingLeft(t, engine.faulty, "a")
		wantErr(t, <-done, nil)
	})
}

// TestCloseOfEngines checks that Close leaves a shared engine open, and returns the error of
// closing its own engine.
func TestCloseOfEngines(t *testing.T) {
	c, engine := newOwner(t, &holdfast.Options{SharedEngine: true})
	wantErr(t, c.Close(), nil)
	wantErr(t, c.Shutdown(t.Context()), nil)
	wantClosed(t, engine, false)
	for _, end := range []func(*holdfast.Client) error{
		(*holdfast.Client).Close, func(c *holdfast.Client) error { return c.Shutdown(t.Context()) },
	} {
		c, engine := newOwner(t, nil)
		engine.err = errLink
		wantErr(t, end(c), errLink)
	}
}

// TestShutdownWaitsForHolders checks that Shutdown waits until all leases are released, renews them
// meanwhile, and refuses new calls.
func TestShutdownWaitsForHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, engine := newOwner(t, nil)
		l, other := mustAcquire(t, c, "a", nil), mustAcquire(t, c, "b", shared)
		waiter := enqueue(t.Context(), c, "a", nil)
		time.AfterFunc(time.Minute, func() { _ = other.Release(t.Context()) })
		time.AfterFunc(10*time.Minute+3*time.Second, func() { // no renewal is under way
			expect(t, l.Valid(), "lost: %v", context.Cause(l.Context()))
			engine.set(delay(time.Second), nil) // Shutdown waits for the reply, too
			wantErr(t, l.Release(t.Context()), nil)
		})
		start := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- c.Shutdown(t.Context()) }()
		wantErr(t, (<-waiter).err, holdfast.ErrClosed)
		wantErr(t, errOf(c.Acquire(t.Context(), "c", nil)), holdfast.ErrClosed)
		wantClosed(t, engine, false)
		wantErr(t, <-ended, nil)
		took := time.Since(start)
		expect(t, took == 10*time.Minute+4*time.Second, "Shutdown took %s, want the 10m4s until the last lease was released", took)
		wantClosed(t, engine, true)
		nothingLeft(t, engine.faulty, "a", "b", "c")
	})
}

// TestShutdownGivesUpWithItsContext checks that Shutdown returns when its context ends. The leases
// stay held, and the engine stays open until Close.
func TestShutdownGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, engine := newOwner(t, nil)
		l := mustAcquire(t, c, "a", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantErr(t, c.Shutdown(ctx), context.DeadlineExceeded)
		wantErr(t, c.Shutdown(ctx), context.DeadlineExceeded)
		wantClosed(t, engine, false)
		time.Sleep(10 * time.Minute)
		expect(t, l.Valid(), "lost: %v", context.Cause(l.Context()))
		wantErr(t, c.Close(), nil)
		wantClosed(t, engine, true)
		nothingLeft(t, engine.faulty, "a")
	})
}

// TestShutdownWithNothingToDo checks that Shutdown without leases returns no error even if its
// context has ended.
func TestShutdownWithNothingToDo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		c, engine := newOwner(t, nil)
		wantErr(t, mustAcquire(t, c, "a", nil).Release(t.Context()), nil)
		wantErr(t, c.Shutdown(ctx), nil)
		wantClosed(t, engine, true)
	}
}

// TestShutdownMeetsGrantAndLoss checks that Shutdown releases a lease that is granted after it has
// begun, and does not wait for a lost lease.
func TestShutdownMeetsGrantAndLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, engine := newOwner(t, nil)
		lost := mustAcquire(t, c, "lost", nil)
		engine.set(nil, func(_ context.Context, op string) error {
			if op == "acquire" {
				time.Sleep(time.Second)
			}
			return nil
		})
		waiter := make(chan error, 1)
		go func() {
			_, err := c.TryAcquire(t.Context(), "a", nil)
			waiter <- err
		}()
		time.Sleep(500 * time.Millisecond)
		time.AfterFunc(100*time.Millisecond, func() { takeAway(t, engine.Engine, "lost") })
		start := time.Now()
		wantErr(t, c.Shutdown(t.Context()), nil)
		took := time.Since(start)
		expect(t, took <= 10*time.Second, "Shutdown took %s: the lease was lost by the next renewal", took)
		wantErr(t, <-waiter, holdfast.ErrClosed)
		wantErr(t, context.Cause(lost.Context()), holdfast.ErrLost)
		nothingLeft(t, engine.faulty, "a")
	})
}

// TestShutdownWaitsForCompletion checks that Shutdown waits until the result of do-once work is
// stored, which ends its lease.
func TestShutdownWaitsForCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, engine := newOwner(t, nil)
		engine.set(func(_ context.Context, op string) error {
			if op == "complete" {
				time.Sleep(time.Second)
				if engine.closed.Load() > 0 {
					return holdfast.ErrClosed
				}
			}
			return nil
		}, nil)
		done := make(chan error, 1)
		working := make(chan struct{})
		go func() {
			_, err := c.Once(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) ([]byte, error) {
				close(working)
				time.Sleep(time.Minute)
				return nil, nil
			})
			done <- err
		}()
		<-working
		wantErr(t, c.Shutdown(t.Context()), nil)
		wantErr(t, <-done, nil)
	})
}

// TestShutdownEndsEvery checks that Shutdown does not wait for a replica that waits for the next
// time of its schedule, and releases its leases. A replica that runs finishes its run first.
func TestShutdownEndsEvery(t *testing.T) {
	for name, runs := range map[string]bool{"between runs": false, "during a run": true} {
		runInBubble(t, name, func(t *testing.T) {
			c, engine := newOwner(t, nil)
			done := make(chan error, 1)
			finished := 0
			go func() {
				done <- c.Every(t.Context(), "job", holdfast.Periodic(time.Unix(0, 0), time.Hour), nil, func(context.Context, holdfast.EveryRun) error {
					time.Sleep(10 * time.Minute)
					finished++
					return nil
				})
			}()
			time.Sleep(30 * time.Minute)
			want := time.Duration(0)
			if runs {
				time.Sleep(35 * time.Minute)
				want = 5 * time.Minute
			}
			start := time.Now()
			wantErr(t, c.Shutdown(t.Context()), nil)
			took := time.Since(start)
			expect(t, took == want && (finished > 0) == runs, "Shutdown took %s, want %s; %d runs", took, want, finished)
			wantErr(t, <-done, holdfast.ErrClosed)
			nothingLeft(t, engine.faulty, "job", "job"+holdfast.ScheduleSuffix)
		})
	}
}

// A traced engine is a wrapper that loses optional methods of the wrapped engine.
type traced struct{ driver.Engine }

// TestNewRefusesWrapperWithoutMethods checks that New refuses a wrapper that embeds only
// driver.Engine, and so has capabilities without their methods. Otherwise waiters would poll, and
// do-once work would be refused later, without an obvious reason.
func TestNewRefusesWrapperWithoutMethods(t *testing.T) {
	store := mem.New(nil)
	const says = "holdfast: new client: invalid engine: Capabilities.Queue is set, but *holdfast_test.traced lacks " +
		"Watch and Refresh of driver.Queuer: a wrapper must hand them on, as driver.Forward does"
	c, err := holdfast.New(&traced{store}, nil)
	expect(t, c == nil && errors.Is(err, holdfast.ErrInvalid) && err.Error() == says, "New = %v, %v\nwant ErrInvalid: %s", c, err, says)
	// A Forward around the wrapper does not hide that.
	if _, err := holdfast.New(driver.Forward{Engine: &traced{store}}, nil); err == nil || !strings.Contains(err.Error(), "traced") {
		t.Errorf("behind Forward: error %v, want one that names the wrapper", err)
	}
	if _, err := holdfast.New(driver.Forward{Engine: store}, nil); err != nil {
		t.Errorf("on Forward: %v", err)
	}
}

// TestClientsHolder checks that Reason and Labels of Options.Holder are ignored, because they
// belong to acquisitions, and that each acquire refuses an invalid holder, with or without a
// reason.
func TestClientsHolder(t *testing.T) {
	labels := map[string]string{"build": "17"}
	engine := mem.New(nil)
	good := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: "web-3", Reason: "\n", Labels: labels}})
	bad := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: "web\n3"}})
	for _, opts := range []*holdfast.AcquireOptions{nil, {Labels: map[string]string{}}, {Reason: "why"}, {Labels: labels}} {
		l := mustAcquire(t, good, "a", opts)
		want := holdfast.Holder{Host: "web-3"}
		if opts != nil {
			want.Reason, want.Labels = opts.Reason, opts.Labels
		}
		lock, err := good.Inspect(t.Context(), "a")
		if err != nil || len(lock.Holders) != 1 ||
			fmt.Sprintf("%+v", lock.Holders[0].Holder) != fmt.Sprintf("%+v", want) || fmt.Sprintf("%+v", l.Holder()) != fmt.Sprintf("%+v", want) {
			t.Errorf("%+v: the lease has %+v, the store %+v, %v; want %+v", opts, l.Holder(), lock.Holders, err, want)
		}
		l.Release(t.Context())
		wantErr(t, errOf(bad.TryAcquire(t.Context(), "a", opts)), holdfast.ErrInvalid)
	}
}

// TestLabelsAreCopied checks that later changes of the caller's map change neither the labels of a
// waiting request nor those of its lease.
func TestLabelsAreCopied(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		release := foreign(t, engine, "a", time.Hour)
		labels := map[string]string{"build": "17"}
		want := maps.Clone(labels)
		done := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{Labels: labels})
		labels["build"], labels["more"] = "18", "19"
		release()
		l := granted(t, done).lease
		got := l.Holder().Labels
		expect(t, maps.Equal(got, want), "the lease's labels are %v, want %v", got, want)
		lock, err := engine.Inspect(t.Context(), "a")
		expect(t, err == nil && len(lock.Holders) == 1 && maps.Equal(lock.Holders[0].Holder.Labels, want),
			"the store has %+v, %v; want the labels %v", lock.Holders, err, want)
		l.Release(t.Context())
	})
}

func TestInspectAndList(t *testing.T) {
	engine := mem.New(nil)
	c := newClient(t, engine, nil)
	for _, name := range []string{"jobs/a", "jobs/b", "other"} {
		defer mustAcquire(t, c, name, nil).Release(t.Context())
	}
	n := 0
	for lock, err := range c.List(t.Context(), "jobs/") {
		expect(t, err == nil && len(lock.Holders) == 1, "%+v, %v", lock, err)
		n++
	}
	expect(t, n == 2, "%d locks listed, want 2", n)
	if _, err := c.Inspect(t.Context(), ""); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("empty name: %v", err)
	}
	for _, err := range newClient(t, driver.Forward{Engine: engine, Without: driver.Capabilities{List: true}}, nil).List(t.Context(), "") {
		wantErr(t, err, holdfast.ErrUnsupported)
	}
}

// TestCloseEndsWaiters checks that Close ends all waits at once and removes their places.
func TestCloseEndsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
		must(t, err)
		foreign(t, engine, "a", time.Hour)
		first, second := enqueue(t.Context(), c, "a", nil), enqueue(t.Context(), c, "a", nil)
		time.Sleep(time.Minute)
		start := time.Now()
		wantErr(t, c.Close(), nil)
		lock, _ := engine.Inspect(t.Context(), "a")
		expect(t, len(lock.Queue) == 0, "%d places stayed behind", len(lock.Queue))
		for _, waiting := range []<-chan outcome{first, second} {
			o := <-waiting
			wantErr(t, o.err, holdfast.ErrClosed)
			took := o.at.Sub(start)
			expect(t, took == 0, "ended %s after Close", took)
		}
	})
}

// TestCloseMeetsGrant checks that a lease that is granted during Close is released.
func TestCloseMeetsGrant(t *testing.T) {
	for _, all := range []bool{false, true} {
		runInBubble(t, fmt.Sprint("several ", all), func(t *testing.T) {
			engine := newFaulty()
			c, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
			must(t, err)
			engine.set(nil, delay(time.Second))
			done := make(chan error, 1)
			go func() {
				if all {
					_, err := c.AcquireAll(t.Context(), []string{"a", "b"}, nil)
					done <- err
				} else {
					_, err := c.Acquire(t.Context(), "a", nil)
					done <- err
				}
			}()
			time.Sleep(500 * time.Millisecond)
			wantErr(t, c.Close(), nil)
			nothingLeft(t, engine, "a", "b")
			wantErr(t, <-done, holdfast.ErrClosed)
		})
	}
}
