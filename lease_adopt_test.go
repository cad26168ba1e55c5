package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// left acquires a lease by a client of its own, which leaves it, and returns what
// whoever adopts it has to know.
func left(t testing.TB, store *memlock.Engine, opts *holdfast.AcquireOptions) (holdfast.LeaseID, *holdfast.AdoptOptions) {
	t.Helper()
	l := mustAcquire(t, newClient(t, newFaultyOn(store), &holdfast.Options{TTL: 10 * time.Second}), "a", opts)
	if err := l.Leave(); err != nil {
		t.Fatal(err)
	}
	return l.ID(), &holdfast.AdoptOptions{Token: l.Token(), Mode: l.Mode(), Limit: l.Limit(), Permits: l.Permits(), TTL: 10 * time.Second}
}

// A lease that was left in one process is kept alive by another, with its token, for
// as long as one likes, and given back by it.
func TestAdopt(t *testing.T) {
	modes := map[string]*holdfast.AcquireOptions{"exclusive": nil, "shared": shared, "semaphore": semaphore(3, 2)}
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				id, adopt := left(t, engine.Engine, opts)
				var acquired atomic.Int32
				c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
					if e.Kind == holdfast.Acquired && e.LeaseID == id {
						acquired.Add(1)
					}
				}})
				time.Sleep(9 * time.Second)
				l, err := c.Adopt(t.Context(), "a", id, adopt)
				if err != nil {
					t.Fatal(err)
				}
				if l.ID() != id || l.Token() != adopt.Token || l.Mode() != adopt.Mode || l.Permits() != adopt.Permits || l.Limit() != adopt.Limit {
					t.Errorf("adopted %v, want what was left", l)
				}
				waiting := enqueue(t.Context(), c, "a", nil2exclusive(opts))
				trusted(t, engine, l, time.Second, 5*time.Minute)
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
				granted(t, waiting).lease.Release(t.Context())
				if acquired.Load() != 1 {
					t.Errorf("the Observer heard of %d acquired leases, want the one that was adopted", acquired.Load())
				}
				nothingLeft(t, engine, "a")
				if engine.count("acquire") != 1 {
					t.Errorf("%d acquires, want that of the waiter only", engine.count("acquire"))
				}
			})
		})
	}
}

// nil2exclusive returns options for a request that has to wait for a lease with opts.
func nil2exclusive(opts *holdfast.AcquireOptions) *holdfast.AcquireOptions {
	if opts != nil && opts.Mode == holdfast.Semaphore {
		return semaphore(opts.Limit, opts.Limit)
	}
	return nil
}

// INVARIANT I3: the deadline of an adopted lease counts from before a request that
// this client has sent, however long its answer takes, and whichever of its copies
// was answered.
func TestAdoptionCountsFromItsRequest(t *testing.T) {
	lost := 0
	ways := map[string][2]func(context.Context, string) error{
		"request is slow": {delay(900 * time.Millisecond), nil},
		"reply is slow":   {nil, delay(900 * time.Millisecond)},
		"replies get lost": {delay(50 * time.Millisecond), func(context.Context, string) error {
			if lost++; lost <= 2 {
				time.Sleep(400 * time.Millisecond)
				return errLink
			}
			return nil
		}},
	}
	for way, hooks := range ways {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				id, opts := left(t, engine.Engine, nil)
				opts.TTL, opts.KeepAlive = 3*time.Second, holdfast.KeepAliveOff
				time.Sleep(9 * time.Second)
				engine.set(hooks[0], hooks[1])
				c := newClient(t, engine, nil)
				l, err := c.Adopt(t.Context(), "a", id, opts)
				if err != nil {
					t.Fatal(err)
				}
				engine.heal()
				if left := l.Remaining(); left > 2200*time.Millisecond && way != "replies get lost" {
					t.Errorf("trusted for %s after a request of 900ms, of 3s in all", left)
				}
				trusted(t, engine, l, 50*time.Millisecond, 4*time.Second)
				wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
				l.Release(t.Context())
			})
		})
	}
}

// An answer that comes when the lease may not be trusted any more is none.
func TestAdoptionAnsweredTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		id, opts := left(t, engine.Engine, nil)
		opts.TTL = 500 * time.Millisecond
		engine.set(nil, delay(600*time.Millisecond))
		_, err := newClient(t, engine, nil).Adopt(t.Context(), "a", id, opts)
		wantErr(t, err, holdfast.ErrUnavailable)
		if holders(t, engine, "a") != 1 {
			t.Error("the lease has ended by it")
		}
	})
}

// What is not live is lost, why it is, and nothing comes to life by it.
func TestAdoptOfWhatIsOver(t *testing.T) {
	ends := map[string]struct {
		end  func(t *testing.T, engine *memlock.Engine, id *holdfast.LeaseID)
		want error
	}{
		"expired":  {func(*testing.T, *memlock.Engine, *holdfast.LeaseID) { time.Sleep(11 * time.Second) }, holdfast.ErrLost},
		"released": {func(t *testing.T, e *memlock.Engine, _ *holdfast.LeaseID) { takeAway(t, e, "a") }, holdfast.ErrLost},
		"never was": {func(t *testing.T, e *memlock.Engine, id *holdfast.LeaseID) {
			takeAway(t, e, "a")
			*id = driver.NewLeaseID()
		}, holdfast.ErrLost},
		"broken": {func(t *testing.T, e *memlock.Engine, _ *holdfast.LeaseID) {
			if _, err := newClient(t, newFaultyOn(e), nil).Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada", Reason: "its node is gone"}); err != nil {
				t.Fatal(err)
			}
		}, holdfast.ErrBroken},
	}
	for how, test := range ends {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				id, opts := left(t, engine.Engine, nil)
				test.end(t, engine.Engine, &id)
				l, err := newClient(t, engine, nil).Adopt(t.Context(), "a", id, opts)
				wantErr(t, err, holdfast.ErrLost)
				wantErr(t, err, test.want)
				if l != nil {
					t.Errorf("a lease %v came with the error", l)
				}
				nothingLeft(t, engine, "a")
			})
		})
	}
}

// A store that does not answer leaves it open whether the lease lasts longer, and the
// lease as it is: whoever comes again adopts it.
func TestAdoptUnanswered(t *testing.T) {
	for name, test := range map[string]struct {
		before, after func(context.Context, string) error
		want          error
	}{
		"refuses":         {fail(driver.ErrUnavailable, "extend"), nil, holdfast.ErrUnavailable},
		"hangs":           {hang("extend"), nil, holdfast.ErrOutcomeUnknown},
		"replies are cut": {nil, fail(errLink, "extend"), holdfast.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				id, opts := left(t, engine.Engine, nil)
				engine.set(test.before, test.after)
				_, err := c.Adopt(t.Context(), "a", id, opts)
				wantErr(t, err, test.want)
				engine.heal()
				l, err := c.Adopt(t.Context(), "a", id, opts)
				if err != nil {
					t.Fatal(err)
				}
				l.Release(t.Context())
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		id, opts := left(t, engine.Engine, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := newClient(t, engine, nil).Adopt(ctx, "a", id, opts)
		wantErr(t, err, context.Canceled)
		if engine.count("extend") != 0 {
			t.Error("asked under a context that had ended")
		}
	})
}

// Wrong arguments send nothing.
func TestAdoptRefusesBadInput(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	id, good := left(t, engine.Engine, nil)
	own := mustAcquire(t, c, "own", nil)
	calls := fmt.Sprint(engine.calls)
	with := func(change func(o *holdfast.AdoptOptions)) *holdfast.AdoptOptions {
		o := *good
		change(&o)
		return &o
	}
	for what, args := range map[string]struct {
		name string
		id   holdfast.LeaseID
		opts *holdfast.AdoptOptions
	}{
		"name":       {"", id, good},
		"lease ID":   {"a", "0123", good},
		"no options": {"a", id, nil},
		"no token":   {"a", id, with(func(o *holdfast.AdoptOptions) { o.Token = 0 })},
		"token":      {"a", id, with(func(o *holdfast.AdoptOptions) { o.Token = driver.MaxToken + 1 })},
		"TTL":        {"a", id, with(func(o *holdfast.AdoptOptions) { o.TTL = time.Millisecond })},
		"mode":       {"a", id, with(func(o *holdfast.AdoptOptions) { o.Permits = 2 })},
		"progress":   {"a", id, with(func(o *holdfast.AdoptOptions) { o.Progress, o.KeepAlive = time.Second, holdfast.KeepAliveOff })},
		"our own":    {"own", own.ID(), &holdfast.AdoptOptions{Token: own.Token()}},
	} {
		if _, err := c.Adopt(t.Context(), args.name, args.id, args.opts); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
	if got := fmt.Sprint(engine.calls); got != calls {
		t.Errorf("requests %s, and before that %s", got, calls)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := c.Adopt(t.Context(), "a", id, good)
	wantErr(t, err, holdfast.ErrClosed)
	if holders(t, engine, "a") != 1 {
		t.Error("the lease that was not adopted has ended")
	}
}

// INVARIANT I5: an acquire request of the lease may still be under way, of which
// whoever adopts it cannot know. Once it is released, that request is not granted.
func TestReleaseOfAdoptedMeetsZombies(t *testing.T) {
	engine := newFaulty()
	id, opts := left(t, engine.Engine, nil)
	l, err := newClient(t, engine, nil).Adopt(t.Context(), "a", id, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	reply, err := engine.Engine.Acquire(t.Context(), driver.AcquireRequest{Name: "a", LeaseID: id, TTL: time.Minute})
	if err != nil || reply.Outcome != driver.Cancelled {
		t.Errorf("a copy of the acquire is answered %+v, %v; want Cancelled", reply, err)
	}
}

// An obliging engine extends whatever it is asked to, as a store does that has come
// back with old data.
type obliging struct{ *faulty }

func (obliging) Extend(_ context.Context, reqs []driver.ExtendRequest) []error {
	return make([]error, len(reqs))
}

// Of two exclusive leases of a name the earlier one ends, whichever of the two was
// adopted.
func TestAdoptedRivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, obliging{engine}, nil)
		mine := mustAcquire(t, c, "a", nil)
		_, err := c.Adopt(t.Context(), "a", driver.NewLeaseID(), &holdfast.AdoptOptions{Token: mine.Token() - 1})
		wantErr(t, err, holdfast.ErrLost)
		if !mine.Valid() {
			t.Fatal("the later lease has ended")
		}
		later, err := c.Adopt(t.Context(), "a", driver.NewLeaseID(), &holdfast.AdoptOptions{Token: mine.Token() + 1})
		if err != nil {
			t.Fatal(err)
		}
		overtaken(t, mine)
		if !later.Valid() {
			t.Error("the adopted lease has ended")
		}
	})
}

// MaxHold, MinHold and Progress count from the adoption.
func TestAdoptedTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		adopt := func(change func(o *holdfast.AdoptOptions)) *holdfast.Lease {
			id, opts := left(t, engine.Engine, nil)
			time.Sleep(5 * time.Second)
			change(opts)
			l, err := c.Adopt(t.Context(), "a", id, opts)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		for _, test := range []struct {
			change func(o *holdfast.AdoptOptions)
			want   error
			least  time.Duration
		}{
			{func(o *holdfast.AdoptOptions) { o.MaxHold = time.Minute }, holdfast.ErrMaxHold, 59 * time.Second},
			{func(o *holdfast.AdoptOptions) { o.Progress = 20 * time.Second }, holdfast.ErrStalled, 20 * time.Second},
			{func(o *holdfast.AdoptOptions) { o.KeepAlive = holdfast.KeepAliveOff }, holdfast.ErrLost, 9 * time.Second},
		} {
			start := time.Now()
			l := adopt(test.change)
			<-l.Context().Done()
			took := time.Since(start) - 5*time.Second
			wantErr(t, context.Cause(l.Context()), test.want)
			if took < test.least || took > test.least+12*time.Second {
				t.Errorf("%v after %s, want %s or a little more", test.want, took, test.least)
			}
			l.Release(t.Context())
			time.Sleep(15 * time.Second)
		}
		start := time.Now()
		l := adopt(func(o *holdfast.AdoptOptions) { o.MinHold = time.Minute })
		l.Release(t.Context())
		next, err := c.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if closed := time.Since(start) - 5*time.Second; closed < time.Minute || closed > 61*time.Second {
			t.Errorf("the name was closed for %s, want MinHold", closed)
		}
		next.Release(t.Context())
	})
}

// Adopt waits for nobody, so that no context is in its way, and what is acquired under
// an adopted lease knows of it.
func TestAdoptionAndNesting(t *testing.T) {
	engine := newFaulty()
	c, other := newClient(t, engine, nil), newClient(t, engine, nil)
	l := mustAcquire(t, c, "a", nil)
	ctx := l.Context()
	again, err := other.Adopt(ctx, "a", l.ID(), &holdfast.AdoptOptions{Token: l.Token()})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Leave(); err != nil {
		t.Fatal(err)
	}
	_, err = other.Acquire(again.Context(), "a", nil)
	wantErr(t, err, holdfast.ErrDeadlock)
	if again.Context().Err() != nil {
		t.Error("the adopted lease ended with the one that was left")
	}
	again.Release(t.Context())
}
