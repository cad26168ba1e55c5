package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
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
			s := wantState(t, b, holdfast.OnceInProgress)
			expect(t, s.Holder.Host == "web-3" && s.Since == time.Second && s.ExpiresIn == 9*time.Second && s.Result.Value == nil, "in progress: %+v", s)
			return []byte("kept"), nil
		}))
		time.Sleep(time.Minute)
		s := wantState(t, b, holdfast.OnceDone)
		expect(t, string(s.Result.Value) == "kept" && s.Result.Replayed && s.Result.Token == r.Token && s.ExpiresIn == 59*time.Minute && s.Holder.Host == "",
			"done: %+v", s)
		// A lock of the key hides the result only when the result has ended.
		defer mustAcquire(t, a, "k", nil).Release(t.Context())
		wantState(t, b, holdfast.OnceDone)
		time.Sleep(time.Hour)
		wantState(t, b, holdfast.OnceInProgress)
	})
}

// TestStatusOfALockKeptClosed checks that a name that MinHold keeps closed is not reported as work
// in progress.
func TestStatusOfALockKeptClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		mustAcquire(t, c, "k", &holdfast.AcquireOptions{MinHold: time.Hour}).Release(t.Context())
		wantState(t, c, holdfast.OnceAbsent)
	})
}

// TestStatusRacesCompletion checks that work that ends between the two requests of Records.Once is
// reported as done, not absent.
func TestStatusRacesCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newLedger()
		c := newClient(t, engine, nil)
		engine.set(nil, func(_ context.Context, op string) error {
			if op == "describe" && engine.count("describe") == 1 {
				once(t, c, nil, returns("kept"))
			}
			return nil
		})
		wantState(t, c, holdfast.OnceDone)
	})
}

// TestStatusNeverGoesBack checks that other callers see a key as absent until its work begins, then
// as in progress, then as done, and never as absent again.
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
					s, err := c.Records().Once(t.Context(), "k")
					expect(t, err == nil && s.State >= last, "%s after %s (%v)", s.State, last, err)
					last = s.State
				}
				expect(t, last == holdfast.OnceDone, "%s at last, want done", last)
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
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		forget := func(want bool) {
			t.Helper()
			found, err := c.Records().Forget(t.Context(), "k")
			expect(t, found == want && err == nil, "Forget = %t, %v; want %t", found, err, want)
		}
		forget(false)
		j := newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
			forget(false) // the work continues, and its result is stored
			return []byte("kept"), nil
		})
		once(t, c, nil, j)
		once(t, c, nil, mustNotRun(t))
		forget(true)
		forget(false)
		wantFree(t, engine, c)
	})
}

// TestForgetRaces checks callers of Once while an operator forgets results: each result comes from
// one run, and there is at most one run more than forgotten results.
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
				found, err := operator.Records().Forget(t.Context(), "k")
				expect(t, err == nil, "%v", err)
				if found {
					forgotten++
				}
			}
		})
		fresh := map[string]int{}
		for _, a := range crowd(t, engine, 200, 3*time.Millisecond, &holdfast.OnceOptions{Await: holdfast.Forever}, j) {
			expect(t, a.err == nil, "%v", a.err)
			if !a.Replayed {
				fresh[string(a.Value)]++
			}
		}
		wg.Wait()
		expect(t, len(fresh) == j.runs && forgotten >= 10 && j.runs >= forgotten && j.runs <= forgotten+1,
			"%d runs, %d results were forgotten, fresh: %v", j.runs, forgotten, fresh)
	})
}

func TestStatusAndForgetErrors(t *testing.T) {
	for _, c := range []struct {
		before func(context.Context, string) error
		status error
		result error
		forget error
	}{
		{fail(errLink, "describe", "recall", "forget"), holdfast.ErrUnavailable, holdfast.ErrUnavailable, holdfast.ErrOutcomeUnknown},
		{hang("describe", "recall", "forget"), holdfast.ErrUnavailable, holdfast.ErrUnavailable, holdfast.ErrOutcomeUnknown},
		{fail(errLink, "inspect", "forget"), holdfast.ErrUnavailable, nil, holdfast.ErrOutcomeUnknown},
		{fail(holdfast.ErrPermission, "describe", "recall", "forget"), holdfast.ErrPermission, holdfast.ErrPermission, holdfast.ErrPermission},
		{fail(holdfast.ErrUnavailable, "describe", "recall", "forget"), holdfast.ErrUnavailable, holdfast.ErrUnavailable, holdfast.ErrUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := newLedger()
			client := newClient(t, engine, nil)
			engine.set(c.before, nil)
			start := time.Now()
			wantErr(t, errOf(client.Records().Once(t.Context(), "k")), c.status)
			wantErr(t, errOf(client.Records().Result(t.Context(), "k")), c.result)
			_, err := client.Records().Forget(t.Context(), "k")
			wantErr(t, err, c.forget)
			expect(t, !errors.Is(err, context.DeadlineExceeded) && time.Since(start) <= 15*time.Second, "%v after %s", err, time.Since(start))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			engine.set(hang("describe", "recall"), nil)
			wantErr(t, errOf(client.Records().Once(ctx, "k")), context.Canceled)
			wantErr(t, errOf(client.Records().Result(ctx, "k")), context.Canceled)
		})
	}
}

// TestOnceForeignRecord checks that a record of another version or program is not taken for a
// result.
func TestOnceForeignRecord(t *testing.T) {
	for _, record := range []string{"", "x", "{}", "{}\n", `{"v":2,"token":1}` + "\nresult", `{"v":1,"token":1}`, "\n", `{"v":1,"token":-1}` + "\n"} {
		inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			id := lockinfo.NewLeaseID()
			engine.Engine.Acquire(t.Context(), driver.AcquireRequest{Name: "k", LeaseID: id, TTL: time.Hour})
			err := engine.Engine.Complete(t.Context(), driver.CompleteRequest{Name: "k", LeaseID: id, Record: []byte(record), Retention: time.Hour})
			must(t, err)
			wantErr(t, errOf(c.Once(t.Context(), "k", nil, mustNotRun(t).fn)), holdfast.ErrKindMismatch)
			wantErr(t, errOf(c.Records().Result(t.Context(), "k")), holdfast.ErrKindMismatch)
			if r, err := c.Records().Once(t.Context(), "k"); err != nil || r.State != holdfast.OnceDone || r.Token != 0 {
				t.Errorf("Once = %+v, %v; want that something is there, of no token", r, err)
			}
			if found, err := c.Records().Forget(t.Context(), "k"); !found || err != nil {
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
		expect(t, s.String() == want, "%d is %q, want %q", int(s), s.String(), want)
	}
}

// onceList returns what Records.List yields, by key.
func onceList(t *testing.T, c *holdfast.Client, prefix string) map[string]holdfast.OnceRecord {
	t.Helper()
	all := map[string]holdfast.OnceRecord{}
	for e, err := range c.Records().List(t.Context(), prefix) {
		must(t, err)
		_, ok := all[e.Key]
		expect(t, !ok, "%s comes twice", e.Key)
		all[e.Key] = e
	}
	return all
}

// TestOnceList checks that the list contains keys that are done, with the length of their results,
// or in progress, but no plain locks.
func TestOnceList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), &holdfast.Options{Holder: holdfast.Holder{Host: "web-3"}})
		work := func(key, result string, during func()) uint64 {
			opts := &holdfast.OnceOptions{Retention: time.Hour, Fingerprint: strings.Repeat("<", 256)} // the longest header
			r, err := c.Once(t.Context(), key, opts, func(context.Context, *holdfast.Lease) ([]byte, error) {
				during()
				return []byte(result), nil
			})
			must(t, err)
			return r.Token
		}
		defer mustAcquire(t, c, "x/lock", nil).Release(t.Context())
		long := strings.Repeat("result\n", 1000)
		token := work("x/done", long, func() {})
		work("y/done", "", func() {})
		work("x/now", "", func() {
			time.Sleep(61 * time.Second) // no renewal is due at this time
			all := onceList(t, c, "x/")
			done := all["x/done"]
			expect(t, done.State == holdfast.OnceDone && done.Token == token && done.Length == len(long) && done.ExpiresIn == time.Hour-61*time.Second,
				"done: %+v, want the token %d and %d bytes", done, token, len(long))
			now := all["x/now"]
			expect(t, now.State == holdfast.OnceInProgress && now.Holder.Host == "web-3" && now.Token == 0 && now.Length == 0 && now.ExpiresIn > 0,
				"in progress: %+v", now)
			expect(t, len(all) == 2, "%d keys, want 2: %+v", len(all), all)
			for key, want := range all {
				if e, err := c.Records().Once(t.Context(), key); err != nil || e.State != want.State || e.Length != want.Length || e.Token != want.Token {
					t.Errorf("Once = %+v, %v; List says %+v", e, err, want)
				}
				lock, err := c.Inspect(t.Context(), key)
				must(t, err)
				if e, err := c.Records().Of(t.Context(), lock); err != nil || !reflect.DeepEqual(e, want) {
					t.Errorf("Of = %+v, %v; List says %+v", e, err, want)
				}
			}
		})
		n := len(onceList(t, c, ""))
		expect(t, n == 3, "%d keys, want 3", n)
		time.Sleep(time.Hour)
		all := onceList(t, c, "")
		expect(t, len(all) == 0, "after the retention: %+v", all)
		if e, err := c.Records().Once(t.Context(), "x/done"); err != nil || e.State != holdfast.OnceAbsent {
			t.Errorf("after the retention: %+v, %v", e, err)
		}
	})
}

// A completing engine calls finish after the locks are listed and before the records are.
type completing struct {
	driver.Forward
	finish func()
}

func (c *completing) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
	c.finish()
	return c.Forward.ListRecords(ctx, prefix)
}

// TestOnceListRacesCompletion checks that work that ends between the two requests of a list is
// listed once, as done.
func TestOnceListRacesCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, finish, done := mem.New(nil), make(chan struct{}), make(chan struct{})
		worker := newClient(t, store, nil)
		c := newClient(t, &completing{driver.Forward{Engine: store}, func() {
			close(finish)
			<-done
		}}, nil)
		go func() {
			defer close(done)
			_, err := worker.Once(t.Context(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) {
				<-finish
				return []byte("x"), nil
			})
			expect(t, err == nil, "%v", err)
		}()
		synctest.Wait()
		all := onceList(t, c, "")
		expect(t, len(all) == 1 && all["k"].State == holdfast.OnceDone, "%+v, want k, done", all)
	})
}

// TestOnceListNeedsEngine checks that a list returns an error if the engine cannot list or is
// closed.
func TestOnceListNeedsEngine(t *testing.T) {
	for _, without := range []driver.Capabilities{{List: true}, {Records: true}} {
		c := newClient(t, driver.Forward{Engine: mem.New(nil), Without: without}, nil)
		for _, err := range c.Records().List(t.Context(), "") {
			expect(t, errors.Is(err, holdfast.ErrUnsupported), "without %+v: %v, want ErrUnsupported", without, err)
		}
	}
	c := newClient(t, driver.Forward{Engine: mem.New(nil), Without: driver.Capabilities{Records: true}}, nil)
	if _, err := c.Records().Once(t.Context(), "k"); !errors.Is(err, holdfast.ErrUnsupported) {
		t.Errorf("Once: %v, want ErrUnsupported", err)
	}
	if _, err := c.Records().Of(t.Context(), holdfast.LockState{Name: "k"}); !errors.Is(err, holdfast.ErrUnsupported) {
		t.Errorf("Of: %v, want ErrUnsupported", err)
	}
	store := mem.New(nil)
	c = newClient(t, store, nil)
	store.Close()
	errs := 0
	for _, err := range c.Records().List(t.Context(), "") {
		if errors.Is(err, holdfast.ErrClosed) {
			errs++
		}
	}
	expect(t, errs == 1, "%d errors of a closed engine, want 1", errs)
}

// TestListErrors checks that a list returns ErrUnavailable if the store does not answer, and the
// context's error if that has ended.
func TestListErrors(t *testing.T) {
	for _, silent := range []string{"List", "ListRecords"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := newClient(t, &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, r hook.Request, send func() error) error {
			if r.Method == silent {
				return errLink
			}
			return send()
		}}, nil)
		lists := map[string]func() error{
			"List":         func() error { return lastError(c.List(ctx, "")) },
			"Records.List": func() error { return lastError(c.Records().List(ctx, "")) },
		}
		if silent == "ListRecords" {
			delete(lists, "List")
		}
		for name, list := range lists {
			wantErr(t, list(), holdfast.ErrUnavailable)
			err := list()
			expect(t, errors.Is(err, errLink), "%s: %v", name, err)
		}
		cancel()
		for _, list := range lists {
			wantErr(t, list(), context.Canceled)
		}
	}
}

// TestOnceAdoptAfterTheEnd checks that a caller that adopts a run again, because the reply to its
// end was lost, receives the result, or ErrLost if another run has replaced it.
func TestOnceAdoptAfterTheEnd(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		handle := begun(t, engine, nil)
		run := mustOnceAdopt(t, c, handle, nil)
		engine.set(nil, lateReply("complete"))
		wantErr(t, run.Complete(t.Context(), []byte("sent")), holdfast.ErrOutcomeUnknown)
		engine.heal()
		run = mustOnceAdopt(t, newClient(t, engine, nil), handle, nil)
		r := run.Result()
		expect(t, run.Replayed() && string(r.Value) == "sent" && r.Replayed && r.Token == tokenOf(t, handle), "OnceAdopt = %v, %q; want the result", run, r.Value)

		must(t, errOf(c.Records().Forget(t.Context(), "k")))
		wantErr(t, errOf(c.OnceAdopt(t.Context(), handle, nil)), holdfast.ErrLost)
		must(t, errOf(c.Once(t.Context(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("by another"), nil })))
		run, err := c.OnceAdopt(t.Context(), handle, nil)
		wantErr(t, err, holdfast.ErrLost)
		expect(t, run == nil, "it was told the result of another run: %v", run)
	})
}
