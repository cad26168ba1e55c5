package holdfast_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// The leases are one thing: it is as good as the worst of them.
func TestLeasesAreOneThing(t *testing.T) {
	eachGatherer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
		c := newClient(t, as, nil)
		key := "key of the caller"
		ls, err := c.AcquireAll(context.WithValue(t.Context(), &key, 7), []string{"a", "b"}, nil)
		if err != nil {
			t.Fatal(err)
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

// What the caller wants of the keep-alive holds from the hand-out on: each
// lease then has its whole TTL. Until then the client keeps all alive.
func TestAcquireAllHandsOut(t *testing.T) {
	eachGatherer(t, func(t *testing.T, engine *faulty, as driver.Engine) {
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
			nothingLeft(t, engine, "a", "b")
		}
		// A lease that is lost meanwhile is not handed out.
		time.AfterFunc(time.Minute, foreign(t, engine, "b", time.Hour))
		time.AfterFunc(30*time.Second, func() {
			lock, _ := engine.Inspect(context.Background(), "a")
			engine.Engine.Release(context.Background(), driver.ReleaseRequest{Name: "a", LeaseID: lock.Holders[0].LeaseID})
		})
		_, err := c.AcquireAll(t.Context(), []string{"a", "b"}, nil)
		wantErr(t, err, holdfast.ErrLost)
		nothingLeft(t, engine, "a", "b")
	})
}
