package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// An outages is an Observer that notes when outages began and ended.
type outages struct {
	mu    sync.Mutex // guards the rest
	start time.Time
	heard []string
}

func (o *outages) observe(e holdfast.Event) {
	if e.Kind != holdfast.OutageBegan && e.Kind != holdfast.OutageEnded {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.heard = append(o.heard, fmt.Sprintf("%s %d", e.Kind, time.Since(o.start)/time.Second))
}

func (o *outages) all() []string {
	synctest.Wait() // until it was told
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.heard)
}

// deadStores are the ways in which a store does not answer.
var deadStores = map[string]func(...string) func(context.Context, string) error{
	"refuses": func(ops ...string) func(context.Context, string) error { return fail(driver.ErrUnavailable, ops...) },
	"hangs":   hang,
}

// A wait that ends while the store does not answer ends as that, and not as
// held by whoever had the lock before.
func TestWaitEndsInOutage(t *testing.T) {
	for way, dead := range deadStores {
		for _, queues := range []bool{true, false} {
			for _, wait := range []time.Duration{4 * time.Second, 15 * time.Second, time.Minute} {
				t.Run(fmt.Sprintf("%s, queue %t, %s", way, queues, wait), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						engine := newFaulty()
						var as driver.Engine = engine
						if !queues {
							as = plain{engine}
						}
						o := &outages{start: time.Now()}
						c := newClient(t, as, &holdfast.Options{Observer: o.observe})
						release := foreign(t, engine, "a", time.Hour)
						waiter := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{Wait: wait})
						time.Sleep(time.Second)
						engine.set(dead("acquire", "refresh"), nil)
						result := <-waiter
						wantErr(t, result.err, holdfast.ErrUnavailable)
						if errors.Is(result.err, holdfast.ErrHeld) {
							t.Errorf("%v is ErrHeld as well", result.err)
						}
						if took := result.at.Sub(o.start); took != wait {
							t.Errorf("it took %s", took)
						}
						if wait >= 15*time.Second && len(o.all()) != 2 {
							t.Errorf("the Observer heard %v, want one outage, which ends with the wait", o.all())
						}
						engine.heal()
						release()
					})
				})
			}
		}
	}
}

// An outage that ends during the wait is told and does no harm.
func TestOutageIsTold(t *testing.T) {
	for way, dead := range deadStores {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				o := &outages{start: time.Now()}
				c := newClient(t, engine, &holdfast.Options{Observer: o.observe})
				release := foreign(t, engine, "a", time.Hour)
				waiter := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{Wait: time.Minute})
				time.Sleep(time.Second)
				engine.set(dead("acquire", "refresh"), nil)
				time.Sleep(20 * time.Second)
				engine.heal()
				time.Sleep(10 * time.Second)
				heard := o.all()
				if len(heard) != 2 || !strings.HasPrefix(heard[0], "outage-began") || !strings.HasPrefix(heard[1], "outage-ended") {
					t.Errorf("the Observer heard %v, want one outage", heard)
				}
				release()
				granted(t, waiter).lease.Release(t.Context())
			})
		})
	}
}

// A single failure is not an outage.
func TestBlipIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		o := &outages{start: time.Now()}
		c := newClient(t, engine, &holdfast.Options{Observer: o.observe})
		release := foreign(t, engine, "a", time.Hour)
		waiter := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{Wait: 20 * time.Second})
		time.Sleep(time.Second)
		engine.set(fail(errLink, "refresh"), nil)
		for n := engine.count("refresh"); engine.count("refresh") == n; {
			time.Sleep(time.Millisecond)
		}
		engine.heal()
		wantErr(t, (<-waiter).err, holdfast.ErrHeld)
		if heard := o.all(); len(heard) > 0 {
			t.Errorf("the Observer heard %v", heard)
		}
		release()
	})
}

// A Wait bounds both: the wait for the lock, and that for a store which is not
// there at the start.
func TestWaitForStore(t *testing.T) {
	for way, dead := range deadStores {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				o := &outages{start: time.Now()}
				c := newClient(t, engine, &holdfast.Options{Observer: o.observe})
				opts := &holdfast.AcquireOptions{Wait: 20 * time.Second}
				engine.set(dead("acquire", "acquire-all"), nil)
				_, err := c.Acquire(t.Context(), "a", opts)
				wantErr(t, err, holdfast.ErrUnavailable)
				if took := time.Since(o.start); took != opts.Wait {
					t.Errorf("gave up after %s, want the Wait of %s", took, opts.Wait)
				}
				start := time.Now()
				_, err = c.AcquireAll(t.Context(), []string{"a", "b"}, opts)
				wantErr(t, err, holdfast.ErrUnavailable)
				if took := time.Since(start); took != opts.Wait {
					t.Errorf("AcquireAll gave up after %s, want the Wait of %s", took, opts.Wait)
				}
				time.AfterFunc(12*time.Second, engine.heal)
				l, err := c.Acquire(t.Context(), "a", opts)
				if err != nil {
					t.Fatal(err)
				}
				l.Release(t.Context())
				if heard := o.all(); len(heard) != 6 {
					t.Errorf("the Observer heard %v, want that three outages began and ended, two of them with the wait", heard)
				}
				// Without a bound it would be for ever.
				engine.set(dead("acquire"), nil)
				start = time.Now()
				_, err = c.Acquire(t.Context(), "a", nil)
				wantErr(t, err, holdfast.ErrUnavailable)
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("without a Wait it gave up after %s, want about the request timeout", took)
				}
				engine.heal()
			})
		})
	}
}

// What is left of the lease in the way counts from the end of the wait.
func TestHeldErrorIsAged(t *testing.T) {
	for _, as := range []func(*faulty) driver.Engine{
		func(f *faulty) driver.Engine { return f },
		func(f *faulty) driver.Engine { return plain{f} },
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, as(engine), nil)
			release := foreign(t, engine, "a", 30*time.Second)
			_, err := c.Acquire(t.Context(), "a", &holdfast.AcquireOptions{Wait: 12300 * time.Millisecond})
			var held *holdfast.HeldError
			if !errors.As(err, &held) || held.ExpiresIn > 17700*time.Millisecond || held.ExpiresIn < 17690*time.Millisecond {
				t.Errorf("%v, want held for another 17.7s", err)
			}
			if held != nil && (held.Since > 12310*time.Millisecond || held.Since < 12300*time.Millisecond) {
				t.Errorf("held for %s, want 12.3s", held.Since)
			}
			release()
		})
	}
}

// However short the wait, one request has the time to be answered.
func TestShortWaitHasOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		var waited atomic.Int64
		c := newClient(t, engine, &holdfast.Options{RequestTimeout: 5 * time.Second, Observer: func(e holdfast.Event) {
			if e.Kind == holdfast.Waiting {
				waited.Add(1)
			}
		}})
		engine.set(delay(50*time.Millisecond), nil)
		opts := &holdfast.AcquireOptions{Wait: time.Microsecond}
		lease, err := c.Acquire(t.Context(), "free", opts)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Acquire(t.Context(), "free", opts)
		wantErr(t, err, holdfast.ErrHeld)
		synctest.Wait()
		if waited.Load() != 1 {
			t.Errorf("the Observer was told %d times that somebody waits", waited.Load())
		}
		wantErr(t, lease.Release(t.Context()), nil)

		// Nor does it last longer than that.
		engine.set(hang("acquire"), nil)
		began := time.Now()
		_, err = c.Acquire(t.Context(), "free", opts)
		wantErr(t, err, holdfast.ErrUnavailable)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("a silent store was waited for %s", took)
		}
	})
}
