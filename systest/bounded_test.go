package systest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// The most that one call may cost a server, however many leases or places a name has.
const (
	mostCommands = 2000
	longestCall  = 2 * time.Millisecond
)

// TestCallsAreBounded checks that no call runs more than 2,000 commands on the server, however many
// leases or places a name has. In a soak, no call may take more than 2 ms either.
func TestCallsAreBounded(t *testing.T) {
	sizes, rounds := []int{10_000}, 1
	if soak.Long() {
		sizes, rounds = []int{100, 1000, 10_000}, soak.Count(3, 20)
	}
	s := newStore(t)
	number := 0
	for _, n := range sizes {
		crowds := map[bool]*crowd{true: newCrowd(t, s, n, true), false: newCrowd(t, s, n, false)}
		for _, d := range deeds {
			var most int
			var times [][]time.Duration // of each call, in each round
			for range rounds {
				number++
				c := crowds[d.wait].copyTo(t, fmt.Sprint("copy-", number))
				e, w := s.watch(t)
				if ok := t.Run(strings.ReplaceAll(fmt.Sprint(d.what, " ", n), " ", "-"), func(t *testing.T) { d.do(t, e, c) }); !ok {
					return
				}
				most = max(most, w.most)
				for i, took := range w.calls {
					if i == len(times) {
						times = append(times, nil)
					}
					times[i] = append(times[i], took)
				}
				for _, kind := range []string{"fence", "holders", "queue", "detail", "record"} {
					s.do(t, "UNLINK", c.name, key(kind, c.name))
				}
			}
			var median time.Duration // of all rounds, of the longest call
			for _, call := range times {
				slices.Sort(call)
				median = max(median, call[len(call)/2])
			}
			report.Row(t, fmt.Sprintf("%s, %d", d.what, n), "no call runs 2,000 commands or blocks the server for 2 ms",
				"%d calls, the longest %d commands and %s (median of %d rounds)", len(times), most, median, rounds)
			if most > mostCommands {
				t.Errorf("%s, %d: %d commands in one call, want at most %d", d.what, n, most, mostCommands)
			}
			if soak.Long() && median > longestCall {
				t.Errorf("%s, %d: a call took %s, want at most %s", d.what, n, median, longestCall)
			}
		}
		s.do(t, "FLUSHALL")
	}
}

// TestHalfDoneCallIsFinished checks requests that need several calls. Between the calls no request
// from outside the queue is granted the lock, and if the sender dies after the first call, the next
// request finishes the work.
func TestHalfDoneCallIsFinished(t *testing.T) {
	const n = 1000
	s := newStore(t)
	base := newCrowd(t, s, n, true)
	number := 0
	fresh := func() *crowd {
		number++
		return base.copyTo(t, fmt.Sprint("copy-", number))
	}
	// barge tries to take the lock as a client does that ignores the queue.
	barge := func(c *crowd) func(int) {
		return func(call int) {
			if got, _ := c.plain.Do(t.Context(), c.plain.B().Set().Key(c.name).Value("x").Nx().PxMilliseconds(60000).Build()).ToString(); got == "OK" {
				t.Errorf("after call %d the lock was free", call)
			}
		}
	}
	release := driver.ReleaseRequest{}

	c := fresh()
	e, w := s.watch(t)
	w.after = barge(c)
	drivertest.Release(t, e, c.head) // grants the lock to the whole crowd
	c.want(t, "holders", n)

	c = fresh()
	heir := c.heir(t)
	e, w = s.watch(t)
	w.after = barge(c)
	drivertest.Release(t, e, c.head) // has dead places to remove
	drivertest.Granted(t, e, heir)
	if len(w.calls) < 4 {
		t.Fatalf("%d calls: nothing was done in parts", len(w.calls))
	}

	// The requests that may come next after the sender of a release died, while the release was
	// granting the lock to all waiters.
	next := map[string]func(c *crowd){
		"the same again": func(c *crowd) {
			if err := s.engine.Release(t.Context(), release); err != driver.ErrLost {
				t.Errorf("a repeat of the release: %v, want ErrLost", err)
			}
		},
		"one who waits": func(c *crowd) {
			if r := refreshed(t, s.engine, c.reqs[n-1])[0]; r.Err != nil || r.Outcome != driver.Granted {
				t.Errorf("refresh: %+v, want a grant", r)
			}
		},
		"a newcomer": func(c *crowd) {
			req := drivertest.Request(c.name, time.Minute)
			req.Mode = lockinfo.Shared
			token := drivertest.Granted(t, s.engine, req)
			for _, r := range refreshed(t, s.engine, c.reqs[n-1]) {
				if r.Err != nil || r.Token >= token {
					t.Errorf("the last of the queue: %+v, and a newcomer had the token %d", r, token)
				}
			}
			drivertest.Release(t, s.engine, req)
		},
		"a newcomer who cannot share": func(c *crowd) { drivertest.Held(t, s.engine, drivertest.Request(c.name, time.Minute)) },
	}
	for who, comes := range next {
		c := fresh()
		release = driver.ReleaseRequest{Name: c.name, LeaseID: c.head.LeaseID}
		e, w := s.watch(t)
		drivertest.Held(t, e, drivertest.Request(c.name, time.Minute)) // the engine now knows of contention
		w.limit = len(w.calls) + 1
		err := e.Release(t.Context(), release)
		if err == nil || err == driver.ErrLost {
			t.Errorf("half of a release: %v, want an unknown outcome", err)
		}
		if got := c.count(t, "holders"); got == 0 || got == n {
			t.Fatalf("%d of %d were granted the lock by half of a release", got, n)
		}
		if comes(c); c.count(t, "holders") != n {
			t.Errorf("%s came next, and %d of %d have the lock", who, c.count(t, "holders"), n)
		}
	}

	// The sender of a complete dies: a repeat removes all places with Once, including places behind
	// others.
	c = fresh()
	e, w = s.watch(t)
	w.limit = 1
	complete := driver.CompleteRequest{Name: c.name, LeaseID: c.head.LeaseID, Retention: time.Minute}
	if err := e.Complete(t.Context(), complete); err == nil || err == driver.ErrLost {
		t.Errorf("half of a complete: %v, want an unknown outcome", err)
	}
	if err := s.engine.Complete(t.Context(), complete); err != nil {
		t.Errorf("the same again: %v", err)
	}
	c.want(t, "queue", 0)
	c.want(t, "holders", n/2)

	// The sender of a downgrade dies.
	c = fresh()
	e, w = s.watch(t)
	w.limit = 1
	downgrade := driver.DowngradeRequest{Name: c.name, LeaseID: c.head.LeaseID}
	if err := e.Downgrade(t.Context(), downgrade); err == nil || err == driver.ErrLost {
		t.Errorf("half of a downgrade: %v, want an unknown outcome", err)
	}
	if err := s.engine.Downgrade(t.Context(), downgrade); err != nil {
		t.Errorf("the same again: %v", err)
	}
	c.want(t, "holders", n+1)
}
