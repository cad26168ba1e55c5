package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// oneByOne returns an engine with all capabilities except AcquireAll.
func oneByOne(engine *faulty) driver.Engine {
	return driver.Forward{Engine: engine, Without: driver.Capabilities{AcquireAll: true}}
}

// A split engine has the method AcquireAll but reports for all names that it cannot acquire them in
// one request.
type split struct{ *faulty }

func (split) AcquireAll(context.Context, []driver.AcquireRequest) (driver.AllReply, error) {
	return driver.AllReply{}, driver.ErrUnsupported
}

// allAcquirers returns the kinds of engines that AcquireAll must work with.
func allAcquirers(engine *faulty) map[string]driver.Engine {
	return map[string]driver.Engine{"at once": engine, "one by one": oneByOne(engine), "split": split{engine}}
}

// eachAllAcquirer runs test with each engine of allAcquirers.
func eachAllAcquirer(t *testing.T, test func(t *testing.T, engine *faulty, as driver.Engine)) {
	for kind := range allAcquirers(nil) {
		runInBubble(t, kind, func(t *testing.T) {
			engine := newFaulty()
			test(t, engine, allAcquirers(engine)[kind])
		})
	}
}

func TestAcquireAllOfFreeNames(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		for _, acquire := range []func(context.Context, []string, *holdfast.AcquireOptions) (*holdfast.Leases, error){
			c.AcquireAll, c.TryAcquireAll,
		} {
			clear(engine.calls)
			ls, err := acquire(t.Context(), []string{"c", "a", "b"}, nil)
			must(t, err)
			want := "map[acquire-all:1]"
			if as != driver.Engine(engine) {
				want = "map[acquire:3]"
			}
			got := fmt.Sprint(engine.calls)
			expect(t, got == want, "requests = %s, want %s", got, want)
			got = fmt.Sprint(ls.Names())
			expect(t, got == "[a b c]", "names = %s", got)
			for _, name := range ls.Names() {
				lock, _ := engine.Engine.Inspect(t.Context(), name)
				if l := ls.Lease(name); l.Name() != name || lock.Holders[0].LeaseID != l.ID() ||
					lock.Holders[0].Token != l.Token() || ls.Token(name) != l.Token() {
					t.Errorf("%s: the store has %+v, the lease ID %s, token %d", name, lock.Holders[0], l.ID(), ls.Token(name))
				}
			}
			expect(t, ls.Lease("d") == nil && ls.Token("d") == 0, "there is a lease of a name that was not asked for")
			wantErr(t, ls.Release(t.Context()), nil)
			nothingLeft(t, engine, "a", "b", "c")
			expect(t, !ls.Valid() && ls.Remaining() == 0 && ls.Context().Err() != nil, "still valid after the release")
			clear(engine.calls)
			if ls, err = acquire(t.Context(), []string{"a"}, nil); err != nil || fmt.Sprint(engine.calls) != "map[acquire:1]" {
				t.Errorf("one name: %v, requests %v, want 1 acquire", err, engine.calls)
			}
			ls.Release(t.Context())
		}
	})
}

// TestAcquireAllWaits checks that AcquireAll acquires the locks in the order of their names if not
// all are free, and holds each while it waits for the next.
func TestAcquireAllWaits(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		time.AfterFunc(2*time.Minute, foreign(t, engine, "b", time.Hour))
		time.AfterFunc(3*time.Minute, foreign(t, engine, "d", time.Hour))
		start := time.Now()
		done := make(chan *holdfast.Leases)
		go func() {
			ls, err := c.AcquireAll(t.Context(), []string{"d", "a", "c", "b"}, nil)
			expect(t, err == nil, "%v", err)
			done <- ls
		}()
		time.Sleep(time.Minute)
		got := fmt.Sprint(holders(t, engine.Engine, "a"), holders(t, engine.Engine, "c"))
		expect(t, got == "1 0", "leases of a and c while it waits for b: %s, want 1 0", got)
		later := enqueue(t.Context(), c, "b", nil) // behind
		time.Sleep(90 * time.Second)
		got = fmt.Sprint(holders(t, engine.Engine, "a"), holders(t, engine.Engine, "c"))
		expect(t, got == "1 1", "leases of a and c while it waits for d: %s, want 1 1", got)
		ls := <-done
		took := time.Since(start)
		expect(t, took == 3*time.Minute, "acquired after %s, want at the last release, after 3m", took)
		time.Sleep(10 * time.Minute)
		expect(t, ls.Valid(), "lost: %v", context.Cause(ls.Context()))
		ls.Release(t.Context())
		granted(t, later).lease.Release(t.Context())
		nothingLeft(t, engine, "a", "b", "c", "d")
	})
}

func TestTryAcquireAllTakesAllOrNone(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		var refused []string
		c := newClient(t, as, &holdfast.Options{Observer: func(e holdfast.Event) {
			if e.Kind == holdfast.Refused {
				refused = append(refused, e.Name)
			}
		}})
		other := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: "web-3"}})
		l := mustAcquire(t, other, "b", &holdfast.AcquireOptions{TTL: 20 * time.Second})
		time.Sleep(5 * time.Second)
		_, err := c.TryAcquireAll(t.Context(), []string{"a", "b", "c"}, nil)
		want := `holdfast: acquire "b": held by web-3 for 5s`
		expect(t, errors.Is(err, holdfast.ErrHeld) && err.Error() == want, "error = %v, want %s", err, want)
		synctest.Wait()
		nothingLeft(t, engine, "a", "c")
		lock, _ := engine.Inspect(t.Context(), "b")
		expect(t, len(lock.Queue) == 0 && len(lock.Holders) == 1, "b = %+v, want it left alone", lock)
		expect(t, fmt.Sprint(refused) == "[b]", "the Observer received refusals of %s, want of b", refused)
		l.Release(t.Context())
	})
}

// TestAcquireAllLeavesNothing checks that a call without all of its locks leaves none, at whatever
// time the caller gives up and whichever replies are lost. INVARIANT I5.
func TestAcquireAllLeavesNothing(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
			c := newClient(t, as, nil)
			for ms := range 120 {
				if ms%2 == 0 {
					time.AfterFunc(60*time.Millisecond, foreign(t, engine, "b", time.Hour))
				}
				engine.set(delay(6*time.Millisecond), func(_ context.Context, op string) error {
					time.Sleep(6 * time.Millisecond)
					if lossy && rand.IntN(3) == 0 {
						return errLink
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
				ls, err := c.AcquireAll(ctx, []string{"a", "b", "c"}, nil)
				cancel()
				if err == nil {
					_ = ls.Release(t.Context())
				} else {
					wantErr(t, err, context.DeadlineExceeded)
				}
				engine.heal()
				time.Sleep(2 * time.Second)
				nothingLeft(t, engine, "a", "b", "c")
				need(t, !t.Failed(), "given up after %d ms", ms)
			}
		})
	}
}

func TestAcquireAllErrors(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		release := foreign(t, engine, "b", time.Hour)
		start := time.Now()
		wantErr(t, errOf(c.AcquireAll(t.Context(), []string{"a", "b"}, &holdfast.AcquireOptions{MaxWait: 3 * time.Second})), holdfast.ErrHeld)
		took := time.Since(start)
		expect(t, took == 3*time.Second, "gave up after %s, want Wait, 3s", took)
		synctest.Wait()
		nothingLeft(t, engine, "a")
		release()
		for _, want := range []error{holdfast.ErrPermission, holdfast.ErrKindMismatch} {
			engine.set(fail(want, "acquire", "acquire-all"), nil)
			wantErr(t, errOf(c.AcquireAll(t.Context(), []string{"a", "b"}, nil)), want)
		}
		engine.set(fail(driver.ErrUnavailable, "acquire", "acquire-all"), nil)
		wantErr(t, errOf(c.TryAcquireAll(t.Context(), []string{"a", "b"}, nil)), holdfast.ErrUnavailable)
		engine.heal()
		// The reply to the batch is late: the repeated requests find the leases.
		engine.set(nil, func(_ context.Context, op string) error {
			if op == "acquire-all" {
				time.Sleep(1500 * time.Millisecond)
			}
			return nil
		})
		ls, err := c.TryAcquireAll(t.Context(), []string{"a", "b"}, &holdfast.AcquireOptions{TTL: time.Second})
		must(t, err)
		trusted(t, engine, ls.Lease("a"), 10*time.Millisecond, time.Second)
		ls.Release(t.Context())
		time.Sleep(time.Second)
		nothingLeft(t, engine, "a", "b")
		// If the repeated requests fail, the leases that the batch was granted are released.
		engine.heal()
		engine.set(func(_ context.Context, op string) error {
			switch op {
			case "acquire-all":
				time.Sleep(1500 * time.Millisecond)
			case "acquire":
				return holdfast.ErrPermission
			}
			return nil
		}, nil)
		wantErr(t, errOf(c.TryAcquireAll(t.Context(), []string{"a", "b"}, &holdfast.AcquireOptions{TTL: time.Second})), holdfast.ErrPermission)
		synctest.Wait()
		nothingLeft(t, engine, "a", "b")
	})
}

func TestAcquireAllRefusesBadInput(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		var many []string
		for i := range driver.MaxBatch + 1 {
			many = append(many, fmt.Sprint("name ", i))
		}
		bad := map[string][]string{"none": {}, "too many": many, "twice": {"a", "b", "a"}, "bad name": {"a", ""}, "long": {strings.Repeat("x", 513)}}
		for name, names := range bad {
			_, err := c.AcquireAll(t.Context(), names, nil)
			_, tryErr := c.TryAcquireAll(t.Context(), names, nil)
			expect(t, errors.Is(err, holdfast.ErrInvalid) && errors.Is(tryErr, holdfast.ErrInvalid), "%s: %v, %v; want ErrInvalid", name, err, tryErr)
		}
		wantErr(t, errOf(c.AcquireAll(t.Context(), []string{"a"}, &holdfast.AcquireOptions{TTL: -1})), holdfast.ErrInvalid)
		expect(t, len(engine.calls) == 0, "requests were sent: %v", engine.calls)
		ls, err := c.AcquireAll(t.Context(), many[:driver.MaxBatch], nil)
		must(t, err)
		if err := ls.Extend(t.Context(), time.Hour); err != nil || engine.count("extend") != 1 {
			t.Errorf("Extend of %d leases: %v, %d requests, want 1", driver.MaxBatch, err, engine.count("extend"))
		}
		ls.Release(t.Context())
	})
}

// TestReleaseEndsContextOfLeases checks that the context ends before any lock is released, and with
// the right cause.
func TestReleaseEndsContextOfLeases(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		var ls *holdfast.Leases
		engine.set(func(_ context.Context, op string) error {
			if op == "release" && ls.Context().Err() == nil {
				t.Error("a lock is given back under a live context")
			}
			return nil
		}, nil)
		asleep, start := time.Duration(0), time.Now()
		holdfast.SetBootClock(c, func() time.Duration { return time.Hour + time.Since(start) + asleep })
		for i := range 20 {
			var err error
			if ls, err = c.AcquireAll(t.Context(), []string{"a", "b"}, nil); err != nil {
				t.Fatal(err)
			}
			want := context.Canceled
			if i%2 == 1 {
				asleep += time.Minute // the client has not noticed it yet
				want = holdfast.ErrLost
			}
			_ = ls.Release(t.Context()) // other tests check what it returns
			cause := context.Cause(ls.Context())
			need(t, errors.Is(cause, want), "round %d: cause %v, want %v", i, cause, want)
		}
	})
}

// TestAcquireAllHandsOut checks that the keep-alive options of the caller apply from the return of
// AcquireAll, when each lease has its whole TTL. Until then the client keeps all leases alive.
func TestAcquireAllHandsOut(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		acquire := func(opts holdfast.AcquireOptions, busy time.Duration) *holdfast.Leases {
			if busy > 0 {
				time.AfterFunc(busy, foreign(t, engine, "b", time.Hour))
			}
			opts.TTL = 10 * time.Second
			ls, err := c.AcquireAll(t.Context(), []string{"a", "b"}, &opts)
			must(t, err)
			return ls
		}
		for _, busy := range []time.Duration{0, 200 * time.Millisecond, time.Minute} {
			ls := acquire(holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff}, busy)
			left := ls.Remaining()
			expect(t, left == 8998*time.Millisecond, "after a wait of %s handed out with %s left, want the whole TTL, 8.998s", busy, left)
			start, extends := time.Now(), engine.count("extend")
			<-ls.Context().Done()
			took := time.Since(start)
			expect(t, took == 8998*time.Millisecond && engine.count("extend") == extends,
				"ended after %s, %d renewals; want the TTL and none", took, engine.count("extend")-extends)
			wantErr(t, ls.Release(t.Context()), holdfast.ErrLost)
			synctest.Wait() // the client releases the other lease in the background

			ls = acquire(holdfast.AcquireOptions{StallAfter: 20 * time.Second}, busy)
			start = time.Now()
			time.Sleep(15 * time.Second)
			ls.Heartbeat()
			time.Sleep(15 * time.Second)
			expect(t, ls.Valid(), "lost in spite of heartbeats: %v", context.Cause(ls.Context()))
			<-ls.Context().Done()
			wantErr(t, context.Cause(ls.Context()), holdfast.ErrStalled)
			took = time.Since(start)
			expect(t, took >= 35*time.Second && took <= 46*time.Second, "lost %s after the hand-out, want 35s and a TTL at most", took)
			ls.Release(t.Context())
			synctest.Wait()
			nothingLeft(t, engine, "a", "b")
		}
		// A lease that is lost during the wait for the next lock ends the wait.
		start := time.Now()
		time.AfterFunc(time.Minute, foreign(t, engine, "b", time.Hour))
		time.AfterFunc(30*time.Second, func() {
			lock, _ := engine.Inspect(context.Background(), "a")
			engine.Engine.Release(context.Background(), driver.ReleaseRequest{Name: "a", LeaseID: lock.Holders[0].LeaseID})
		})
		_, err := c.AcquireAll(t.Context(), []string{"a", "b"}, nil)
		wantErr(t, err, holdfast.ErrLost)
		took := time.Since(start)
		expect(t, took <= 40*time.Second && strings.Contains(err.Error(), `"a"`),
			"%v, after %s; want it about a, when the keep-alive finds out, after 40s at most", err, took)
		time.Sleep(time.Minute) // the foreign lease expires
		nothingLeft(t, engine, "a", "b")
	})
}

// TestCloseEndsAcquireAll checks that Close ends an AcquireAll that waits, and waits until its
// locks are released.
func TestCloseEndsAcquireAll(t *testing.T) {
	for _, lost := range []bool{false, true} {
		eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
			c, err := holdfast.New(as, &holdfast.Options{SharedEngine: true})
			must(t, err)
			names := []string{"a", "b", "c"}
			if lost {
				engine.set(nil, func(_ context.Context, op string) error {
					if strings.HasPrefix(op, "acquire") {
						time.Sleep(time.Second)
						return errLink
					}
					return nil
				})
			} else {
				foreign(t, engine, "d", time.Hour)
				names = append(names, "d")
			}
			done := make(chan error)
			go func() {
				_, err := c.AcquireAll(t.Context(), names, nil)
				done <- err
			}()
			time.Sleep(500 * time.Millisecond)
			need(t, holders(t, engine.Engine, "a") == 1, "a is not held yet")
			wantErr(t, c.Close(), nil)
			nothingLeft(t, engine, "a", "b", "c")
			lock, _ := engine.Engine.Inspect(t.Context(), "d")
			expect(t, len(lock.Queue) == 0, "the place stayed behind")
			wantErr(t, <-done, holdfast.ErrClosed)
			clear(engine.calls)
			_, err = c.AcquireAll(t.Context(), names, nil)
			if wantErr(t, err, holdfast.ErrClosed); len(engine.calls) != 0 {
				t.Errorf("after Close requests were sent: %v", engine.calls)
			}
		})
	}
}

// TestWholeTTLOfAll checks that the lease of the first name has its whole TTL although the call
// waited for the last name.
func TestWholeTTLOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		time.AfterFunc(4*time.Second, foreign(t, engine, "b", time.Hour))
		opts := &holdfast.AcquireOptions{TTL: 30 * time.Second, WholeTTL: true}
		leases, err := newClient(t, engine, nil).AcquireAll(t.Context(), []string{"a", "b"}, opts)
		must(t, err)
		left := leases.Remaining()
		expect(t, left >= 26*time.Second, "the shortest is returned with %s", left)
		leases.Release(t.Context())
	})
}

// TestOnWaitOfAllPanics checks that no lease remains if the callback panics while AcquireAll waits.
func TestOnWaitOfAllPanics(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		defer foreign(t, engine, "b", time.Hour)()
		opts := &holdfast.AcquireOptions{OnWait: func(holdfast.WaitState) { panic("the screen is gone") }}
		func() {
			defer func() {
				r := recover()
				expect(t, r == "the screen is gone", "recovered %v", r)
			}()
			_, _ = c.AcquireAll(t.Context(), []string{"a", "b"}, opts)
		}()
		nothingLeft(t, engine, "a")
	})
}
