package holdfast_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// begun begins work by a client of its own, which leaves it.
func begun(t *testing.T, engine *faulty, opts *holdfast.OnceOptions) (holdfast.LeaseID, uint64) {
	t.Helper()
	run, _, err := newClient(t, newFaultyOn(engine.Engine), nil).OnceBegin(t.Context(), "k", opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Lease().Leave(); err != nil {
		t.Fatal(err)
	}
	return run.Lease().ID(), run.Lease().Token()
}

// Work that is begun in one call and completed in another, maybe of another process,
// is done as Once does it.
func TestOnceInTwoRequests(t *testing.T) {
	for _, adopted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaulty()
			c, other := newClient(t, engine, nil), newClient(t, engine, nil)
			opts := &holdfast.OnceOptions{Fingerprint: "sum 7", Retention: time.Hour}
			run, _, err := c.OnceBegin(t.Context(), "k", opts)
			if err != nil || run == nil {
				t.Fatalf("OnceBegin = %v, %v; want a run", run, err)
			}
			id, token := run.Lease().ID(), run.Lease().Token()
			_, _, err = other.OnceBegin(t.Context(), "k", opts)
			wantErr(t, err, holdfast.ErrInProgress)
			time.Sleep(time.Minute) // it is kept alive
			if adopted {
				run.Lease().Leave()
				if run, _, err = other.OnceAdopt(t.Context(), "k", id, token, opts); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
			}
			r, err := run.Complete(t.Context(), []byte("sent"))
			if err != nil || string(r.Value) != "sent" || r.Token != token || r.Replayed {
				t.Errorf("Complete = %+v, %v", r, err)
			}
			again, r, err := other.OnceBegin(t.Context(), "k", opts)
			if err != nil || again != nil || !r.Replayed || string(r.Value) != "sent" || r.Token != token {
				t.Errorf("after that OnceBegin = %v, %+v, %v; want the result", again, r, err)
			}
			_, _, err = other.OnceBegin(t.Context(), "k", &holdfast.OnceOptions{Fingerprint: "sum 8"})
			wantErr(t, err, holdfast.ErrFingerprint)
			if err := run.Fail(t.Context()); err != nil {
				t.Errorf("Fail after Complete: %v, want nothing done", err)
			}
			nothingLeft(t, engine, "k")
			time.Sleep(time.Hour)
			if again, _, err = other.OnceBegin(t.Context(), "k", nil); again == nil {
				t.Errorf("after its retention: %v, want another run", err)
			}
		})
	}
}

// A run that fails gives the work to whoever waits for it, and one that nobody adopts
// frees the key with its TTL.
func TestOnceBegunFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		id, token := begun(t, engine, &holdfast.OnceOptions{TTL: time.Minute})
		var l looker
		waits := &holdfast.OnceOptions{Await: true, OnWait: l.onWait}
		next := make(chan *holdfast.OnceRun)
		wait := func() {
			run, _, err := c.OnceBegin(t.Context(), "k", waits)
			if err != nil {
				t.Error(err)
			}
			next <- run
		}
		go wait()
		synctest.Wait()
		if len(l.told) != 1 || l.told[0].Place != 1 {
			t.Errorf("OnWait was told %+v", l.told)
		}
		run, _, err := newClient(t, engine, nil).OnceAdopt(t.Context(), "k", id, token, nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := run.Fail(t.Context()); err != nil {
			t.Error(err)
		}
		second := <-next
		if time.Since(start) != 0 {
			t.Errorf("the next had it %s after the failure", time.Since(start))
		}
		second.Lease().Leave()
		go wait()
		third := <-next
		if took := time.Since(start); took > 35*time.Second {
			t.Errorf("the next had it %s after the second was left", took)
		}
		third.Fail(t.Context())
	})
}

// A result that is too long leaves the run as it is.
func TestOnceBegunTooLong(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	run, _, err := c.OnceBegin(t.Context(), "k", &holdfast.OnceOptions{MaxResult: 3})
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.Complete(t.Context(), []byte("long"))
	wantErr(t, err, holdfast.ErrInvalid)
	if !run.Lease().Valid() {
		t.Error("the run is over")
	}
	if _, err = run.Complete(t.Context(), []byte("ok")); err != nil {
		t.Error(err)
	}
}

// Whoever repeats the end of a run because its answer was lost is told the result, and
// whoever comes too late that another run has taken its place.
func TestOnceAdoptAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		id, token := begun(t, engine, nil)
		run, _, err := c.OnceAdopt(t.Context(), "k", id, token, nil)
		if err != nil {
			t.Fatal(err)
		}
		engine.set(nil, lateReply("complete"))
		_, err = run.Complete(t.Context(), []byte("sent"))
		wantErr(t, err, holdfast.ErrOutcomeUnknown)
		engine.heal()
		run, r, err := newClient(t, engine, nil).OnceAdopt(t.Context(), "k", id, token, nil)
		if err != nil || run != nil || string(r.Value) != "sent" || !r.Replayed {
			t.Errorf("OnceAdopt = %v, %+v, %v; want the result", run, r, err)
		}

		if _, err := c.OnceForget(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		_, _, err = c.OnceAdopt(t.Context(), "k", id, token, nil)
		wantErr(t, err, holdfast.ErrLost)
		if _, err := c.Once(t.Context(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("by another"), nil }); err != nil {
			t.Fatal(err)
		}
		_, r, err = c.OnceAdopt(t.Context(), "k", id, token, nil)
		wantErr(t, err, holdfast.ErrLost)
		if r.Value != nil {
			t.Errorf("it was told the result of another run: %s", r.Value)
		}
	})
}

// Wrong arguments send nothing.
func TestOnceBeginRefusesBadInput(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	_, _, err := c.OnceBegin(t.Context(), "", nil)
	wantErr(t, err, holdfast.ErrInvalid)
	_, _, err = c.OnceBegin(t.Context(), "k", &holdfast.OnceOptions{MaxResult: -1})
	wantErr(t, err, holdfast.ErrInvalid)
	_, _, err = c.OnceAdopt(t.Context(), "k", "0", 1, nil)
	wantErr(t, err, holdfast.ErrInvalid)
	_, _, err = newClient(t, plain{engine}, nil).OnceBegin(t.Context(), "k", nil)
	wantErr(t, err, holdfast.ErrUnsupported)
	if len(engine.calls) != 0 {
		t.Errorf("requests %v", engine.calls)
	}
}
