package holdfast_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// whole waits in vain for 300 ms, and then for what a hand-over brings.
func whole(t *testing.T, engine *faulty, opts holdfast.AcquireOptions) <-chan outcome {
	t.Helper()
	opts.WholeTTL = true
	time.AfterFunc(300*time.Millisecond, foreign(t, engine, "a", time.Hour))
	return enqueue(t.Context(), newClient(t, engine, nil), "a", &opts)
}

// With WholeTTL a lease that was handed over has its whole TTL when it is
// returned, for one more request; whoever brings the news of it.
func TestWholeTTL(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		for _, ttl := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 30 * time.Second, time.Hour} {
			t.Run(fmt.Sprint("TTL ", ttl, " deaf ", deaf), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine := newFaulty()
					engine.deaf = deaf
					o := granted(t, whole(t, engine, holdfast.AcquireOptions{TTL: ttl, KeepAlive: holdfast.KeepAliveOff}))
					if left, want := o.lease.Remaining(), ttl-ttl/100-2*time.Millisecond; left != want {
						t.Errorf("trusted for %s, want %s", left, want)
					}
					if acquires, extends := engine.count("acquire"), engine.count("extend"); acquires != 2 || extends != 0 {
						t.Errorf("%d acquires and %d extends, want one of the first kind to confirm", acquires, extends)
					}
					trusted(t, engine, o.lease, ttl/20, 2*ttl)
				})
			})
		}
	}
}

// A confirmation that fails, or is not answered, is repeated as long as the wait
// lasts.
func TestWholeTTLIsAskedForUntilAnswered(t *testing.T) {
	faults := map[string][2]func(context.Context, string) error{
		"refused":      {fail(driver.ErrUnavailable, "acquire"), nil},
		"request lost": {fail(errLink, "acquire"), nil},
		"reply lost":   {nil, fail(errLink, "acquire")},
		"not answered": {hang("acquire"), nil},
	}
	for name, fault := range faults {
		for _, lasts := range []time.Duration{2 * time.Second, 20 * time.Second} { // less and more than the first lease
			t.Run(fmt.Sprint(name, " for ", lasts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine := newFaulty()
					done := whole(t, engine, holdfast.AcquireOptions{})
					engine.set(fault[0], fault[1])
					time.AfterFunc(lasts, engine.heal)
					o := granted(t, done)
					trusted(t, engine, o.lease, 50*time.Millisecond, time.Second)
					if left := o.lease.Remaining(); left < 25*time.Second {
						t.Errorf("trusted for %s, want the TTL of 30s", left)
					}
					o.lease.Release(t.Context())
					time.Sleep(2 * time.Minute)
					nothingLeft(t, engine, "a")
				})
			})
		}
	}
}

// A confirmation that the store refuses for good ends the wait, and nothing is
// left behind.
func TestWholeTTLRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		done := whole(t, engine, holdfast.AcquireOptions{})
		engine.set(fail(fmt.Errorf("%w: by a test", driver.ErrPermission), "acquire"), nil)
		wantErr(t, (<-done).err, holdfast.ErrPermission)
		synctest.Wait()
		nothingLeft(t, engine, "a")
	})
}

// If the lease is lost before it is confirmed the wait goes on, for what is left
// of it. Late copies of the news that it was handed over are not taken for
// another (INVARIANT I1).
func TestWholeTTLLostGoesOnWaiting(t *testing.T) {
	for _, theirs := range []time.Duration{4 * time.Second, time.Hour} { // how long the other client has the lock
		t.Run(fmt.Sprint("for ", theirs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				var lost driver.Holding
				engine.set(func(ctx context.Context, op string) error {
					if lock, _ := engine.Engine.Inspect(ctx, "a"); op == "acquire" && lost.Token == 0 && len(lock.Holders) == 1 && lock.Holders[0].ExpiresIn < time.Minute {
						lost = lock.Holders[0]
						engine.Engine.Release(ctx, driver.ReleaseRequest{Name: "a", LeaseID: lost.LeaseID}) // by an operator
						foreign(t, engine, "a", theirs)
						for i := range 3 { // the old news, late
							time.AfterFunc(time.Duration(i+1)*time.Second, func() { engine.tell(driver.Notice{Token: lost.Token}) })
						}
					}
					return nil
				}, nil)
				engine.deaf = true
				start := time.Now()
				o := <-whole(t, engine, holdfast.AcquireOptions{Wait: 10 * time.Second})
				took := o.at.Sub(start)
				if theirs == time.Hour {
					wantErr(t, o.err, holdfast.ErrHeld)
					if took != 10*time.Second {
						t.Errorf("the wait of 10s ended after %s", took)
					}
					return
				}
				if o.err != nil || o.lease.Token() <= lost.Token || took < theirs {
					t.Fatalf("after %s: %v, %v; another client had the lock for %s", took, o.lease, o.err, theirs)
				}
				trusted(t, engine, o.lease, 50*time.Millisecond, time.Second)
				o.lease.Release(t.Context())
			})
		})
	}
}

// Do-once work begins with the whole TTL as well, if it asks for that.
func TestWholeTTLOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		time.AfterFunc(300*time.Millisecond, foreign(t, engine, "a", time.Hour))
		opts := &holdfast.OnceOptions{TTL: 30 * time.Second, Await: true, WholeTTL: true}
		_, err := newClient(t, engine, nil).Once(t.Context(), "a", opts, func(_ context.Context, l *holdfast.Lease) ([]byte, error) {
			if left := l.Remaining(); left < 29*time.Second {
				t.Errorf("the work begins with %s", left)
			}
			return nil, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Of several names, the first does not lose its TTL while the call waits for the
// last.
func TestWholeTTLOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		time.AfterFunc(4*time.Second, foreign(t, engine, "b", time.Hour))
		opts := &holdfast.AcquireOptions{TTL: 30 * time.Second, WholeTTL: true}
		leases, err := newClient(t, engine, nil).AcquireAll(t.Context(), []string{"a", "b"}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if left := leases.Remaining(); left < 29*time.Second {
			t.Errorf("the shortest is returned with %s", left)
		}
		leases.Release(t.Context())
	})
}
