package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

func TestOnceLostWhileItRuns(t *testing.T) {
	errWork := errors.New("work failed")
	for _, result := range []error{nil, errWork} {
		runWithClient(t, fmt.Sprint(result), nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			_, err := c.Once(t.Context(), "k", nil, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
				engine.Engine.Release(ctx, driver.ReleaseRequest{Name: "k", LeaseID: l.ID()})
				<-ctx.Done()
				wantErr(t, context.Cause(ctx), holdfast.ErrLost)
				return []byte("stale"), result
			})
			wantErr(t, err, holdfast.ErrLost)
			if result != nil {
				wantErr(t, err, result)
			}
			wantFree(t, engine, c)
		})
	}
}

// TestOnceLostUnnoticed checks that the store refuses the result if the work ends before the client
// detects the loss.
func TestOnceLostUnnoticed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		_, err := c.Once(t.Context(), "k", nil, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
			return []byte("stale"), engine.Engine.Release(ctx, driver.ReleaseRequest{Name: "k", LeaseID: l.ID()})
		})
		wantErr(t, err, holdfast.ErrLost)
		wantFree(t, engine, c)
	})
}

func TestOnceWorkReleasesItsLease(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		_, err := c.Once(t.Context(), "k", nil, func(_ context.Context, l *holdfast.Lease) ([]byte, error) {
			return []byte("unprotected"), l.Release(t.Context())
		})
		wantErr(t, err, holdfast.ErrLost)
		wantFree(t, engine, c)
	})
}

// TestOnceZombieIsRefused checks that a process that was paused beyond its lease overwrites no
// result. INVARIANT I4.
func TestOnceZombieIsRefused(t *testing.T) {
	pauses := map[string]struct {
		forgets bool // the second result is forgotten before the first arrives
		retain  time.Duration
	}{
		"result kept":      {retain: time.Hour},
		"result over":      {retain: time.Second},
		"result forgotten": {retain: time.Hour, forgets: true},
	}
	for name, p := range pauses {
		runInBubble(t, name, func(t *testing.T) {
			store := newFaulty()
			paused := newFaultyOn(store.Engine)
			paused.set(fail(errLink, "extend"), nil)
			a, b := newClient(t, paused, nil), newClient(t, store, nil)
			_, err := a.Once(t.Context(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) {
				time.Sleep(time.Minute) // the work ignores its context
				r := once(t, b, &holdfast.OnceOptions{Retention: p.retain}, returns("second"))
				expect(t, !r.Replayed, "the second did not run")
				time.Sleep(2 * time.Second)
				if p.forgets {
					b.Records().Forget(t.Context(), "k")
				}
				return []byte("zombie"), nil
			})
			wantErr(t, err, holdfast.ErrLost)
			if p.retain == time.Hour && !p.forgets {
				s := wantState(t, b, holdfast.OnceDone)
				expect(t, string(s.Result.Value) == "second", "the store keeps %q, want the second's", s.Result.Value)
				return
			}
			wantFree(t, store, b)
		})
	}
}

// TestOnceOvertakenBeforeComplete checks that the result of a process is refused if it is paused
// before Complete, and overtaken without noticing.
func TestOnceOvertakenBeforeComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		a, b := newClient(t, engine, nil), newClient(t, engine, nil)
		var lease *holdfast.Lease
		engine.set(func(ctx context.Context, op string) error {
			if op == "complete" && lease != nil {
				stale := lease
				lease = nil
				engine.Engine.Release(ctx, driver.ReleaseRequest{Name: "k", LeaseID: stale.ID()}) // the lease expires
				once(t, b, nil, returns("second"))
			}
			return nil
		}, nil)
		_, err := a.Once(t.Context(), "k", nil, func(_ context.Context, l *holdfast.Lease) ([]byte, error) {
			lease = l
			return []byte("first"), nil
		})
		wantErr(t, err, holdfast.ErrLost)
		s := wantState(t, b, holdfast.OnceDone)
		expect(t, string(s.Result.Value) == "second", "the store keeps %q, want the second's", s.Result.Value)
	})
}

func TestOnceMaxHold(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		for want, o := range map[error]holdfast.OnceOptions{
			holdfast.ErrMaxHold: {MaxHold: time.Minute},
			holdfast.ErrStalled: {StallAfter: 5 * time.Second},
		} {
			_, err := c.Once(t.Context(), "k", &o, func(ctx context.Context, _ *holdfast.Lease) ([]byte, error) {
				<-ctx.Done()
				wantErr(t, context.Cause(ctx), want)
				return nil, context.Cause(ctx)
			})
			wantErr(t, err, want)
			wantErr(t, err, holdfast.ErrLost)
			synctest.Wait() // the client frees the key in the background
			nothingLeft(t, engine, "k")
		}
	})
}

func TestOnceAfterClose(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		_, err := c.Once(t.Context(), "k", nil, func(ctx context.Context, _ *holdfast.Lease) ([]byte, error) {
			wantErr(t, c.Close(), nil)
			<-ctx.Done() // ends, or the test hangs
			return []byte("unprotected"), nil
		})
		wantErr(t, err, holdfast.ErrLost)
		nothingLeft(t, engine, "k")
		wantErr(t, errOf(c.Once(t.Context(), "k", nil, mustNotRun(t).fn)), holdfast.ErrClosed)
	})
}

// An answer is the result of one call of Once.
type answer struct {
	holdfast.OnceResult
	err error
	at  time.Duration // after the start
}

// crowd calls Once from n goroutines of several clients, one every step, and returns the results.
func crowd(t testing.TB, engine driver.Engine, n int, step time.Duration, opts *holdfast.OnceOptions, j *job) []answer {
	t.Helper()
	var clients []*holdfast.Client
	for i := range 4 {
		clients = append(clients, newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: fmt.Sprint("host-", i), PID: 1}}))
	}
	start := time.Now()
	answers := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * step)
			r, err := clients[i%4].Once(t.Context(), "k", opts, j.fn)
			answers[i] = answer{r, err, time.Since(start)}
		})
	}
	wg.Wait()
	return answers
}

func TestOnceRaceWithoutWaiting(t *testing.T) {
	for _, step := range []time.Duration{0, 50 * time.Millisecond} {
		runInBubble(t, fmt.Sprint(step), func(t *testing.T) {
			engine := newFaulty()
			var who string
			j := newJob(func(_ context.Context, l *holdfast.Lease, _ int) ([]byte, error) {
				who = l.Holder().Host
				time.Sleep(time.Second)
				return []byte("result"), nil
			})
			var ran, busy, replayed int
			for i, a := range crowd(t, engine, 64, step, nil, j) {
				var e *holdfast.InProgressError
				switch {
				case errors.As(a.err, &e):
					busy++
					expect(t, e.Holder.Host == who && e.ExpiresIn > 0 && e.ExpiresIn <= 30*time.Second && a.at == time.Duration(i)*step,
						"after %s: %+v, want at once that %s works", a.at, e, who)
				case a.err != nil || string(a.Value) != "result":
					t.Errorf("%+v", a)
				case a.Replayed:
					replayed++
				default:
					ran++
				}
			}
			expect(t, ran == 1 && j.runs == 1 && ran+busy+replayed == 64 && (step == 0) == (replayed == 0) && busy >= 19,
				"%d ran (%d runs), %d were refused because it runs, %d got the stored result", ran, j.runs, busy, replayed)
		})
	}
}

func TestOnceRaceWaiting(t *testing.T) {
	engines := map[string]func() driver.Engine{
		"queue":    func() driver.Engine { return newFaulty() },
		"no queue": func() driver.Engine { return unqueued(mem.New(nil)) },
		"no messages": func() driver.Engine {
			e := newFaulty()
			e.deaf = true
			return e
		},
	}
	for name, engine := range engines {
		runInBubble(t, name, func(t *testing.T) {
			j := newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
				time.Sleep(time.Second)
				return []byte("result"), nil
			})
			ran := 0
			var token uint64
			store := engine()
			for _, a := range crowd(t, store, 64, 0, &holdfast.OnceOptions{Await: holdfast.Forever}, j) {
				if a.err != nil || string(a.Value) != "result" || token != 0 && a.Token != token {
					t.Errorf("%+v, want the result of token %d", a, token)
				}
				token = a.Token
				if !a.Replayed {
					ran++
				}
				// A message arrives at once. Without it a refresh follows within a third of the
				// waiter TTL, and without a queue an attempt within 250 ms.
				if limit := map[string]time.Duration{"queue": 1020 * time.Millisecond}[name]; limit > 0 && a.at > limit || a.at > 3*time.Second {
					t.Errorf("answered after %s", a.at)
				}
			}
			expect(t, ran == 1 && j.runs == 1, "%d ran (%d runs), want 1", ran, j.runs)
			lock, err := store.Inspect(t.Context(), "k")
			expect(t, err == nil && len(lock.Holders)+len(lock.Queue) == 0, "%d leases and %d places stayed behind (%v)", len(lock.Holders), len(lock.Queue), err)
		})
	}
}

// TestOnceRaceWithFailures checks that work that fails three times runs four times, with any number
// of waiters.
func TestOnceRaceWithFailures(t *testing.T) {
	for _, await := range []time.Duration{0, holdfast.Forever} {
		runInBubble(t, fmt.Sprint("await ", await), func(t *testing.T) {
			failures := []error{errors.New("first"), errors.New("second"), errors.New("third")}
			j := newJob(func(_ context.Context, _ *holdfast.Lease, n int) ([]byte, error) {
				time.Sleep(time.Second)
				if n <= len(failures) {
					return nil, failures[n-1]
				}
				return []byte("fourth"), nil
			})
			seen := map[error]int{}
			ran, replayed, busy := 0, 0, 0
			step := 100 * time.Millisecond // 64 steps take 6.4 s, the work takes 4 s
			for _, a := range crowd(t, newFaulty(), 64, step, &holdfast.OnceOptions{Await: await}, j) {
				switch {
				case a.err == nil && string(a.Value) == "fourth" && a.Replayed:
					replayed++
				case a.err == nil && string(a.Value) == "fourth":
					ran++
				case await == 0 && errors.Is(a.err, holdfast.ErrInProgress):
					busy++
				default:
					seen[a.err]++ // not wrapped
				}
			}
			for _, err := range failures {
				expect(t, seen[err] == 1, "%d callers got %q, want the one whose run it was", seen[err], err)
			}
			expect(t, j.runs == 4 && ran == 1 && len(seen) == 3 && ran+replayed+busy == 61 && replayed >= 20 && (busy == 0) == (await > 0),
				"%d runs, %d succeeded, %d replayed, %d were refused because it runs, errors %v", j.runs, ran, replayed, busy, seen)
		})
	}
}

func TestOnceWaitIsBounded(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		foreign(t, engine, "k", time.Hour)
		start := time.Now()
		_, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{Await: 3 * time.Second}, mustNotRun(t).fn)
		var busy *holdfast.InProgressError
		expect(t, errors.As(err, &busy) && busy.Waited == 3*time.Second && time.Since(start) == 3*time.Second,
			"error = %v after %s, want ErrInProgress after 3s", err, time.Since(start))
		expect(t, !errors.Is(err, context.DeadlineExceeded), "%v is a context error, but no context of the caller has ended", err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Once(ctx, "k", &holdfast.OnceOptions{Await: holdfast.Forever}, mustNotRun(t).fn)
		wantErr(t, err, context.DeadlineExceeded)
		wantErr(t, err, holdfast.ErrInProgress)
		synctest.Wait()
		lock, _ := engine.Engine.Inspect(t.Context(), "k")
		expect(t, len(lock.Queue) == 0, "%d places stayed behind", len(lock.Queue))
	})
}

// TestOnceAcquireRepliesLost checks that lost replies to acquires lead to one run, and that nothing
// is left if all replies are lost.
func TestOnceAcquireRepliesLost(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		engine.set(nil, first(3, "acquire", fail(errLink, "acquire")))
		j := returns("x")
		r := once(t, c, nil, j)
		expect(t, !r.Replayed && j.runs == 1, "%+v, %d runs; want one", r, j.runs)
		engine.set(nil, fail(errLink, "acquire"))
		wantErr(t, errOf(c.Once(t.Context(), "other", nil, mustNotRun(t).fn)), holdfast.ErrUnavailable)
		engine.heal()
		time.Sleep(time.Second)
		nothingLeft(t, engine, "other")
	})
}

type invoice struct {
	ID     int               `json:"id"`
	Lines  []string          `json:"lines"`
	Labels map[string]string `json:"labels"`
	Next   *invoice          `json:"next,omitempty"`
	hidden int
}

// checkJSON runs work that returns v, then replays it. Both calls must return want.
func checkJSON[T any](t *testing.T, v, want T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		runs := 0
		for _, replayed := range []bool{false, true} {
			got, r, err := holdfast.OnceJSON(t.Context(), c, "k", nil, func(context.Context, *holdfast.Lease) (T, error) {
				runs++
				return v, nil
			})
			expect(t, err == nil && reflect.DeepEqual(got, want) && r.Replayed == replayed && r.Token != 0 && runs == 1,
				"%T: %#v, %+v, %v after %d runs; want %#v, replayed %t", v, got, r, err, runs, want, replayed)
		}
	})
}

func TestOnceJSONValues(t *testing.T) {
	one := invoice{ID: 1, Lines: []string{"a", "<&>"}, Labels: map[string]string{"k": "v"}, Next: &invoice{ID: 2}, hidden: 7}
	kept := one
	kept.hidden = 0 // the first caller receives the same as the others
	checkJSON(t, one, kept)
	checkJSON(t, &one, &kept)
	checkJSON[*invoice](t, nil, nil)
	checkJSON[error](t, nil, nil)
	checkJSON(t, invoice{}, invoice{})
	checkJSON(t, struct{}{}, struct{}{})
	checkJSON[map[string]int](t, nil, nil)
	checkJSON(t, []byte{0, 255, '\n'}, []byte{0, 255, '\n'})
	checkJSON(t, "line\nbreak", "line\nbreak")
	checkJSON[uint64](t, math.MaxUint64, math.MaxUint64)
	checkJSON[any](t, 1, 1.0)
}

func TestOnceJSONOfAnotherType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		once(t, c, nil, returns(`{"id":1,"lines":["a",2]}`))
		v, r, err := holdfast.OnceJSON(t.Context(), c, "k", nil, func(context.Context, *holdfast.Lease) (invoice, error) {
			t.Error("the work ran")
			return invoice{}, nil
		})
		wantErr(t, err, holdfast.ErrKindMismatch)
		expect(t, v.ID == 0 && v.Lines == nil && r.Replayed && len(r.Value) != 0, "%+v, %+v: want no value, and the result as it is", v, r)
		s := wantState(t, c, holdfast.OnceDone)
		expect(t, s.State == holdfast.OnceDone, "the result is gone")
	})
}

func TestOnceJSONErrors(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		errWork := errors.New("work failed")
		v, r, err := holdfast.OnceJSON(t.Context(), c, "k", nil, func(context.Context, *holdfast.Lease) (int, error) { return 7, errWork })
		expect(t, err == errWork && v == 0 && r.Value == nil, "%v, %+v, %v; want the work's error as it is", v, r, err)
		_, _, err = holdfast.OnceJSON(t.Context(), c, "k", nil, func(context.Context, *holdfast.Lease) (any, error) { return func() {}, nil })
		expect(t, err != nil && err.Error() == `holdfast: once "k": json: unsupported type: func()`, "error = %v", err)
		wantFree(t, engine, c)
	})
}
