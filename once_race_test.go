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
	"github.com/holdfast-locks/holdfast/memlock"
)

// An answer is what one caller of Once got.
type answer struct {
	holdfast.OnceResult
	err error
	at  time.Duration // after the start
}

// crowd calls Once from n goroutines of several clients, one every step, and
// returns what they got.
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
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
						if e.Holder.Host != who || e.ExpiresIn <= 0 || e.ExpiresIn > 30*time.Second || a.at != time.Duration(i)*step {
							t.Errorf("after %s: %+v, want at once that %s works", a.at, e, who)
						}
					case a.err != nil || string(a.Value) != "result":
						t.Errorf("%+v", a)
					case a.Replayed:
						replayed++
					default:
						ran++
					}
				}
				if ran != 1 || j.runs != 1 || ran+busy+replayed != 64 || (step == 0) != (replayed == 0) || busy < 19 {
					t.Errorf("%d ran (%d runs), %d were told that it runs, %d got the stored result", ran, j.runs, busy, replayed)
				}
			})
		})
	}
}

func TestOnceRaceWaiting(t *testing.T) {
	engines := map[string]func() driver.Engine{
		"queue":    func() driver.Engine { return newFaulty() },
		"no queue": func() driver.Engine { return unqueued(memlock.New()) },
		"no messages": func() driver.Engine {
			e := newFaulty()
			e.deaf = true
			return e
		},
	}
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
					time.Sleep(time.Second)
					return []byte("result"), nil
				})
				ran := 0
				var token uint64
				store := engine()
				for _, a := range crowd(t, store, 64, 0, &holdfast.OnceOptions{Await: true}, j) {
					if a.err != nil || string(a.Value) != "result" || token != 0 && a.Token != token {
						t.Errorf("%+v, want the result of token %d", a, token)
					}
					token = a.Token
					if !a.Replayed {
						ran++
					}
					// A message is there at once; a look comes within a third of the
					// waiter TTL with a queue, and 250 ms without.
					if limit := map[string]time.Duration{"queue": 1020 * time.Millisecond}[name]; limit > 0 && a.at > limit || a.at > 3*time.Second {
						t.Errorf("answered after %s", a.at)
					}
				}
				if ran != 1 || j.runs != 1 {
					t.Errorf("%d ran (%d runs), want 1", ran, j.runs)
				}
				lock, err := store.Inspect(t.Context(), "k")
				if err != nil || len(lock.Holders)+len(lock.Queue) != 0 {
					t.Errorf("%d leases and %d places stayed behind (%v)", len(lock.Holders), len(lock.Queue), err)
				}
			})
		})
	}
}

// Work that fails three times runs four times, whoever waits for it.
func TestOnceRaceWithFailures(t *testing.T) {
	for _, await := range []bool{false, true} {
		t.Run(fmt.Sprint("await ", await), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
				step := 100 * time.Millisecond // 64 of them: 6.4 s, the work ends after 4 s
				for _, a := range crowd(t, newFaulty(), 64, step, &holdfast.OnceOptions{Await: await}, j) {
					switch {
					case a.err == nil && string(a.Value) == "fourth" && a.Replayed:
						replayed++
					case a.err == nil && string(a.Value) == "fourth":
						ran++
					case !await && errors.Is(a.err, holdfast.ErrInProgress):
						busy++
					default:
						seen[a.err]++ // as it is, not wrapped
					}
				}
				for _, err := range failures {
					if seen[err] != 1 {
						t.Errorf("%d callers got %q, want the one whose run it was", seen[err], err)
					}
				}
				if j.runs != 4 || ran != 1 || len(seen) != 3 || ran+replayed+busy != 61 || replayed < 20 || (busy == 0) != await {
					t.Errorf("%d runs, %d succeeded, %d replayed, %d were told that it runs, errors %v", j.runs, ran, replayed, busy, seen)
				}
			})
		})
	}
}

// What waiting costs, with a queue: an acquire to ask for the place, a refresh
// at the news that it is gone, a clean-up and the acquire that finds the
// result.
func TestOnceWaitingCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		j := newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
			time.Sleep(time.Second)
			return nil, nil
		})
		crowd(t, engine, 11, 0, &holdfast.OnceOptions{Await: true}, j)
		synctest.Wait()
		if got := fmt.Sprint(engine.calls); got != "map[acquire:21 complete:1 refresh:4 release:10]" {
			t.Errorf("10 waiters cost %s", got)
		}
		if engine.watching != 0 {
			t.Errorf("%d watches were not stopped", engine.watching)
		}
	})
}

func TestOnceWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		foreign(t, engine, "k", time.Hour)
		start := time.Now()
		_, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{Await: true, Wait: 3 * time.Second}, mustNotRun(t).fn)
		var busy *holdfast.InProgressError
		if !errors.As(err, &busy) || busy.Waited != 3*time.Second || time.Since(start) != 3*time.Second {
			t.Errorf("error = %v after %s, want ErrInProgress after 3s", err, time.Since(start))
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is a context error, but no context of the caller has ended", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Once(ctx, "k", &holdfast.OnceOptions{Await: true}, mustNotRun(t).fn)
		wantErr(t, err, context.DeadlineExceeded)
		wantErr(t, err, holdfast.ErrInProgress)
		synctest.Wait()
		if lock, _ := engine.Engine.Inspect(t.Context(), "k"); len(lock.Queue) != 0 {
			t.Errorf("%d places stayed behind", len(lock.Queue))
		}
	})
}

// A waiter rides out an outage of the store, and a reply that is lost does not
// make it run what it ran already.
func TestOnceAcquireRepliesLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, engine, nil)
		engine.set(nil, first(3, "acquire", fail(errLink, "acquire")))
		j := returns("x")
		if r := once(t, c, nil, j); r.Replayed || j.runs != 1 {
			t.Errorf("%+v, %d runs; want one", r, j.runs)
		}
		engine.set(nil, fail(errLink, "acquire"))
		_, err := c.Once(t.Context(), "other", nil, mustNotRun(t).fn)
		wantErr(t, err, holdfast.ErrUnavailable)
		engine.heal()
		time.Sleep(time.Second)
		nothingLeft(t, engine, "other")
	})
}
