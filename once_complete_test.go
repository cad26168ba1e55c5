package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// lateReply is a hook that lets the answers to the operation named come too
// late for whoever waits for them.
func lateReply(op string) func(context.Context, string) error { return hang(op) }

// first makes a hook that acts for the first n requests of the operation.
func first(n int, op string, hook func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, o string) error {
		if o != op || n == 0 {
			return nil
		}
		n--
		return hook(ctx, o)
	}
}

// A request that fails for a while is repeated until it is answered, and the
// result is stored once. INVARIANT I6.
func TestCompleteIsRepeated(t *testing.T) {
	refused := fmt.Errorf("%w: connection refused", holdfast.ErrUnavailable)
	for name, c := range map[string]struct {
		before, after func(context.Context, string) error
		tries         int
		took          time.Duration // at most
	}{
		"request lost":      {before: first(3, "complete", fail(errLink, "complete")), tries: 4, took: 200 * time.Millisecond},
		"reply lost":        {after: first(3, "complete", fail(errLink, "complete")), tries: 4, took: 200 * time.Millisecond},
		"store unreachable": {before: first(3, "complete", fail(refused, "complete")), tries: 4, took: 200 * time.Millisecond},
		"request hangs":     {before: first(2, "complete", hang("complete")), tries: 3, took: 4 * time.Second},
		"reply hangs":       {after: first(2, "complete", lateReply("complete")), tries: 3, took: 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				client := newClient(t, engine, nil)
				engine.set(c.before, c.after)
				start := time.Now()
				r := once(t, client, nil, returns("kept"))
				if took := time.Since(start); r.Replayed || took > c.took || engine.count("complete") != c.tries {
					t.Errorf("%+v after %s and %d requests; want %d within %s", r, took, engine.count("complete"), c.tries, c.took)
				}
				if s := wantState(t, client, holdfast.OnceDone); string(s.Result.Value) != "kept" {
					t.Errorf("the store keeps %q", s.Result.Value)
				}
				if engine.count("release") != 0 {
					t.Error("the lease was released although the record ended it")
				}
				nothingLeft(t, engine, "k")
			})
		})
	}
}

// When the store does not answer to the end, the caller learns exactly what is
// known, and neither lease nor place stays behind. INVARIANT I5, I10.
func TestCompleteWithoutAnAnswer(t *testing.T) {
	refused := fmt.Errorf("%w: connection refused", holdfast.ErrUnavailable)
	for name, c := range map[string]struct {
		before, after func(context.Context, string) error
		want          error
		stored        bool
	}{
		"requests hang":        {before: hang("complete"), want: holdfast.ErrOutcomeUnknown},
		"requests lost":        {before: fail(errLink, "complete"), want: holdfast.ErrOutcomeUnknown},
		"replies hang":         {after: lateReply("complete"), want: holdfast.ErrOutcomeUnknown, stored: true},
		"replies lost":         {after: fail(errLink, "complete"), want: holdfast.ErrOutcomeUnknown, stored: true},
		"refused":              {before: fail(refused, "complete"), want: holdfast.ErrUnavailable},
		"not permitted":        {before: fail(holdfast.ErrPermission, "complete"), want: holdfast.ErrPermission},
		"something else there": {before: fail(holdfast.ErrKindMismatch, "complete"), want: holdfast.ErrKindMismatch},
		// What one request may have done, the refusal of the next does not undo.
		"reply lost, then refused": {
			before: after(1, "complete", refused), after: fail(errLink, "complete"),
			want: holdfast.ErrOutcomeUnknown, stored: true,
		},
		"reply lost, then not permitted": {
			before: after(1, "complete", holdfast.ErrPermission), after: fail(errLink, "complete"),
			want: holdfast.ErrOutcomeUnknown, stored: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				client := newClient(t, engine, &holdfast.Options{RequestTimeout: 3 * time.Second})
				engine.set(c.before, c.after)
				start := time.Now()
				r, err := client.Once(t.Context(), "k", nil, returns("made").fn)
				if !errors.Is(err, c.want) || r.Value != nil {
					t.Errorf("Once = %+v, %v; want %v", r, err, c.want)
				}
				for _, other := range []error{holdfast.ErrOutcomeUnknown, holdfast.ErrUnavailable, holdfast.ErrPermission, holdfast.ErrLost, context.DeadlineExceeded} {
					if other != c.want && errors.Is(err, other) {
						t.Errorf("%v is %v, too", err, other)
					}
				}
				if took := time.Since(start); took > 3*time.Second {
					t.Errorf("it took %s, want RequestTimeout at most", took)
				}
				if final := c.want == holdfast.ErrPermission || c.want == holdfast.ErrKindMismatch; final && engine.count("complete") != 1 {
					t.Errorf("%d requests, want no repeat of what fails in the same way", engine.count("complete"))
				}
				engine.heal()
				time.Sleep(time.Second) // the clean-up's next try
				nothingLeft(t, engine, "k")
				if c.stored {
					wantState(t, client, holdfast.OnceDone)
					return
				}
				wantFree(t, engine, client)
			})
		})
	}
}

// after makes a hook that fails the operation named from its nth request on.
func after(n int, op string, err error) func(context.Context, string) error {
	return func(ctx context.Context, o string) error {
		if o == op {
			n--
		}
		if o == op && n < 0 {
			return err
		}
		return nil
	}
}

// During an outage the clean-up goes on until the store is back.
func TestCompleteCleansUpAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		_, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{TTL: time.Hour}, func(context.Context, *holdfast.Lease) ([]byte, error) {
			engine.set(fail(errLink, "complete", "release", "extend"), nil)
			return []byte("made"), nil
		})
		wantErr(t, err, holdfast.ErrOutcomeUnknown)
		time.Sleep(time.Minute)
		if holders(t, engine.Engine, "k") != 1 {
			t.Error("the outage let the lease end: the test shows nothing")
		}
		engine.heal()
		time.Sleep(2 * time.Second)
		nothingLeft(t, engine, "k")
	})
}

// The reply is lost, and the result ends before the repeat arrives: it is
// certain that nothing is stored.
func TestCompleteForgottenBeforeTheRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(nil, first(1, "complete", func(ctx context.Context, _ string) error {
			if found, err := engine.Forget(ctx, "k"); !found || err != nil {
				t.Errorf("Forget = %t, %v", found, err)
			}
			return errLink
		}))
		_, err := c.Once(t.Context(), "k", nil, returns("made").fn)
		wantErr(t, err, holdfast.ErrLost)
		if errors.Is(err, holdfast.ErrOutcomeUnknown) || engine.count("complete") != 2 {
			t.Errorf("%v after %d requests", err, engine.count("complete"))
		}
		wantFree(t, engine, c)
	})
}

// A request that arrives after the clean-up stores nothing. INVARIANT I4.
func TestCompleteArrivesAfterTheCleanUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(hang("complete"), nil)
		var id driver.LeaseID
		_, err := c.Once(t.Context(), "k", nil, func(_ context.Context, l *holdfast.Lease) ([]byte, error) {
			id = l.ID()
			return []byte("made"), nil
		})
		wantErr(t, err, holdfast.ErrOutcomeUnknown)
		engine.heal()
		synctest.Wait() // the clean-up
		err = engine.Engine.Complete(t.Context(), driver.CompleteRequest{Name: "k", LeaseID: id, Record: []byte("late"), Retention: time.Hour})
		wantErr(t, err, holdfast.ErrLost)
		wantFree(t, engine, c)
	})
}

// The work is done, so its result is stored even if the caller is gone.
func TestCompleteAfterTheCallerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(first(2, "complete", fail(errLink, "complete")), nil)
		ctx, cancel := context.WithCancel(t.Context())
		r, err := c.Once(ctx, "k", nil, func(ctx context.Context, _ *holdfast.Lease) ([]byte, error) {
			cancel()
			<-ctx.Done()
			return []byte("made"), nil
		})
		if err != nil || string(r.Value) != "made" {
			t.Errorf("Once = %+v, %v; want the result", r, err)
		}
		wantState(t, c, holdfast.OnceDone)
	})
}

// The deadline is earlier than the expiry: a result that reaches the store in
// between was made under the lease, whatever the client thinks of it.
func TestCompleteBetweenDeadlineAndExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(fail(errLink, "extend"), nil)
		r := once(t, c, nil, newJob(func(ctx context.Context, _ *holdfast.Lease, _ int) ([]byte, error) {
			<-ctx.Done()
			wantErr(t, context.Cause(ctx), holdfast.ErrLost)
			return []byte("in time"), nil
		}))
		if s := wantState(t, c, holdfast.OnceDone); string(r.Value) != "in time" || string(s.Result.Value) != "in time" {
			t.Errorf("Once = %+v, the store keeps %+v", r, s.Result)
		}
	})
}

// A lease that ended for its holder while the store answered nobody: the
// result may be stored, so the error may not say that it is not.
func TestCompleteUnansweredAfterTheDeadline(t *testing.T) {
	for _, replyLost := range []bool{false, true} {
		t.Run(fmt.Sprint("reply lost ", replyLost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaulty()
				c := newClient(t, engine, nil)
				before, after := fail(errLink, "extend", "complete"), fail(nil)
				if replyLost {
					before, after = fail(errLink, "extend"), fail(errLink, "complete")
				}
				engine.set(before, after)
				_, err := c.Once(t.Context(), "k", nil, func(ctx context.Context, _ *holdfast.Lease) ([]byte, error) {
					<-ctx.Done()
					return []byte("made"), nil
				})
				wantErr(t, err, holdfast.ErrOutcomeUnknown)
				engine.heal()
				time.Sleep(time.Second)
				nothingLeft(t, engine, "k")
				want := holdfast.OnceAbsent
				if replyLost {
					want = holdfast.OnceDone
				}
				wantState(t, c, want)
			})
		})
	}
}

// INVARIANT I9: no renewal is under way, or comes, when the result is stored.
func TestCompleteWaitsForRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		extending := neverDuringRenewal(t, engine, "complete")
		once(t, c, nil, newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
			for !extending.Load() {
				time.Sleep(time.Millisecond)
			}
			return nil, nil
		}))
		n := engine.count("extend")
		time.Sleep(5 * time.Minute)
		if engine.count("extend") != n {
			t.Error("renewals go on after the result was stored")
		}
	})
}

// What an observer hears: how the run ends; and its lease ends as a released one does,
// and is lost once.
func TestOnceIsObserved(t *testing.T) {
	for want, work := range map[string]func(*faulty, context.Context, *holdfast.Lease){
		"[acquired once-completed released]": func(*faulty, context.Context, *holdfast.Lease) {},
		"[acquired once-failed lost]": func(engine *faulty, ctx context.Context, l *holdfast.Lease) {
			engine.Engine.Release(ctx, driver.ReleaseRequest{Name: "k", LeaseID: l.ID()})
		},
		"[acquired renew-failed lost once-failed]": func(engine *faulty, ctx context.Context, l *holdfast.Lease) {
			engine.set(fail(errLink, "extend"), nil)
			<-ctx.Done()
			time.Sleep(time.Second) // past the expiry
		},
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var kinds []holdfast.EventKind
				engine := newFaulty()
				c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
					mu.Lock()
					defer mu.Unlock()
					if n := len(kinds); n == 0 || kinds[n-1] != e.Kind || e.Kind == holdfast.Lost {
						kinds = append(kinds, e.Kind)
					}
				}})
				c.Once(t.Context(), "k", nil, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
					work(engine, ctx, l)
					return nil, nil
				})
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if got := fmt.Sprint(kinds); got != want {
					t.Errorf("events %s, want %s", got, want)
				}
			})
		})
	}
}
