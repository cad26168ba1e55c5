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

// INVARIANT I7: messages only speed waiting up. Without them the hand-over is
// found by the next refresh or, by the first of the queue, when the lease in
// the way runs out.
func TestLostNoticeIsFoundByRefresh(t *testing.T) {
	tests := map[string]struct{ ttl, released, least, most time.Duration }{
		"released":        {time.Hour, 10 * time.Second, 10 * time.Second, 10*time.Second + 5*time.Second/3},
		"released at 1 s": {time.Hour, time.Second, time.Second, 5 * time.Second / 3},
		"expired":         {700 * time.Millisecond, time.Hour, 700 * time.Millisecond, 705 * time.Millisecond},
		"expired late":    {7 * time.Second, time.Hour, 7 * time.Second, 7005 * time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				engine.deaf = true
				c := newClient(t, engine, nil)
				time.AfterFunc(tt.released, foreign(t, engine, "a", tt.ttl))
				start := time.Now()
				o := granted(t, enqueue(t.Context(), c, "a", nil))
				if took := o.at.Sub(start); took < tt.least || took > tt.most {
					t.Errorf("acquired after %s, want %s to %s", took, tt.least, tt.most)
				}
				if n := engine.count("acquire"); n != 1 {
					t.Errorf("%d attempts, want 1", n)
				}
				// The answer has renewed nothing: the lease ends with the place.
				whole := 4948 * time.Millisecond
				if left := o.lease.Remaining(); left < whole-5*time.Second/3 || left > whole {
					t.Errorf("handed over for %s, want what was left of the place, which was renewed a third of its TTL ago at most", left)
				}
				trusted(t, engine, o.lease, 20*time.Millisecond, 10*time.Second)
				o.lease.Release(t.Context())
				nothingLeft(t, engine, "a")
			})
		})
	}
}

// Those behind the first do not look when the lease in the way runs out: that
// would be a herd.
func TestOnlyTheFirstLooksAtExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		first, others := newClient(t, engine, nil), newFaultyOn(engine.Engine)
		c := newClient(t, others, nil)
		foreign(t, engine, "a", time.Second)
		head := enqueue(t.Context(), first, "a", nil)
		var waiting []<-chan outcome
		for range 20 {
			waiting = append(waiting, enqueue(t.Context(), c, "a", nil))
		}
		l := granted(t, head).lease
		time.Sleep(100 * time.Millisecond)
		if n, m := engine.count("refresh"), others.count("refresh"); n != 1 || m != 0 {
			t.Errorf("%d refreshes when the lease ran out, and %d by those behind; want 1 and 0", n, m)
		}
		l.Release(t.Context())
		for _, w := range waiting {
			granted(t, w).lease.Release(t.Context())
		}
	})
}

// Lost replies make no second place and no second lease, and the lease found
// again has the token of the first time. INVARIANTS I5 and I6.
func TestLostRepliesWhileQueued(t *testing.T) {
	for _, op := range []string{"acquire", "refresh"} {
		for _, deaf := range []bool{false, true} {
			t.Run(fmt.Sprint(op, " deaf ", deaf), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine := newFaulty()
					engine.deaf = deaf
					c := newClient(t, engine, nil)
					for ms := 5; ms < 3000; ms += 50 {
						time.AfterFunc(time.Duration(ms)*time.Millisecond, foreign(t, engine, "a", time.Hour))
						engine.set(nil, fail(errLink, op))
						time.AfterFunc(2*time.Second, engine.heal)
						waiting := enqueue(t.Context(), c, "a", nil)
						time.Sleep(time.Millisecond)
						if lock, _ := engine.Engine.Inspect(t.Context(), "a"); len(lock.Queue) != 1 {
							t.Fatalf("%d places, want 1", len(lock.Queue))
						}
						o := granted(t, waiting)
						lock, _ := engine.Engine.Inspect(t.Context(), "a")
						if len(lock.Holders) != 1 || lock.Holders[0].Token != o.lease.Token() || len(lock.Queue) != 0 {
							t.Fatalf("released after %d ms: the store has %+v, the lease token %d", ms, lock, o.lease.Token())
						}
						time.Sleep(3 * time.Second)
						trusted(t, engine, o.lease, 20*time.Millisecond, time.Second)
						o.lease.Release(t.Context())
						nothingLeft(t, engine, "a")
					}
				})
			})
		}
	}
}

// Notice of an older grant, which a message that comes late or twice may be, is
// never taken for a grant of the present place.
func TestStaleNoticeIsNotBelieved(t *testing.T) {
	// The reply to the first request is lost: the lease it leads to is handed
	// over and runs out unseen before the request is repeated.
	t.Run("after a lost reply", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			engine.deaf = true
			c := newClient(t, engine, nil)
			release := foreign(t, engine, "a", time.Hour)
			first := true
			engine.set(nil, func(context.Context, string) error {
				if !first {
					return nil
				}
				first = false
				time.Sleep(4 * time.Second) // the reply is on its way
				return errLink
			})
			waiting := enqueue(t.Context(), c, "a", &holdfast.AcquireOptions{TTL: time.Second})
			release()
			old, _ := engine.Engine.Inspect(t.Context(), "a")
			time.Sleep(2 * time.Second)
			next := foreign(t, engine, "a", time.Hour)
			time.Sleep(3 * time.Second) // the request is repeated
			engine.tell(driver.Notice{Token: old.Holders[0].Token})
			time.Sleep(time.Second)
			stillWaits(t, waiting)
			next()
			o := granted(t, waiting)
			if o.lease.Token() <= old.Holders[0].Token {
				t.Errorf("token %d, want a new one", o.lease.Token())
			}
			trusted(t, engine, o.lease, 20*time.Millisecond, 3*time.Second)
			o.lease.Release(t.Context())
			nothingLeft(t, engine, "a")
		})
	})
	// A waiter that heard nothing for longer than its place starts over, with
	// another lease ID, and what was handed over to the old one goes to the
	// next at once.
	t.Run("after a pause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, engine, nil)
			release := foreign(t, engine, "a", time.Hour)
			waiting := enqueue(t.Context(), c, "a", nil)
			old, _ := engine.Engine.Inspect(t.Context(), "a")
			engine.set(nil, fail(errLink, "refresh")) // in the store the place goes on
			next := enqueue(t.Context(), newClient(t, engine.Engine, nil), "a", nil)
			time.Sleep(6 * time.Second)
			release()
			o := granted(t, next)
			if took := time.Since(o.at); took != 0 {
				t.Errorf("the next came %s before now, want at once", took)
			}
			stillWaits(t, waiting)
			engine.heal()
			if lock, _ := engine.Engine.Inspect(t.Context(), "a"); len(lock.Queue) != 1 || lock.Queue[0].LeaseID == old.Queue[0].LeaseID {
				t.Errorf("queue = %+v, want one place of another lease ID", lock.Queue)
			}
			o.lease.Release(t.Context())
			granted(t, waiting).lease.Release(t.Context())
			nothingLeft(t, engine, "a")
		})
	})
}

// A grant whose reply came too late is cancelled at once, not left to run out.
func TestLateGrantIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(func(_ context.Context, op string) error {
			if op == "acquire" {
				time.Sleep(1500 * time.Millisecond)
			}
			return nil
		}, nil)
		for _, acquire := range []func(context.Context, string, *holdfast.AcquireOptions) (*holdfast.Lease, error){c.TryAcquire, c.Acquire} {
			_, err := acquire(t.Context(), "a", &holdfast.AcquireOptions{TTL: time.Second})
			wantErr(t, err, holdfast.ErrUnavailable)
			synctest.Wait()
			nothingLeft(t, engine, "a")
		}
	})
}

// Notice to look, such as that the lease in the way will end sooner, is followed
// at once.
func TestNoticeToLookIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		for range 10 {
			l := mustAcquire(t, c, "a", &holdfast.AcquireOptions{TTL: time.Hour, MinHold: time.Minute})
			start := time.Now()
			waiting := enqueue(t.Context(), c, "a", nil)
			time.Sleep(time.Minute - 100*time.Millisecond)
			l.Release(t.Context()) // for another 100 ms the name stays closed
			o := granted(t, waiting)
			if took := o.at.Sub(start); took < time.Minute || took > time.Minute+15*time.Millisecond {
				t.Errorf("acquired after %s, want at the end of MinHold, after 1m", took)
			}
			o.lease.Release(t.Context())
		}
	})
}

// Notice ends the pause after an attempt that got no answer: it may be of the
// place that the attempt got.
func TestNoticeEndsBackoff(t *testing.T) {
	for _, after := range []time.Duration{0, 3 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				release := foreign(t, engine, "a", time.Hour)
				engine.set(nil, fail(errLink, "acquire"))
				waiting := enqueue(t.Context(), c, "a", nil)
				time.Sleep(2 * time.Second) // the pauses are about 1 s now
				for n := engine.count("acquire"); engine.count("acquire") == n; {
					time.Sleep(time.Millisecond)
				}
				engine.heal()
				time.Sleep(after)
				start := time.Now()
				release()
				o := granted(t, waiting)
				if took := o.at.Sub(start); took > 10*time.Millisecond || after > 10*time.Millisecond && took != 0 {
					t.Errorf("acquired %s after the release", took)
				}
				o.lease.Release(t.Context())
			})
		})
	}
}

// stillWaits fails t if the Acquire is over.
func stillWaits(t *testing.T, waiting <-chan outcome) {
	t.Helper()
	synctest.Wait()
	select {
	case o := <-waiting:
		t.Fatalf("Acquire = %+v, %v; want it to wait", o.lease, o.err)
	default:
	}
}
