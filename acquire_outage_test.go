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

// An outages is an Observer that records when outages began and ended.
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
	synctest.Wait() // until the Observer has received all events
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.heard)
}

// deadStores are the ways in which a store does not answer.
var deadStores = map[string]func(...string) func(context.Context, string) error{
	"refuses": func(ops ...string) func(context.Context, string) error { return fail(driver.ErrUnavailable, ops...) },
	"hangs":   hang,
}

// TestWaitEndsInOutage checks that a wait that ends while the store does not answer returns
// ErrUnavailable, not ErrHeld.
func TestWaitEndsInOutage(t *testing.T) {
	for way, dead := range deadStores {
		for _, queues := range []bool{true, false} {
			for _, wait := range []time.Duration{4 * time.Second, 15 * time.Second, time.Minute} {
				runInBubble(t, fmt.Sprintf("%s, queue %t, %s", way, queues, wait), func(t *testing.T) {
					engine := newFaulty()
					var as driver.Engine = engine
					if !queues {
						as = plain{engine}
					}
					o := &outages{start: time.Now()}
					c := newClient(t, as, &holdfast.Options{Observer: o.observe})
					release := foreign(t, engine, "a", time.Hour)
					waiter := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{MaxWait: wait})
					time.Sleep(time.Second)
					engine.set(dead("acquire", "refresh"), nil)
					result := <-waiter
					wantErr(t, result.err, holdfast.ErrUnavailable)
					expect(t, !errors.Is(result.err, holdfast.ErrHeld), "%v is ErrHeld as well", result.err)
					took := result.at.Sub(o.start)
					expect(t, took == wait, "it took %s", took)
					expect(t, wait < 15*time.Second || len(o.all()) == 2, "the Observer heard %v, want one outage, which ends with the wait", o.all())
					engine.heal()
					release()
				})
			}
		}
	}
}

// TestOutageIsTold checks that the Observer receives both ends of an outage during a wait.
func TestOutageIsTold(t *testing.T) {
	for way, dead := range deadStores {
		runInBubble(t, way, func(t *testing.T) {
			engine := newFaulty()
			o := &outages{start: time.Now()}
			c := newClient(t, engine, &holdfast.Options{Observer: o.observe})
			release := foreign(t, engine, "a", time.Hour)
			waiter := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{MaxWait: time.Minute})
			time.Sleep(time.Second)
			engine.set(dead("acquire", "refresh"), nil)
			time.Sleep(20 * time.Second)
			engine.heal()
			time.Sleep(10 * time.Second)
			heard := o.all()
			expect(t, len(heard) == 2 && strings.HasPrefix(heard[0], "outage-began") && strings.HasPrefix(heard[1], "outage-ended"),
				"the Observer heard %v, want one outage", heard)
			release()
			granted(t, waiter).lease.Release(t.Context())
		})
	}
}

// TestBlipIsNoOutage checks that a single failure is not reported as an outage.
func TestBlipIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		o := &outages{start: time.Now()}
		c := newClient(t, engine, &holdfast.Options{Observer: o.observe})
		release := foreign(t, engine, "a", time.Hour)
		waiter := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{MaxWait: 20 * time.Second})
		time.Sleep(time.Second)
		engine.set(fail(errLink, "refresh"), nil)
		for n := engine.count("refresh"); engine.count("refresh") == n; {
			time.Sleep(time.Millisecond)
		}
		engine.heal()
		wantErr(t, (<-waiter).err, holdfast.ErrHeld)
		heard := o.all()
		expect(t, len(heard) <= 0, "the Observer heard %v", heard)
		release()
	})
}

// TestWaitForStore checks that MaxWait bounds the wait for the lock, and for a store that is away.
func TestWaitForStore(t *testing.T) {
	for way, dead := range deadStores {
		runInBubble(t, way, func(t *testing.T) {
			engine := newFaulty()
			o := &outages{start: time.Now()}
			c := newClient(t, engine, &holdfast.Options{Observer: o.observe})
			opts := &holdfast.AcquireOptions{MaxWait: 20 * time.Second}
			engine.set(dead("acquire", "acquire-all"), nil)
			wantErr(t, errOf(c.Acquire(t.Context(), "a", opts)), holdfast.ErrUnavailable)
			took := time.Since(o.start)
			expect(t, took == opts.MaxWait, "gave up after %s, want the MaxWait of %s", took, opts.MaxWait)
			start := time.Now()
			wantErr(t, errOf(c.AcquireAll(t.Context(), []string{"a", "b"}, opts)), holdfast.ErrUnavailable)
			took = time.Since(start)
			expect(t, took == opts.MaxWait, "AcquireAll gave up after %s, want the MaxWait of %s", took, opts.MaxWait)
			time.AfterFunc(12*time.Second, engine.heal)
			l, err := c.Acquire(t.Context(), "a", opts)
			must(t, err)
			l.Release(t.Context())
			heard := o.all()
			expect(t, len(heard) == 6, "the Observer heard %v, want that three outages began and ended, two of them with the wait", heard)
			// Without a MaxWait, the wait for the store could last forever.
			engine.set(dead("acquire"), nil)
			start = time.Now()
			wantErr(t, errOf(c.Acquire(t.Context(), "a", nil)), holdfast.ErrUnavailable)
			took = time.Since(start)
			expect(t, took <= 10*time.Second, "without a MaxWait it gave up after %s, want about the request timeout", took)
			start = time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			wantErr(t, errOf(c.Once(ctx, "k", &holdfast.OnceOptions{Await: holdfast.Forever}, mustNotRun(t).fn)), holdfast.ErrUnavailable)
			took = time.Since(start)
			expect(t, took <= 10*time.Second, "with Await: Forever it gave up after %s, want about the request timeout", took)
			engine.heal()
		})
	}
}

// TestShortWaitHasOneAttempt checks that even the shortest wait leaves time for the reply to one
// request.
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
		opts := &holdfast.AcquireOptions{MaxWait: time.Microsecond}
		lease, err := c.Acquire(t.Context(), "free", opts)
		must(t, err)
		wantErr(t, errOf(c.Acquire(t.Context(), "free", opts)), holdfast.ErrHeld)
		synctest.Wait()
		expect(t, waited.Load() == 1, "the Observer received %d events Waiting", waited.Load())
		wantErr(t, lease.Release(t.Context()), nil)

		// The wait for that reply lasts for RequestTimeout at most.
		engine.set(hang("acquire"), nil)
		began := time.Now()
		wantErr(t, errOf(c.Acquire(t.Context(), "free", opts)), holdfast.ErrUnavailable)
		took := time.Since(began)
		expect(t, took == 5*time.Second, "a silent store was waited for %s", took)
	})
}

// errShutdown is the cause of a canceled context.
var errShutdown = errors.New("shutting down")

// endings are the ways in which a caller's context ends a wait after a minute, each with the errors
// and the text of the result.
var endings = map[string]struct {
	end  func(context.Context) (context.Context, context.CancelFunc)
	says string
	is   []error
}{
	"deadline": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		},
		"context deadline exceeded", []error{context.DeadlineExceeded},
	},
	"canceled": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Minute, cancel)
			return ctx, cancel
		},
		"context canceled", []error{context.Canceled},
	},
	"with a cause": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Minute, func() { cancel(errShutdown) })
			return ctx, func() { cancel(nil) }
		},
		"context canceled: shutting down", []error{context.Canceled, errShutdown},
	},
}

// TestEndedWaitSaysWhoHolds checks that the error of a wait that the caller's context ends names
// the holder, in one line. It matches both the context's error and the error that MaxWait leads to.
func TestEndedWaitSaysWhoHolds(t *testing.T) {
	deploy := holdfast.Holder{Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh"}
	for ending, tt := range endings {
		t.Run(ending, func(t *testing.T) {
			eachWait(t, func(t *testing.T, f *faulty, c *holdfast.Client, form string, call waitForm) {
				other := newClient(t, f, &holdfast.Options{Holder: deploy})
				busy := mustAcquire(t, other, "b", nil)
				if form != "AcquireAll" { // AcquireAll gets a, and waits for b
					busy.Release(t.Context())
					busy = mustAcquire(t, other, "a", nil)
				}
				time.Sleep(12 * time.Minute)
				ctx, stop := tt.end(t.Context())
				defer stop()
				err := call(ctx, c, 0)
				for _, is := range tt.is {
					wantErr(t, err, is)
				}
				says := `holdfast: acquire "` + busy.Name() + `": ` + tt.says + " while it was held by deploy@web-3 (pid 812, deploy.sh) for 13m (waited 1m)"
				var held *holdfast.HeldError
				var progress *holdfast.InProgressError
				if form == "Once" || form == "OnceBegin" {
					says = strings.Replace(strings.Replace(says, "acquire", "once", 1), "held by", "in progress by", 1)
					if !errors.Is(err, holdfast.ErrInProgress) || errors.Is(err, holdfast.ErrHeld) ||
						!errors.As(err, &progress) || progress.Holder.PID != 812 || progress.Waited != time.Minute {
						t.Errorf("%+v, want ErrInProgress that says who, and not ErrHeld", err)
					}
				} else if !errors.Is(err, holdfast.ErrHeld) || !errors.As(err, &held) || held.Holder.PID != 812 || held.Waited != time.Minute || held.Since != 13*time.Minute {
					t.Errorf("%+v, want ErrHeld that says who", err)
				}
				if err != nil && err.Error() != says {
					t.Errorf("%q\nwant %q", err, says)
				}
				busy.Release(t.Context())
				synctest.Wait()
				nothingLeft(t, f, "a", "b")
			})
		})
	}
}

func TestAcquireRetriesWithTheSameLeaseID(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		lost := 0
		engine.set(nil, func(_ context.Context, op string) error {
			if op == "acquire" && lost < 3 {
				lost++
				return errLink
			}
			return nil
		})
		l := mustAcquire(t, c, "a", nil) // its own lost grant does not lead to ErrHeld
		lock, _ := engine.Inspect(t.Context(), "a")
		expect(t, len(lock.Holders) == 1 && lock.Holders[0].Token == l.Token() && lock.Holders[0].LeaseID == l.ID(),
			"the store has %+v, the lease token %d", lock.Holders, l.Token())
		wantErr(t, l.Release(t.Context()), nil)
	})
}

// TestAbandonedAcquireLeavesNothing checks that nothing stays in the store, whenever the context
// ends. INVARIANT I5.
func TestAbandonedAcquireLeavesNothing(t *testing.T) {
	for _, hook := range []string{"request delayed", "reply delayed"} {
		runWithClient(t, hook, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			slow := func(_ context.Context, op string) error {
				if op == "acquire" {
					time.Sleep(100 * time.Millisecond)
				}
				return nil
			}
			if hook == "request delayed" {
				// The request reaches the store although its sender has given up, and after the
				// cancel.
				engine.set(func(ctx context.Context, op string) error {
					_ = slow(ctx, op)
					return nil
				}, nil)
			} else {
				engine.set(nil, slow)
			}
			for ms := range 130 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
				l, err := c.Acquire(ctx, "a", nil)
				cancel()
				if err == nil {
					l.Release(t.Context())
				}
				time.Sleep(time.Second)
				n := holders(t, engine.Engine, "a")
				need(t, n == 0, "context ended after %d ms: %d leases stayed behind", ms, n)
			}
		})
	}
}

func TestZombieAcquireMeetsTombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		zombies := make(chan driver.AcquireRequest, 1)
		held := &holding{faulty: engine, requests: zombies}
		c := newClient(t, held, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, errOf(c.Acquire(ctx, "a", nil)), context.DeadlineExceeded)
		synctest.Wait()
		reply, err := engine.Acquire(t.Context(), <-zombies)
		expect(t, err == nil && reply.Outcome == driver.Cancelled, "the zombie got %+v, %v; want Cancelled", reply, err)
	})
}

// A holding engine passes on no acquire request: it sends them to requests.
type holding struct {
	*faulty
	requests chan driver.AcquireRequest
}

func (h *holding) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	h.requests <- req
	<-ctx.Done()
	return driver.AcquireReply{}, ctx.Err()
}

func TestUnreachableStore(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		refuse := func(context.Context, string) error { return driver.ErrUnavailable }
		engine.set(refuse, nil)
		start := time.Now()
		wantErr(t, errOf(c.TryAcquire(t.Context(), "a", nil)), holdfast.ErrUnavailable)
		took := time.Since(start)
		expect(t, took == 0, "TryAcquire took %s, want an answer at once", took)
		wantErr(t, errOf(c.Acquire(t.Context(), "a", nil)), holdfast.ErrUnavailable)
		took = time.Since(start)
		expect(t, took >= 4*time.Second && took <= 7*time.Second, "Acquire gave up after %s, want about the request timeout", took)
		engine.set(hang("acquire", "release"), nil)
		_, err := c.TryAcquire(t.Context(), "a", nil)
		wantErr(t, err, holdfast.ErrUnavailable)
		expect(t, !errors.Is(err, context.DeadlineExceeded), "%v looks like the end of the caller's context", err)
		engine.heal()
	})
}

// TestWaiterRidesOutOutage checks that a waiter that has already queued behind a holder continues
// to wait through an outage.
func TestWaiterRidesOutOutage(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		mustAcquire(t, c, "a", &holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff})
		time.AfterFunc(time.Second, func() { engine.set(fail(errLink, "acquire", "refresh"), nil) })
		time.AfterFunc(2*time.Minute, engine.heal)
		start := time.Now()
		l, err := c.Acquire(t.Context(), "a", nil)
		must(t, err)
		defer l.Release(t.Context())
		took := time.Since(start)
		expect(t, took >= 2*time.Minute && took <= 2*time.Minute+2*time.Second, "acquired after %s, want soon after the outage of 2m", took)
		n := engine.count("acquire") + engine.count("refresh")
		expect(t, n <= 300, "%d requests in 2 minutes: the waiter spins", n)
	})
}

func TestLateGrantIsNotUsed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(nil, func(_ context.Context, op string) error {
			if op == "acquire" {
				time.Sleep(1200 * time.Millisecond)
			}
			return nil
		})
		wantErr(t, errOf(c.TryAcquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: time.Second})), holdfast.ErrUnavailable)
		synctest.Wait()
		n := holders(t, engine.Engine, "a")
		expect(t, n == 0, "%d leases stayed behind", n)
	})
}
