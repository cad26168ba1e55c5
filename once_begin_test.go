package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// mustBegin begins the work "k".
func mustBegin(t *testing.T, c *holdfast.Client, opts *holdfast.OnceOptions) *holdfast.OnceRun {
	t.Helper()
	run, err := c.OnceBegin(t.Context(), "k", opts)
	must(t, err)
	return run
}

func mustOnceAdopt(t *testing.T, c *holdfast.Client, handle holdfast.Handle, opts *holdfast.OnceOptions) *holdfast.OnceRun {
	t.Helper()
	run, err := c.OnceAdopt(t.Context(), handle, opts)
	must(t, err)
	return run
}

// begun begins the work "k" with its own client, leaves the run, and returns its handle.
func begun(t *testing.T, engine *faulty, opts *holdfast.OnceOptions) holdfast.Handle {
	t.Helper()
	run := mustBegin(t, newClient(t, newFaultyOn(engine.Engine), nil), opts)
	handle, err := run.Leave()
	must(t, err)
	return handle
}

// TestOnceInTwoRequests checks that work may be begun in one call and completed in another, by the
// same process or another, with the same result as Once.
func TestOnceInTwoRequests(t *testing.T) {
	for _, adopted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c, other := newClient(t, engine, nil), newClient(t, engine, nil)
			opts := &holdfast.OnceOptions{Fingerprint: "sum 7", Retention: time.Hour}
			run, err := c.OnceBegin(t.Context(), "k", opts)
			need(t, err == nil && !run.Replayed() && run.Result().Value == nil, "OnceBegin = %v, %v; want a run", run, err)
			token := run.Lease().Token()
			wantErr(t, errOf(other.OnceBegin(t.Context(), "k", opts)), holdfast.ErrInProgress)
			time.Sleep(time.Minute) // the run is kept alive
			if adopted {
				handle, err := run.Leave()
				wantErr(t, err, nil)
				run = mustOnceAdopt(t, other, handle, opts)
				time.Sleep(time.Minute)
			}
			if err := run.Complete(t.Context(), []byte("sent")); err != nil || run.Replayed() {
				t.Errorf("Complete: %v, replayed %t", err, run.Replayed())
			}
			again := mustBegin(t, other, opts)
			r := again.Result()
			expect(t, again.Replayed() && again.Lease() == nil && r.Replayed && string(r.Value) == "sent" && r.Token == token,
				"after that OnceBegin = %v, %q; want the result", again, r.Value)
			wantErr(t, errOf(other.OnceBegin(t.Context(), "k", &holdfast.OnceOptions{Fingerprint: "sum 8"})), holdfast.ErrFingerprint)
			if err := run.Fail(t.Context()); err != nil {
				t.Errorf("Fail after Complete: %v, want nothing done", err)
			}
			nothingLeft(t, engine, "k")
			time.Sleep(time.Hour)
			if again, err = other.OnceBegin(t.Context(), "k", nil); err != nil || again.Replayed() {
				t.Errorf("after its retention: %v, want another run", err)
			}
		})
	}
}

// TestOnceBegunFails checks that a failed run hands the work to the next waiter at once, and that a
// run that is left and not adopted frees the key after its TTL.
func TestOnceBegunFails(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		handle := begun(t, engine, &holdfast.OnceOptions{TTL: time.Minute})
		var l looker
		waits := &holdfast.OnceOptions{Await: holdfast.Forever, OnWait: l.onWait}
		next := make(chan *holdfast.OnceRun)
		wait := func() {
			run, err := c.OnceBegin(t.Context(), "k", waits)
			expect(t, err == nil, "%v", err)
			next <- run
		}
		go wait()
		synctest.Wait()
		expect(t, len(l.reported) == 1 && l.reported[0].Place == 1, "OnWait received %+v", l.reported)
		run := mustOnceAdopt(t, newClient(t, engine, nil), handle, nil)
		start := time.Now()
		wantErr(t, run.Fail(t.Context()), nil)
		second := <-next
		expect(t, time.Since(start) == 0, "the next had it %s after the failure", time.Since(start))
		second.Leave()
		go wait()
		third := <-next
		took := time.Since(start)
		expect(t, took <= 35*time.Second, "the next had it %s after the second was left", took)
		third.Fail(t.Context())
	})
}

// TestOnceBegunTooLong checks that a result that is too long does not end the run.
func TestOnceBegunTooLong(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	run := mustBegin(t, c, &holdfast.OnceOptions{MaxResult: 3})
	wantErr(t, run.Complete(t.Context(), []byte("long")), holdfast.ErrInvalid)
	expect(t, run.Lease().Valid(), "the run has ended")
	wantErr(t, run.Complete(t.Context(), []byte("ok")), nil)
}

// TestReplayedRunEnds checks that a replayed run holds nothing: its end sends no request and
// changes nothing, so that Fail can always be deferred.
func TestReplayedRunEnds(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	once(t, c, nil, returns("kept"))
	run := mustBegin(t, c, nil)
	calls := fmt.Sprint(engine.calls)
	for range 2 {
		wantErr(t, run.Complete(t.Context(), []byte("another")), holdfast.ErrInvalid)
		wantErr(t, run.Fail(t.Context()), nil)
		wantErr(t, leftRun(run), holdfast.ErrInvalid)
	}
	got := fmt.Sprint(engine.calls)
	expect(t, got == calls, "requests %s, and before that %s", got, calls)
	again, err := c.OnceBegin(t.Context(), "k", nil)
	expect(t, err == nil && string(again.Result().Value) == "kept", "%v, %v; want the first result", again, err)
}

func leftRun(run *holdfast.OnceRun) error {
	_, err := run.Leave()
	return err
}

// TestFailAfterTheEnd checks that Fail after Complete, Fail or Leave sends no request.
func TestFailAfterTheEnd(t *testing.T) {
	for how, end := range map[string]func(run *holdfast.OnceRun) error{
		"complete": func(run *holdfast.OnceRun) error { return run.Complete(t.Context(), nil) },
		"fail":     func(run *holdfast.OnceRun) error { return run.Fail(t.Context()) },
		"leave":    leftRun,
	} {
		engine := newFaulty()
		run := mustBegin(t, newClient(t, engine, nil), nil)
		wantErr(t, end(run), nil)
		calls := fmt.Sprint(engine.calls)
		wantErr(t, run.Fail(t.Context()), nil)
		got := fmt.Sprint(engine.calls)
		expect(t, got == calls, "%s: Fail has sent something: %s, and before that %s", how, got, calls)
	}
}

// lateReply makes a hook that delays the replies to op until the caller gives up.
func lateReply(op string) func(context.Context, string) error { return hang(op) }

// first makes a hook that runs hook for the first n requests of the operation.
func first(n int, op string, hook func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, o string) error {
		if o != op || n == 0 {
			return nil
		}
		n--
		return hook(ctx, o)
	}
}

// TestCompleteIsRepeated checks that Complete is repeated until the store answers, and that the
// result is stored once. INVARIANT I6.
func TestCompleteIsRepeated(t *testing.T) {
	refused := fmt.Errorf("%w: connection refused", holdfast.ErrUnavailable)
	for name, c := range map[string]struct {
		before, after func(context.Context, string) error
		tries         int
		took          time.Duration // the longest time
	}{
		"request lost":      {before: first(3, "complete", fail(errLink, "complete")), tries: 4, took: 200 * time.Millisecond},
		"reply lost":        {after: first(3, "complete", fail(errLink, "complete")), tries: 4, took: 200 * time.Millisecond},
		"store unreachable": {before: first(3, "complete", fail(refused, "complete")), tries: 4, took: 200 * time.Millisecond},
		"request hangs":     {before: first(2, "complete", hang("complete")), tries: 3, took: 4 * time.Second},
		"reply hangs":       {after: first(2, "complete", lateReply("complete")), tries: 3, took: 4 * time.Second},
	} {
		runInBubble(t, name, func(t *testing.T) {
			engine := newFaulty()
			client := newClient(t, engine, nil)
			engine.set(c.before, c.after)
			start := time.Now()
			r := once(t, client, nil, returns("kept"))
			took := time.Since(start)
			expect(t, !r.Replayed && took <= c.took && engine.count("complete") == c.tries,
				"%+v after %s and %d requests; want %d within %s", r, took, engine.count("complete"), c.tries, c.took)
			s := wantState(t, client, holdfast.OnceDone)
			expect(t, string(s.Result.Value) == "kept", "the store keeps %q", s.Result.Value)
			expect(t, engine.count("release") == 0, "the lease was released although the record ended it")
			nothingLeft(t, engine, "k")
		})
	}
}

// TestCompleteWithoutAnAnswer checks that the error contains exactly what is known if the store
// never answers Complete, and that neither a lease nor a place is left. INVARIANT I5, I10.
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
		// The refusal of one request does not undo what an earlier one may have done.
		"reply lost, then refused": {
			before: after(1, "complete", refused), after: fail(errLink, "complete"),
			want: holdfast.ErrOutcomeUnknown, stored: true,
		},
		"reply lost, then not permitted": {
			before: after(1, "complete", holdfast.ErrPermission), after: fail(errLink, "complete"),
			want: holdfast.ErrOutcomeUnknown, stored: true,
		},
	} {
		runInBubble(t, name, func(t *testing.T) {
			engine := newFaulty()
			client := newClient(t, engine, &holdfast.Options{RequestTimeout: 3 * time.Second})
			engine.set(c.before, c.after)
			start := time.Now()
			r, err := client.Once(t.Context(), "k", nil, returns("made").fn)
			expect(t, errors.Is(err, c.want) && r.Value == nil, "Once = %+v, %v; want %v", r, err, c.want)
			for _, other := range []error{holdfast.ErrOutcomeUnknown, holdfast.ErrUnavailable, holdfast.ErrPermission, holdfast.ErrLost, context.DeadlineExceeded} {
				if other != c.want && errors.Is(err, other) {
					t.Errorf("%v is %v, too", err, other)
				}
			}
			took := time.Since(start)
			expect(t, took <= 3*time.Second, "it took %s, want RequestTimeout at most", took)
			if final := c.want == holdfast.ErrPermission || c.want == holdfast.ErrKindMismatch; final && engine.count("complete") != 1 {
				t.Errorf("%d requests, want no repeat of what fails in the same way", engine.count("complete"))
			}
			engine.heal()
			time.Sleep(time.Second) // the next attempt of the clean-up
			nothingLeft(t, engine, "k")
			if c.stored {
				wantState(t, client, holdfast.OnceDone)
				return
			}
			wantFree(t, engine, client)
		})
	}
}

// after makes a hook that fails the named operation after its first n requests.
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

// TestCompleteCleansUpAfterAnOutage checks that the clean-up is repeated until the store is
// available again.
func TestCompleteCleansUpAfterAnOutage(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		_, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{TTL: time.Hour}, func(context.Context, *holdfast.Lease) ([]byte, error) {
			engine.set(fail(errLink, "complete", "release", "extend"), nil)
			return []byte("made"), nil
		})
		wantErr(t, err, holdfast.ErrOutcomeUnknown)
		time.Sleep(time.Minute)
		expect(t, holders(t, engine.Engine, "k") == 1, "the outage let the lease end: the test shows nothing")
		engine.heal()
		time.Sleep(2 * time.Second)
		nothingLeft(t, engine, "k")
	})
}

// TestCompleteForgottenBeforeTheRepeat checks that the error is ErrLost if the reply is lost and
// the result is forgotten before the repeat arrives. It is then certain that no result is stored.
func TestCompleteForgottenBeforeTheRepeat(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(nil, first(1, "complete", func(ctx context.Context, _ string) error {
			if found, err := engine.Forget(ctx, "k"); !found || err != nil {
				t.Errorf("Forget = %t, %v", found, err)
			}
			return errLink
		}))
		_, err := c.Once(t.Context(), "k", nil, returns("made").fn)
		wantErr(t, err, holdfast.ErrLost)
		expect(t, !errors.Is(err, holdfast.ErrOutcomeUnknown) && engine.count("complete") == 2, "%v after %d requests", err, engine.count("complete"))
		wantFree(t, engine, c)
	})
}

// TestCompleteArrivesAfterTheCleanUp checks that a Complete that arrives after the clean-up stores
// nothing. INVARIANT I4.
func TestCompleteArrivesAfterTheCleanUp(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(hang("complete"), nil)
		var id lockinfo.LeaseID
		_, err := c.Once(t.Context(), "k", nil, func(_ context.Context, l *holdfast.Lease) ([]byte, error) {
			id = l.ID()
			return []byte("made"), nil
		})
		wantErr(t, err, holdfast.ErrOutcomeUnknown)
		engine.heal()
		synctest.Wait() // wait for the clean-up
		err = engine.Engine.Complete(t.Context(), driver.CompleteRequest{Name: "k", LeaseID: id, Record: []byte("late"), Retention: time.Hour})
		wantErr(t, err, holdfast.ErrLost)
		wantFree(t, engine, c)
	})
}

// TestCompleteAfterTheCallerIsGone checks that the result of finished work is stored even if the
// caller's context has ended.
func TestCompleteAfterTheCallerIsGone(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(first(2, "complete", fail(errLink, "complete")), nil)
		ctx, cancel := context.WithCancel(t.Context())
		r, err := c.Once(ctx, "k", nil, func(ctx context.Context, _ *holdfast.Lease) ([]byte, error) {
			cancel()
			<-ctx.Done()
			return []byte("made"), nil
		})
		expect(t, err == nil && string(r.Value) == "made", "Once = %+v, %v; want the result", r, err)
		wantState(t, c, holdfast.OnceDone)
	})
}

// TestCompleteBetweenDeadlineAndExpiry checks that a result that reaches the store between the
// deadline and the expiry of the lease is stored, because it was made under the lease.
func TestCompleteBetweenDeadlineAndExpiry(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(fail(errLink, "extend"), nil)
		r := once(t, c, nil, newJob(func(ctx context.Context, _ *holdfast.Lease, _ int) ([]byte, error) {
			<-ctx.Done()
			wantErr(t, context.Cause(ctx), holdfast.ErrLost)
			return []byte("in time"), nil
		}))
		s := wantState(t, c, holdfast.OnceDone)
		expect(t, string(r.Value) == "in time" && string(s.Result.Value) == "in time", "Once = %+v, the store keeps %+v", r, s.Result)
	})
}

// TestCompleteUnansweredAfterTheDeadline checks that a Complete without a reply returns
// ErrOutcomeUnknown even after the deadline.
func TestCompleteUnansweredAfterTheDeadline(t *testing.T) {
	for _, replyLost := range []bool{false, true} {
		runWithClient(t, fmt.Sprint("reply lost ", replyLost), nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
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
	}
}

// TestCompleteWaitsForRenewals checks that no renewal is sent while or after the result is stored.
// INVARIANT I9.
func TestCompleteWaitsForRenewals(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		extending := neverDuringRenewal(t, engine, "complete")
		once(t, c, nil, newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
			for !extending.Load() {
				time.Sleep(time.Millisecond)
			}
			return nil, nil
		}))
		n := engine.count("extend")
		time.Sleep(5 * time.Minute)
		expect(t, engine.count("extend") == n, "renewals go on after the result was stored")
	})
}
