package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// The leases are one thing: it is as good as the worst of them.
func TestLeasesAreOneThing(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		key := "key of the caller"
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), &key, 7))
		ls, err := c.AcquireAll(ctx, []string{"a", "b"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if ls.Context().Err() != nil || !ls.Valid() {
			t.Error("the leases ended with the context of the wait")
		}
		if err := ls.Lease("b").Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if a := ls.Lease("a"); !ls.Deadline().Equal(a.Deadline()) || ls.Remaining() != a.Remaining() {
			t.Errorf("deadline in %s, want that of a, the earlier, in %s", ls.Remaining(), a.Remaining())
		}
		if ls.Context().Value(&key) != 7 {
			t.Error("the context does not carry the caller's values")
		}
		if l, _ := holdfast.LeaseFromContext(ls.Context()); l != ls.Lease("b") {
			t.Error("the context does not carry the leases")
		}
		for _, ttl := range []time.Duration{0, time.Millisecond, 31 * 24 * time.Hour} {
			wantErr(t, ls.Extend(t.Context(), ttl), holdfast.ErrInvalid)
		}
		if n := engine.count("extend"); n != 1 {
			t.Errorf("%d requests, want none for bad TTLs", n)
		}
		engine.Engine.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: ls.Lease("a").ID()}) // by an operator
		err = ls.Extend(t.Context(), time.Minute)
		if wantErr(t, err, holdfast.ErrLost); !strings.Contains(err.Error(), `extend "a"`) {
			t.Errorf("error %q, want it to name a", err)
		}
		<-ls.Context().Done()
		wantErr(t, context.Cause(ls.Context()), holdfast.ErrLost)
		if !ls.Lease("b").Valid() || ls.Valid() || ls.Remaining() != 0 {
			t.Errorf("b valid: %t, all valid: %t for %s; want b only", ls.Lease("b").Valid(), ls.Valid(), ls.Remaining())
		}
		wantErr(t, ls.Release(t.Context()), holdfast.ErrLost)
		nothingLeft(t, engine, "a", "b")
	})
}

// The context has ended before any lock is given back, with the right cause.
func TestReleaseEndsContextOfLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
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
				asleep += time.Minute // which nobody has noticed yet
				want = holdfast.ErrLost
			}
			_ = ls.Release(t.Context()) // what it returns is tested elsewhere
			if cause := context.Cause(ls.Context()); !errors.Is(cause, want) {
				t.Fatalf("round %d: cause %v, want %v", i, cause, want)
			}
		}
	})
}

// What the caller wants of the keep-alive holds from the hand-out on: each
// lease then has its whole TTL. Until then the client keeps all alive.
func TestAcquireAllHandsOut(t *testing.T) {
	eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		acquire := func(opts holdfast.AcquireOptions, busy time.Duration) *holdfast.Leases {
			if busy > 0 {
				time.AfterFunc(busy, foreign(t, engine, "b", time.Hour))
			}
			opts.TTL = 10 * time.Second
			ls, err := c.AcquireAll(t.Context(), []string{"a", "b"}, &opts)
			if err != nil {
				t.Fatal(err)
			}
			return ls
		}
		for _, busy := range []time.Duration{0, 200 * time.Millisecond, time.Minute} {
			ls := acquire(holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff}, busy)
			if left := ls.Remaining(); left != 9898*time.Millisecond {
				t.Errorf("after a wait of %s handed out with %s left, want the whole TTL, 9.898s", busy, left)
			}
			start, extends := time.Now(), engine.count("extend")
			<-ls.Context().Done()
			if took := time.Since(start); took != 9898*time.Millisecond || engine.count("extend") != extends {
				t.Errorf("ended after %s, %d renewals; want the TTL and none", took, engine.count("extend")-extends)
			}
			wantErr(t, ls.Release(t.Context()), holdfast.ErrLost)
			synctest.Wait() // the rest is done in the background

			ls = acquire(holdfast.AcquireOptions{Progress: 20 * time.Second}, busy)
			start = time.Now()
			time.Sleep(15 * time.Second)
			ls.Progress()
			time.Sleep(15 * time.Second)
			if !ls.Valid() {
				t.Errorf("lost in spite of progress: %v", context.Cause(ls.Context()))
			}
			<-ls.Context().Done()
			wantErr(t, context.Cause(ls.Context()), holdfast.ErrStalled)
			if took := time.Since(start); took < 35*time.Second || took > 46*time.Second {
				t.Errorf("lost %s after the hand-out, want 35s and a TTL at most", took)
			}
			ls.Release(t.Context())
			synctest.Wait()
			nothingLeft(t, engine, "a", "b")
		}
		// A lease that is lost meanwhile ends the wait for the next.
		start := time.Now()
		time.AfterFunc(time.Minute, foreign(t, engine, "b", time.Hour))
		time.AfterFunc(30*time.Second, func() {
			lock, _ := engine.Inspect(context.Background(), "a")
			engine.Engine.Release(context.Background(), driver.ReleaseRequest{Name: "a", LeaseID: lock.Holders[0].LeaseID})
		})
		_, err := c.AcquireAll(t.Context(), []string{"a", "b"}, nil)
		wantErr(t, err, holdfast.ErrLost)
		if took := time.Since(start); took > 40*time.Second || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%v, after %s; want it about a, when the keep-alive finds out, after 40s at most", err, took)
		}
		time.Sleep(time.Minute) // the foreign lease is over
		nothingLeft(t, engine, "a", "b")
	})
}

// Close ends an AcquireAll as it ends a waiter, and waits for what it gives back.
func TestCloseEndsAcquireAll(t *testing.T) {
	for _, lost := range []bool{false, true} {
		eachAllAcquirer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
			c, err := holdfast.New(as, nil)
			if err != nil {
				t.Fatal(err)
			}
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
			if holders(t, engine.Engine, "a") != 1 {
				t.Fatal("a is not held yet")
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
			nothingLeft(t, engine, "a", "b", "c")
			if lock, _ := engine.Engine.Inspect(t.Context(), "d"); len(lock.Queue) != 0 {
				t.Error("the place stayed behind")
			}
			wantErr(t, <-done, holdfast.ErrClosed)
			clear(engine.calls)
			_, err = c.AcquireAll(t.Context(), names, nil)
			if wantErr(t, err, holdfast.ErrClosed); len(engine.calls) != 0 {
				t.Errorf("after Close requests were sent: %v", engine.calls)
			}
		})
	}
}
