package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/contexttest"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

func TestKeepAliveHoldsForHours(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "a", nil)
		token := l.Token()
		time.Sleep(6 * time.Hour)
		expect(t, l.Valid() && l.Token() == token && holders(t, engine.Engine, "a") == 1, "after 6 hours: valid %v, cause %v", l.Valid(), context.Cause(l.Context()))
		n := engine.count("extend")
		expect(t, n >= 6*3600/6 && n <= 6*3600/4, "%d renewals in 6 hours, want about one in 5 s", n)
		wantErr(t, l.Release(t.Context()), nil)
	})
}

// TestKeepAliveSurvivesBlips checks that a failed renewal is retried until the deadline.
// INVARIANT I9.
func TestKeepAliveSurvivesBlips(t *testing.T) {
	blips := map[string]func(context.Context, string) error{
		"refused":      fail(driver.ErrUnavailable, "extend"),
		"reply lost":   fail(errLink, "extend"),
		"not answered": hang("extend"),
	}
	for name, blip := range blips {
		runWithClient(t, name, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			l := mustAcquire(t, c, "a", nil)
			for range 10 {
				engine.set(blip, nil)
				time.Sleep(14 * time.Second)
				engine.heal()
				time.Sleep(20 * time.Second)
			}
			expect(t, l.Valid(), "lost in blips of 14 s with a TTL of 30 s: %v", context.Cause(l.Context()))
			l.Release(t.Context())
		})
	}
}

// TestKeepAliveTellsLossAtDeadline checks that the context of a holder that is cut off ends exactly
// at the deadline, before the store's expiry. INVARIANT I3.
func TestKeepAliveTellsLossAtDeadline(t *testing.T) {
	for name, fault := range map[string]func(context.Context, string) error{
		"fails": fail(errLink, "extend"),
		"hangs": hang("extend"),
	} {
		runWithClient(t, name, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			l := mustAcquire(t, c, "a", nil)
			time.Sleep(time.Minute)
			engine.set(fault, nil)
			<-l.Context().Done()
			now := time.Now()
			expect(t, now.Equal(l.Deadline()), "notified %s after the deadline", now.Sub(l.Deadline()))
			why := context.Cause(l.Context())
			wantErr(t, why, holdfast.ErrLost)
			if told := strings.HasSuffix(why.Error(), "(the last renewal: outcome is unknown: connection reset)"); told != (name == "fails") {
				t.Errorf("the loss says: %v", why)
			}
			expect(t, holders(t, engine.Engine, "a") == 1, "notified after the store's expiry")
			engine.heal()
			time.Sleep(time.Minute)
			expect(t, !l.Valid() && l.Remaining() == 0, "loss is not final")
			wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLost)
			wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		})
	}
}

func TestKeepAliveTellsWhenTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := newClient(t, engine, nil)
		l := mustAcquire(t, c, "a", nil)
		engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: l.ID()}) // by an operator
		start := time.Now()
		<-l.Context().Done()
		took := time.Since(start)
		expect(t, took <= 5*time.Second, "notified after %s, want within 5 s", took)
		wantErr(t, context.Cause(l.Context()), holdfast.ErrLost)
	})
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), nil)
		l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{StallAfter: time.Minute})
		for range 30 {
			time.Sleep(50 * time.Second)
			l.Heartbeat()
		}
		need(t, l.Valid(), "lost in spite of heartbeats: %v", context.Cause(l.Context()))
		time.Sleep(75 * time.Second) // stalled, but before the deadline
		l.Heartbeat()
		time.Sleep(50 * time.Second)
		need(t, l.Valid(), "a heartbeat before the deadline did not resume the keep-alive: %v", context.Cause(l.Context()))
		start := time.Now()
		<-l.Context().Done()
		took := time.Since(start)
		expect(t, took <= 90*time.Second, "lost %s after the last heartbeat, want within 1m and a TTL", took+50*time.Second)
		wantErr(t, context.Cause(l.Context()), holdfast.ErrStalled)
	})
}

// TestNoRenewalAfterRelease checks that no renewal is sent after Release has begun. INVARIANT I9.
func TestNoRenewalAfterRelease(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		for i := range 300 {
			engine.set(nil, delay(time.Duration(i)*time.Millisecond))
			l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: time.Second})
			time.Sleep(time.Duration(rand.IntN(900)) * time.Millisecond)
			start := time.Now()
			l.Release(t.Context())
			released := time.Now()
			time.Sleep(2 * time.Second)
			engine.mu.Lock()
			last := engine.last
			engine.mu.Unlock()
			need(t, !last.After(start), "a renewal was sent %s after Release began (which took %s)", last.Sub(start), released.Sub(start))
		}
	})
}

func TestObserverSeesTheLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var kinds []string
		engine := newFaulty()
		c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
			mu.Lock()
			defer mu.Unlock()
			if s := e.Kind.String(); len(kinds) == 0 || kinds[len(kinds)-1] != s {
				kinds = append(kinds, s)
			}
		}})
		l := mustAcquire(t, c, "a", nil)
		c.TryAcquire(t.Context(), "a", nil)
		time.Sleep(15 * time.Second)
		l.Release(t.Context())
		l = mustAcquire(t, c, "a", nil)
		engine.set(fail(errLink, "extend"), nil)
		<-l.Context().Done()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := "[acquired refused renewed released acquired renew-failed lost]"
		got := fmt.Sprint(kinds)
		expect(t, got == want, "events = %s, want %s", got, want)
	})
}

func TestCloseReleasesAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
		must(t, err)
		l := mustAcquire(t, c, "a", nil)
		engine.set(nil, func(ctx context.Context, op string) error {
			if op == "acquire" {
				return errLink
			}
			time.Sleep(time.Second)
			return nil
		})
		wantErr(t, errOf(c.TryAcquire(t.Context(), "b", nil)), holdfast.ErrUnavailable)
		wantErr(t, c.Close(), nil)
		expect(t, holders(t, engine.Engine, "a")+holders(t, engine.Engine, "b") == 0, "Close left a lease behind")
		expect(t, errors.Is(context.Cause(l.Context()), context.Canceled), "cause = %v", context.Cause(l.Context()))
		wantErr(t, errOf(c.TryAcquire(t.Context(), "a", nil)), holdfast.ErrClosed)
		if err := c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

// TestLossCause checks the name of each cause of a loss.
func TestLossCause(t *testing.T) {
	ways := map[string]struct {
		opts holdfast.AcquireOptions
		lose func(t *testing.T, c *holdfast.Client, engine *faulty)
	}{
		"deadline": {lose: func(_ *testing.T, _ *holdfast.Client, engine *faulty) { engine.set(fail(errLink, "extend"), nil) }},
		"max-hold": {opts: holdfast.AcquireOptions{MaxHold: time.Minute}},
		"stalled":  {opts: holdfast.AcquireOptions{StallAfter: time.Minute}},
		"broken": {lose: func(t *testing.T, c *holdfast.Client, _ *faulty) {
			must(t, errOf(c.Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada"})))
		}},
		"taken": {lose: func(t *testing.T, _ *holdfast.Client, engine *faulty) { takeAway(t, engine.Engine, "a") }},
		"overtaken": {lose: func(t *testing.T, c *holdfast.Client, engine *faulty) {
			takeAway(t, engine.Engine, "a")
			mustAcquire(t, c, "a", nil)
		}},
	}
	for want, way := range ways {
		runWithClient(t, want, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			l := mustAcquire(t, c, "a", &way.opts)
			if way.lose != nil {
				way.lose(t, c, engine)
			}
			<-l.Context().Done()
			err := context.Cause(l.Context())
			expect(t, holdfast.LossCause(err) == want, "%v is %q, want %q", err, holdfast.LossCause(err), want)
		})
	}
	got := holdfast.LossCause(holdfast.ErrLeft)
	expect(t, got == "", "what is not a loss is %q", got)
	got = holdfast.LossCause(errors.Join(holdfast.ErrLost, holdfast.ErrLeft))
	expect(t, got == "left", "a lease that was left is %q", got)
	got = holdfast.LossCause(nil)
	expect(t, got == "", "nil is %q", got)
}

// A contextCase is an order in which a lease and its context end and are read. Its events are
// letters. c: the caller's context ends, which has no effect. x: the deadline passes. b: the lock
// is broken. w: the machine wakes after the deadline, and Valid is called. r: Release is called.
type contextCase struct {
	events string
	first  contexttest.Look // the first look after the events
	early  contexttest.Look // a look before the events, unless zero
	each   bool             // Err is called after each event, too
}

// A twin contains the context of a lease and a standard context that ends with the lease.
type twin struct {
	contexts [2]context.Context
	said     [2][]string
}

func (w *twin) see(look func(context.Context) string) {
	for i, ctx := range w.contexts {
		w.said[i] = append(w.said[i], look(ctx))
	}
}

func (c contextCase) run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, leave := context.WithCancelCause(context.WithValue(t.Context(), contexttest.Key, "the caller's"))
		defer leave(nil)
		standard, end := context.WithCancelCause(context.WithoutCancel(caller))
		var lost atomic.Bool
		client := newClient(t, mem.New(nil), &holdfast.Options{Observer: func(e holdfast.Event) {
			if e.Kind == holdfast.Lost {
				end(e.Err)
				lost.Store(true)
			}
		}})
		start := time.Now()
		var asleep atomic.Int64
		holdfast.SetBootClock(client, func() time.Duration { return time.Hour + time.Since(start) + time.Duration(asleep.Load()) })
		ttl := time.Hour
		if i := strings.Index(c.events, "x"); i >= 0 {
			ttl = time.Duration(i)*time.Second + 900*time.Millisecond
		}
		l, err := client.TryAcquire(caller, "a", &holdfast.AcquireOptions{TTL: ttl, KeepAlive: holdfast.KeepAliveOff})
		must(t, err)
		w := twin{contexts: [2]context.Context{l.Context(), standard}}
		if c.early.See != nil {
			w.see(c.early.See)
		}
		var children []*contexttest.Child
		if c.early.Name == "derived" {
			for _, ctx := range w.contexts {
				child, stop := contexttest.Derive(ctx)
				defer stop()
				children = append(children, child)
			}
		}
		for i, event := range c.events {
			time.Sleep(time.Until(start.Add(time.Duration(i+1) * time.Second)))
			switch event {
			case 'c':
				leave(errors.New("the caller has left"))
			case 'b':
				must(t, errOf(client.Break(t.Context(), "a", &holdfast.BreakOptions{Reason: "test"})))
			case 'w':
				asleep.Store(int64(2 * time.Hour))
				expect(t, !l.Valid(), "valid after its deadline")
			case 'r':
				if err := l.Release(t.Context()); (err != nil) != lost.Load() {
					t.Errorf("released: %v, lost: %t", err, lost.Load())
				}
				end(context.Canceled)
			}
			synctest.Wait()
			if c.each {
				w.see(func(ctx context.Context) string { return fmt.Sprint(ctx.Err()) })
			}
		}
		w.see(c.first.See)
		w.see(contexttest.All)
		time.Sleep(time.Minute)
		w.see(contexttest.All) // the results stay the same
		for i, child := range children {
			w.said[i] = append(w.said[i], child.See())
		}
		if !slices.Equal(w.said[0], w.said[1]) {
			t.Errorf("%s, first %s, early %s, each %t:\n got %s\nwant %s", c.events, c.first.Name, c.early.Name, c.each,
				strings.Join(w.said[0], "\n     "), strings.Join(w.said[1], "\n     "))
		}
		l.Release(t.Context())
		client.Close()
	})
}

// TestLeaseContextIsAsAStandardOne checks that the context of a lease always behaves like one of
// context.WithCancelCause that ends with the lease, whatever ends the lease and however the context
// is used.
func TestLeaseContextIsAsAStandardOne(t *testing.T) {
	for _, events := range []string{"", "c", "x", "b", "w", "r", "rx", "rb", "rw", "xr", "br", "wr", "cr", "rc", "cx", "xb", "xw", "cbr", "rcx"} {
		for _, first := range contexttest.Looks() {
			for _, early := range append(contexttest.Looks(), contexttest.Look{}) {
				for _, each := range []bool{false, true} {
					contextCase{events, first, early, each}.run(t)
				}
			}
		}
	}
}

// TestLeaseContextForMany checks that all goroutines that use the context while the lease ends see
// the same end, forever, and that the context does not outlive the lease.
func TestLeaseContextForMany(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, mem.New(nil), nil)
			l, err := c.TryAcquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: time.Second, KeepAlive: holdfast.KeepAliveOff})
			must(t, err)
			ctx := l.Context()
			var all sync.WaitGroup
			for _, look := range []func() error{
				ctx.Err,
				func() error { <-ctx.Done(); return ctx.Err() },
				func() error { return context.Cause(ctx) },
				func() error { child, stop := context.WithCancel(ctx); defer stop(); return child.Err() },
			} {
				all.Go(func() {
					for look() == nil {
						time.Sleep(time.Millisecond)
					}
					err, cause := ctx.Err(), context.Cause(ctx)
					for range 10 {
						expect(t, ctx.Err() == err && context.Cause(ctx) == cause, "%v (%v), then %v (%v)", err, cause, ctx.Err(), context.Cause(ctx))
						<-ctx.Done()
						time.Sleep(time.Millisecond)
					}
				})
			}
			for range 3 {
				all.Go(func() {
					time.Sleep(time.Until(l.Deadline()))
					l.Release(t.Context())
					expect(t, ctx.Err() != nil, "the context has outlived Release")
				})
			}
			all.Wait()
		})
	}
}
