package holdfast_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A clock that is set forward makes a leader look at once, or within ten seconds; one that
// is set back makes it wait, and runs nothing twice.
func TestEveryClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := &diary{t: t}, newClient(t, newFaulty(), nil)
		var step atomic.Int64
		opts := &holdfast.EveryOptions{}
		holdfast.SetEveryClock(opts, func() time.Time { return time.Now().Add(time.Duration(step.Load())) })
		stop := d.every(client, minutely, opts, d.run(0, nil))
		time.Sleep(65 * time.Second)
		step.Store(int64(2*time.Minute + 30*time.Second)) // 00:03:35 by it
		time.Sleep(10 * time.Second)
		d.want("00:01:00 run of 00:01:00, attempt 1", "missed 1: 00:02:00 to 00:02:00 ", "00:01:10 run of 00:03:00, attempt 1")
		step.Store(int64(-time.Minute))
		time.Sleep(4 * time.Minute) // 00:05:15, and 00:04:15 by it
		d.want("00:05:00 run of 00:04:00, attempt 1")
		_ = stop()
	})
}

// Whoever is hours ahead of the store runs nothing, and settles nothing for the others.
func TestEveryClockIsFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		ahead := &holdfast.EveryOptions{}
		holdfast.SetEveryClock(ahead, func() time.Time { return time.Now().Add(3 * time.Hour) })
		wrong := d.every(newClient(t, engine, nil), minutely, ahead, d.run(0, errors.New("it must not run")))
		right := d.every(newClient(t, engine, nil), minutely, nil, d.run(0, nil))
		time.Sleep(2*time.Minute + 30*time.Second)
		d.want("00:01:00 run of 00:01:00, attempt 1", "00:02:00 run of 00:02:00, attempt 1")
		if failed := d.failures(); len(failed) == 0 || !strings.Contains(failed[0].Error(), "the clock of this host is ahead of the store's by 3h: set it right") {
			t.Errorf("failed: %v", failed)
		}
		_, _ = wrong(), right()
	})
}

// While the store is away nothing runs, or is silent: what can still be run is, and the
// rest is missed.
func TestEveryStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		stop := d.every(newClient(t, engine, &holdfast.Options{TTL: 10 * time.Second}), minutely, nil, d.run(0, nil))
		time.Sleep(90 * time.Second)
		away := func(context.Context, string) error { return errLink }
		engine.set(away, nil)
		time.Sleep(2*time.Minute + 50*time.Second) // 00:04:20
		engine.heal()
		time.Sleep(30 * time.Second)
		_ = stop()
		if len(d.lines) != 3 || d.lines[1] != "missed 2: 00:02:00 to 00:03:00 " || !strings.HasSuffix(d.lines[2], "run of 00:04:00, attempt 1") {
			t.Errorf("%q", d.lines)
		}

	})
}

// If the answer to the last request of a run is lost, it is repeated, and the run is
// done once. If none comes, the next leader finds out.
func TestEveryLostReplies(t *testing.T) {
	for name, lose := range map[string]int{"one": 1, "all": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, engine := &diary{t: t}, newFaulty()
				client := newClient(t, engine, nil)
				stop := d.every(client, minutely, nil, d.run(0, nil))
				left := lose
				engine.set(nil, func(_ context.Context, op string) error {
					if op == "complete" && left > 0 {
						left--
						return errLink
					}
					return nil
				})
				time.Sleep(90 * time.Second)
				engine.heal()
				time.Sleep(40 * time.Second)
				d.want("00:01:00 run of 00:01:00, attempt 1", "00:02:00 run of 00:02:00, attempt 1")
				if s := d.status(client); s.Done != 2 {
					t.Errorf("status %+v", s)
				}
				failed := d.failures()
				if unknown := len(failed) == 1 && errors.Is(failed[0], holdfast.ErrOutcomeUnknown); unknown != (lose > 1) || lose == 1 && len(failed) > 0 {
					t.Errorf("failed: %v", failed)
				}
				_ = stop()
			})
		})
	}
}

// A leader writes down again what the store has lost of the schedule: it neither runs
// twice what it has run, nor begins anew.
func TestEveryStoreForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		client := newClient(t, engine, nil)
		stop := d.every(client, minutely, nil, d.run(0, nil))
		time.Sleep(90 * time.Second)
		if found, err := client.OnceForget(t.Context(), "job"); !found || err != nil {
			t.Fatal(found, err)
		}
		time.Sleep(time.Minute)
		d.want("00:01:00 run of 00:01:00, attempt 1", "00:02:00 run of 00:02:00, attempt 1")
		if s := d.status(client); s.Done != 2 || s.Missed != 0 {
			t.Errorf("status %+v", s)
		}
		_ = stop()
	})
}

// A schedule that was changed is not late by its own standards; what was due by the old
// one is missed.
func TestEveryScheduleChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		client := newClient(t, engine, nil)
		hourly := holdfast.Periodic(time.Unix(0, 0), time.Hour)
		stop := d.every(client, hourly, nil, d.run(0, nil))
		time.Sleep(90 * time.Minute)
		_ = stop()
		stop = d.every(client, minutely, nil, d.run(0, nil))
		time.Sleep(100 * time.Second)
		_ = stop()
		d.want("01:00:00 run of 01:00:00, attempt 1", "01:31:00 run of 01:31:00, attempt 1")
		time.Sleep(10 * time.Minute)
		stop = d.every(client, hourly, nil, d.run(0, nil))
		time.Sleep(time.Hour)
		_ = stop()
		d.want("missed 1: 01:32:00 to 01:32:00 ", "02:00:00 run of 02:00:00, attempt 1")
	})
}

// A scheduled time costs three requests, however many replicas stand by. Renewals of the
// leader and refreshes of those who wait come on top, with or without a schedule.
func TestEveryCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, store, asked := &diary{t: t}, memlock.New(), map[string]int{}
		var mu sync.Mutex // guards asked
		count := func(_ context.Context, r hook.Request, send func() error) error {
			mu.Lock()
			asked[r.Method]++
			mu.Unlock()
			return send()
		}
		var stops []func() error
		for range 5 {
			engine := &hook.Engine{Forward: driver.Forward{Engine: store}, Each: count}
			stops = append(stops, d.every(newClient(t, engine, nil), minutely, nil, d.run(0, nil)))
		}
		time.Sleep(30 * time.Second)
		mu.Lock()
		clear(asked)
		mu.Unlock()
		time.Sleep(10 * time.Minute)
		for _, stop := range stops {
			defer func() { _ = stop() }()
		}
		mu.Lock()
		defer mu.Unlock()
		t.Logf("requests of 5 replicas for 10 scheduled times: %v", asked)
		delete(asked, "Extend")
		delete(asked, "Refresh")
		if want := map[string]int{"Acquire": 10, "Recall": 10, "Complete": 10}; !maps.Equal(asked, want) {
			t.Errorf("10 scheduled times took %v, want %v", asked, want)
		}
	})
}

// Two leaders run nothing twice: what is due is decided by what the store says under the
// lock, and not by who leads.
func TestEverySecondLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		client := newClient(t, engine, nil)
		first := d.every(newClient(t, engine, nil), minutely, nil, d.run(0, nil))
		time.Sleep(50 * time.Second)
		lock, err := engine.Engine.Inspect(t.Context(), "job@schedule")
		if err != nil || len(lock.Holders) != 1 {
			t.Fatal(lock, err)
		}
		// Its lease is taken away behind its back, and it does not hear of that for a TTL.
		if err := engine.Engine.Release(t.Context(), driver.ReleaseRequest{Name: "job@schedule", LeaseID: lock.Holders[0].LeaseID}); err != nil {
			t.Fatal(err)
		}
		engine.set(fail(errLink, "extend"), nil)
		second := d.every(newClient(t, engine, nil), minutely, nil, d.run(0, nil))
		time.Sleep(12 * time.Second)
		if got := engine.count("acquire"); got != 5 { // two leads, the record, and each has looked
			t.Errorf("%d acquires, want 5: both lead", got)
		}
		engine.heal()
		time.Sleep(time.Minute)
		d.want("00:01:00 run of 00:01:00, attempt 1", "00:02:00 run of 00:02:00, attempt 1")
		if s := d.status(client); s.Done != 2 {
			t.Errorf("status: %+v", s)
		}
		_, _ = first(), second()
	})
}
