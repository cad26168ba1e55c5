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

func TestStatusOfEachState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		a := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: "web-3", PID: 812}})
		b := newClient(t, engine, nil)
		if s := wantState(t, b, holdfast.OnceAbsent); s.Holder.Host != "" || s.ExpiresIn != 0 || s.Result.Value != nil {
			t.Errorf("absent: %+v", s)
		}
		r := once(t, a, &holdfast.OnceOptions{TTL: 10 * time.Second, Retention: time.Hour}, newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
			time.Sleep(time.Second)
			if s := wantState(t, b, holdfast.OnceInProgress); s.Holder.Host != "web-3" || s.Since != time.Second || s.ExpiresIn != 9*time.Second || s.Result.Value != nil {
				t.Errorf("in progress: %+v", s)
			}
			return []byte("kept"), nil
		}))
		time.Sleep(time.Minute)
		s := wantState(t, b, holdfast.OnceDone)
		if string(s.Result.Value) != "kept" || !s.Result.Replayed || s.Result.Token != r.Token || s.ExpiresIn != 59*time.Minute || s.Holder.Host != "" {
			t.Errorf("done: %+v", s)
		}
		// A lock on top of it does not hide the result; the end of it does.
		defer mustAcquire(t, a, "k", nil).Release(t.Context())
		wantState(t, b, holdfast.OnceDone)
		time.Sleep(time.Hour)
		wantState(t, b, holdfast.OnceInProgress)
	})
}

// A name that MinHold keeps closed after its release is nobody's work.
func TestStatusOfALockKeptClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		mustAcquire(t, c, "k", &holdfast.AcquireOptions{MinHold: time.Hour}).Release(t.Context())
		wantState(t, c, holdfast.OnceAbsent)
	})
}

// Work that ends between the two looks of Status is done, not absent.
func TestStatusRacesCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newLedger()
		c := newClient(t, engine, nil)
		engine.set(nil, func(_ context.Context, op string) error {
			if op == "recall" && engine.count("recall") == 1 {
				once(t, c, nil, returns("kept"))
			}
			return nil
		})
		wantState(t, c, holdfast.OnceDone)
	})
}

// From beside, a key is absent until its work begins, then in progress, then
// done: no look says absent in between.
func TestStatusNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newLedger()
		c := newClient(t, engine, nil)
		engine.set(delay(3*time.Millisecond), delay(2*time.Millisecond))
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				last := holdfast.OnceAbsent
				for range 40 {
					s, err := c.OnceStatus(t.Context(), "k")
					if err != nil || s.State < last {
						t.Errorf("%s after %s (%v)", s.State, last, err)
					}
					last = s.State
				}
				if last != holdfast.OnceDone {
					t.Errorf("%s at last, want done", last)
				}
			})
		}
		once(t, c, nil, newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
			time.Sleep(100 * time.Millisecond)
			return nil, nil
		}))
		wg.Wait()
	})
}

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		forget := func(want bool) {
			t.Helper()
			if found, err := c.OnceForget(t.Context(), "k"); found != want || err != nil {
				t.Errorf("Forget = %t, %v; want %t", found, err, want)
			}
		}
		forget(false)
		j := newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
			forget(false) // the work goes on, and its result is stored
			return []byte("kept"), nil
		})
		once(t, c, nil, j)
		once(t, c, nil, mustNotRun(t))
		forget(true)
		forget(false)
		wantFree(t, engine, c)
	})
}

// Callers and an operator who forgets: each result comes from one run, and
// there is one run more than results were forgotten, at most.
func TestForgetRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		j := newJob(func(_ context.Context, _ *holdfast.Lease, n int) ([]byte, error) {
			time.Sleep(10 * time.Millisecond)
			return fmt.Append(nil, n), nil
		})
		operator := newClient(t, engine, nil)
		forgotten := 0
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 100 {
				time.Sleep(7 * time.Millisecond)
				found, err := operator.OnceForget(t.Context(), "k")
				if err != nil {
					t.Error(err)
				}
				if found {
					forgotten++
				}
			}
		})
		fresh := map[string]int{}
		for _, a := range crowd(t, engine, 200, 3*time.Millisecond, &holdfast.OnceOptions{Await: true}, j) {
			if a.err != nil {
				t.Error(a.err)
			}
			if !a.Replayed {
				fresh[string(a.Value)]++
			}
		}
		wg.Wait()
		if len(fresh) != j.runs || forgotten < 10 || j.runs < forgotten || j.runs > forgotten+1 {
			t.Errorf("%d runs, %d results were forgotten, fresh: %v", j.runs, forgotten, fresh)
		}
	})
}

func TestStatusAndForgetErrors(t *testing.T) {
	for _, c := range []struct {
		before func(context.Context, string) error
		status error
		forget error
	}{
		{fail(errLink, "recall", "forget"), holdfast.ErrUnavailable, holdfast.ErrOutcomeUnknown},
		{hang("recall", "forget"), holdfast.ErrUnavailable, holdfast.ErrOutcomeUnknown},
		{fail(errLink, "inspect", "forget"), holdfast.ErrUnavailable, holdfast.ErrOutcomeUnknown},
		{fail(holdfast.ErrPermission, "recall", "forget"), holdfast.ErrPermission, holdfast.ErrPermission},
		{fail(holdfast.ErrUnavailable, "recall", "forget"), holdfast.ErrUnavailable, holdfast.ErrUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := newLedger()
			client := newClient(t, engine, nil)
			engine.set(c.before, nil)
			start := time.Now()
			_, err := client.OnceStatus(t.Context(), "k")
			wantErr(t, err, c.status)
			_, err = client.OnceForget(t.Context(), "k")
			wantErr(t, err, c.forget)
			if errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second {
				t.Errorf("%v after %s", err, time.Since(start))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			engine.set(hang("recall"), nil)
			_, err = client.OnceStatus(ctx, "k")
			wantErr(t, err, context.Canceled)
		})
	}
}

// A record that another version or program has written is not a result.
func TestOnceForeignRecord(t *testing.T) {
	for _, record := range []string{"", "x", "{}", "{}\n", `{"v":2,"token":1}` + "\nresult", `{"v":1,"token":1}`, "\n", `{"v":1,"token":-1}` + "\n"} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c := newClient(t, engine, nil)
			id := driver.NewLeaseID()
			engine.Engine.Acquire(t.Context(), driver.AcquireRequest{Name: "k", LeaseID: id, TTL: time.Hour})
			err := engine.Engine.Complete(t.Context(), driver.CompleteRequest{Name: "k", LeaseID: id, Record: []byte(record), Retention: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Once(t.Context(), "k", nil, mustNotRun(t).fn)
			wantErr(t, err, holdfast.ErrKindMismatch)
			_, err = c.OnceStatus(t.Context(), "k")
			wantErr(t, err, holdfast.ErrKindMismatch)
			if found, err := c.OnceForget(t.Context(), "k"); !found || err != nil {
				t.Errorf("Forget = %t, %v", found, err)
			}
			wantFree(t, engine, c)
		})
	}
}

func TestOnceStateStrings(t *testing.T) {
	for s, want := range map[holdfast.OnceState]string{
		holdfast.OnceAbsent: "absent", holdfast.OnceInProgress: "in progress", holdfast.OnceDone: "done", holdfast.OnceScheduled: "schedule", -1: "unknown", 4: "unknown",
	} {
		if s.String() != want {
			t.Errorf("%d is %q, want %q", int(s), s.String(), want)
		}
	}
}
