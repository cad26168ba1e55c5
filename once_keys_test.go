package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestScheduledWithClocksThatAreOff checks that replicas whose clocks are off by less than half of
// the period run each scheduled time once, although their timers fire at different times.
func TestScheduledWithClocksThatAreOff(t *testing.T) {
	for _, every := range []time.Duration{2 * time.Second, time.Minute, 15 * time.Minute, 24 * time.Hour} {
		runInBubble(t, every.String(), func(t *testing.T) {
			engine := newFaulty()
			start := time.Now().Truncate(time.Second)
			const times = 10
			var mu sync.Mutex
			runs := map[time.Time]int{}
			var wg sync.WaitGroup
			for replica := range 8 {
				c := newClient(t, engine, nil)
				off := time.Duration(float64(every) * 0.49 * (float64(replica)/3.5 - 1)) // -0.49 to 0.49 of every
				wg.Go(func() {
					for n := 1; n <= times; n++ {
						// The timer of this replica fires when its own clock shows the time.
						time.Sleep(time.Until(start.Add(time.Duration(n)*every - off)))
						clock := time.Now().Add(off + time.Duration(rand.N(int64(every/100)))) // timers fire late
						run := holdfast.ScheduledTime(clock, start, every)
						opts := &holdfast.OnceOptions{Scheduled: run, Await: holdfast.Forever, Retention: 2 * every}
						r, err := c.Once(t.Context(), "report", opts, func(context.Context, *holdfast.Lease) ([]byte, error) {
							mu.Lock()
							defer mu.Unlock()
							runs[run]++
							return fmt.Append(nil, run.Unix()), nil
						})
						expect(t, err == nil && string(r.Value) == fmt.Sprint(start.Add(time.Duration(n)*every).Unix()),
							"replica %d, run %d: %+v, %v", replica, n, r, err)
					}
				})
			}
			wg.Wait()
			expect(t, len(runs) == times, "%d runs, want %d", len(runs), times)
			for run, n := range runs {
				expect(t, n == 1, "run %s ran %d times", run, n)
			}
		})
	}
}

func TestScheduledTime(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	start := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for _, c := range []struct {
		now   time.Time
		start time.Time
		every time.Duration
		want  time.Time
	}{
		{start, start, time.Minute, start},
		{start.Add(29*time.Second + 999_999_999), start, time.Minute, start},
		{start.Add(30 * time.Second), start, time.Minute, start.Add(time.Minute)},
		{start.Add(-30 * time.Second), start, time.Minute, start},
		{start.Add(-30*time.Second - 1), start, time.Minute, start.Add(-time.Minute)},
		{start.Add(-90 * time.Second), start, time.Minute, start.Add(-time.Minute)},
		{start.Add(-10 * time.Minute), start, time.Minute, start.Add(-10 * time.Minute)},
		{start.Add(3*day + 11*time.Hour), start, day, start.Add(3 * day)},
		// the middle of an odd number of seconds has half a second
		{start.Add(499 * time.Millisecond), start, time.Second, start},
		{start.Add(500 * time.Millisecond), start, time.Second, start.Add(time.Second)},
		{start.Add(-500 * time.Millisecond), start, time.Second, start},
		{start.Add(-501 * time.Millisecond), start, time.Second, start.Add(-time.Second)},
		{start.Add(4 * time.Second), start, 7 * time.Second, start.Add(7 * time.Second)},
		{start.Add(3499 * time.Millisecond), start, 7 * time.Second, start},
		// the time zone does not matter
		{start.In(berlin).Add(time.Second), start, time.Hour, start},
		{start.Add(time.Second), start.In(berlin), time.Hour, start},
		// a start in year 1, or farther away than a Duration can express
		{start.Add(time.Second), time.Time{}, time.Hour, start},
		{start.Add(31 * time.Second), time.Time{}, time.Minute, start.Add(time.Minute)},
		{start, start.AddDate(-400, 0, 0), day, start},
		{start, start.AddDate(3000, 0, 0), time.Hour, start},
	} {
		got := holdfast.ScheduledTime(c.now, c.start, c.every)
		expect(t, got.Equal(c.want) && got.Location() == c.start.Location() && got.Nanosecond() == 0,
			"ScheduledTime(%s, %s, %s) = %s, want %s", c.now, c.start, c.every, got, c.want)
	}
	// The monotonic clock has no effect: the result is wall time.
	now := time.Now()
	if holdfast.ScheduledTime(now, now.Truncate(time.Hour), time.Hour) != holdfast.ScheduledTime(now.Round(0), now.Truncate(time.Hour), time.Hour) {
		t.Error("the monotonic clock moves the scheduled time")
	}
}

// FuzzScheduledTime checks that the result is at most half a period away, and a multiple of the
// period from the start.
func FuzzScheduledTime(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0), int64(1))
	f.Add(int64(1_795_247_753), int64(999_999_999), int64(-62135596800), int64(7))
	f.Fuzz(func(t *testing.T, now, nanos, start, every int64) {
		const limit = 1 << 40 // about 35,000 years
		if now < -limit || now > limit || start < -limit || start > limit || every < 1 || every > 1<<32 {
			return
		}
		at, from := time.Unix(now, nanos&(1<<29-1)), time.Unix(start, 0)
		run := holdfast.ScheduledTime(at, from, time.Duration(every)*time.Second)
		expect(t, (run.Unix()-start)%every == 0 && run.Nanosecond() == 0, "%s is not a run of every %d s from %s", run, every, from)
		d := 2 * at.Sub(run)
		expect(t, d < time.Duration(every)*time.Second && d >= -time.Duration(every)*time.Second, "%s is %s away from %s, every %d s", run, at.Sub(run), at, every)
	})
}

func TestScheduledKeys(t *testing.T) {
	for _, c := range []struct {
		scheduled time.Time
		want      string
	}{
		{time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC), "k@2026-11-21T03:00Z"},
		{time.Date(2026, 11, 21, 3, 0, 30, 0, time.UTC), "k@2026-11-21T03:00:30Z"},
		{time.Date(2026, 11, 21, 4, 0, 0, 0, time.FixedZone("CET", 3600)), "k@2026-11-21T03:00Z"},
		{time.Date(2026, 11, 20, 21, 45, 0, 0, time.FixedZone("", -5*3600-900)), "k@2026-11-21T03:00Z"},
		{time.Unix(0, 0), "k@1970-01-01T00:00Z"},
		// times in the hour that occurs twice when summer time ends differ
		{time.Date(2026, 10, 25, 2, 30, 0, 0, time.FixedZone("CEST", 7200)), "k@2026-10-25T00:30Z"},
		{time.Date(2026, 10, 25, 2, 30, 0, 0, time.FixedZone("CET", 3600)), "k@2026-10-25T01:30Z"},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl := newClient(t, newFaulty(), nil)
			for range 2 {
				if _, err := cl.Once(t.Context(), "k", &holdfast.OnceOptions{Scheduled: c.scheduled}, func(_ context.Context, l *holdfast.Lease) ([]byte, error) {
					expect(t, l.Name() == c.want, "%s: key %q, want %q", c.scheduled, l.Name(), c.want)
					return nil, nil
				}); err != nil {
					t.Error(err)
				}
			}
			if s, err := cl.Records().Once(t.Context(), c.want); s.State != holdfast.OnceDone {
				t.Errorf("%s: %s (%v)", c.want, s.State, err)
			}
		})
	}
}

func TestScheduledRefusesAClocksTime(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		for _, scheduled := range []time.Time{time.Unix(0, 1), time.Unix(1_795_247_753, 999_999_999)} {
			_, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{Scheduled: scheduled}, mustNotRun(t).fn)
			wantErr(t, err, holdfast.ErrInvalid)
			if err != nil && !strings.Contains(err.Error(), "see ScheduledTime") {
				t.Errorf("%v does not say what to do", err)
			}
		}
		expect(t, len(engine.calls) == 0, "requests were sent: %v", engine.calls)
	})
}

// TestScheduledRetention checks that a replica that is late by more than Retention runs the work
// again, so Retention must be longer.
func TestScheduledRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		run := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
		j := returns("x")
		for _, late := range []time.Duration{0, 59 * time.Minute, 2 * time.Minute} {
			time.Sleep(late)
			_, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{Scheduled: run, Retention: time.Hour}, j.fn)
			expect(t, err == nil, "%v", err)
		}
		expect(t, j.runs == 2, "%d runs, want 2", j.runs)
	})
}

// TestScheduleState checks that the state contains who leads, who stands by and who runs, between
// runs, during a run, and after the end.
func TestScheduleState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		onlooker := newClient(t, engine, nil)
		if s := d.status(onlooker); !s.Began.IsZero() || s.Led || s.Running {
			t.Errorf("a schedule that never was: %+v", s)
		}
		began := time.Now()
		var stops []func() error
		for _, host := range []string{"web-1", "web-2", "web-3"} {
			c := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: host}})
			stops = append(stops, d.every(c, minutely, nil, d.run(10*time.Second, nil)))
		}
		hosts := func(holders []holdfast.Holder) (s string) {
			for _, h := range holders {
				s += h.Host + " "
			}
			return s
		}
		time.Sleep(30 * time.Second)
		s := d.status(onlooker)
		expect(t, s.Led && s.Leader.Host == "web-1" && hosts(s.StandingBy) == "web-2 web-3 " && !s.Running && s.Began.Equal(began) && s.Next.Equal(began.Add(time.Minute)),
			"before the first run: %+v", s)
		time.Sleep(35 * time.Second)
		s = d.status(onlooker)
		expect(t, s.Running && s.Runner.Host == "web-1" && s.Runner.Once && s.RunningFor == 5*time.Second && s.Led && s.Done == 0, "in a run: %+v", s)
		time.Sleep(30 * time.Second)
		s = d.status(onlooker)
		expect(t, !s.Running && s.Done == 1 && s.Last.Took == 10*time.Second && s.Last.Started.Equal(began.Add(time.Minute)) && s.Last.By == "web-1" && s.Last.Attempt == 1,
			"after a run: %+v", s)
		_ = stops[0]()
		s = d.status(onlooker)
		expect(t, s.Leader.Host == "web-2" && hosts(s.StandingBy) == "web-3 ", "after the leader's end: %+v", s)
		_, _ = stops[1](), stops[2]()
		if s = d.status(onlooker); s.Led || s.Done != 1 {
			t.Errorf("after the end: %+v", s)
		}
		_, err := onlooker.Records().Schedule(t.Context(), "")
		expect(t, errors.Is(err, holdfast.ErrInvalid), "%v", err)
	})
}

// prints are pairs of fingerprints of an earlier and a later request.
var prints = []struct {
	earlier, later string
	differ         bool
}{
	{"a", "a", false},
	{"a", "b", true},
	{"a", "A", true},
	{"a", "a ", true},
	{"a", "", false}, // a request without one is not compared
	{"", "b", false},
	{"", "", false},
}

func TestOnceFingerprintOfDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newFaulty(), nil)
		for _, p := range prints {
			once(t, c, &holdfast.OnceOptions{Fingerprint: p.earlier}, returns("kept"))
			for _, await := range []time.Duration{0, holdfast.Forever} {
				r, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{Fingerprint: p.later, Await: await}, mustNotRun(t).fn)
				checkFingerprint(t, p.differ, r, err)
			}
			c.Records().Forget(t.Context(), "k")
		}
	})
}

func checkFingerprint(t testing.TB, differ bool, r holdfast.OnceResult, err error) {
	t.Helper()
	switch {
	case !differ:
		expect(t, err == nil && r.Replayed && string(r.Value) == "kept", "%+v, %v; want the result", r, err)
	default:
		wantErr(t, err, holdfast.ErrFingerprint)
		expect(t, r.Value == nil && err.Error() == `holdfast: once "k": the key was used for another request`, "%+v, %v; want no result", r, err)
	}
}

func TestOnceFingerprintOfWorkInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c, other := newClient(t, engine, nil), newClient(t, engine, nil)
		for _, p := range prints {
			once(t, c, &holdfast.OnceOptions{Fingerprint: p.earlier}, newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
				start := time.Now()
				want := holdfast.ErrInProgress
				if p.differ {
					want = holdfast.ErrFingerprint
				}
				wantErr(t, errOf(other.Once(bounded(t), "k", &holdfast.OnceOptions{Fingerprint: p.later}, mustNotRun(t).fn)), want)
				if p.differ {
					// Waiting for another request's result would be pointless.
					wantErr(t, errOf(other.Once(bounded(t), "k", &holdfast.OnceOptions{Fingerprint: p.later, Await: holdfast.Forever}, mustNotRun(t).fn)), want)
				}
				took := time.Since(start)
				expect(t, took == 0, "answered after %s, want at once", took)
				synctest.Wait()
				lock, _ := engine.Engine.Inspect(t.Context(), "k")
				expect(t, len(lock.Queue) == 0, "a place stayed behind")
				return nil, nil
			}))
			c.Records().Forget(t.Context(), "k")
		}
	})
}

// TestOnceFingerprintChangesWhileWaiting checks a waiter while work with another fingerprint takes
// the place of the work that it waits for: if that succeeds the waiter returns ErrFingerprint, and
// if it fails the waiter runs its own work.
func TestOnceFingerprintChangesWhileWaiting(t *testing.T) {
	for _, fails := range []bool{false, true} {
		inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			release := foreign(t, engine, "k", time.Hour) // a holder without a fingerprint
			go c.Once(t.Context(), "k", &holdfast.OnceOptions{Fingerprint: "b", Await: holdfast.Forever}, func(context.Context, *holdfast.Lease) ([]byte, error) {
				time.Sleep(time.Second)
				if fails {
					return nil, errLink
				}
				return []byte("kept"), nil
			})
			synctest.Wait()
			time.AfterFunc(time.Second, release)
			j := returns("mine")
			r, err := c.Once(t.Context(), "k", &holdfast.OnceOptions{Fingerprint: "a", Await: holdfast.Forever}, j.fn)
			if fails {
				expect(t, err == nil && !r.Replayed && j.runs == 1, "%+v, %v; want a run", r, err)
				return
			}
			checkFingerprint(t, true, r, err)
			expect(t, j.runs == 0, "the work ran, too")
		})
	}
}

// An unrecorded engine has the methods of a driver.Recorder without the capability.
type unrecorded struct{ *faulty }

func (unrecorded) Capabilities() driver.Capabilities { return driver.Capabilities{Queue: true} }

// TestOnceNeedsRecords checks that Once without the capability fails before the work starts.
func TestOnceNeedsRecords(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, unrecorded{engine}, nil)
	_, err := c.Once(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) ([]byte, error) {
		t.Error("the work was started")
		return nil, nil
	})
	wantErr(t, err, holdfast.ErrUnsupported)
	n := engine.count("acquire")
	expect(t, n == 0, "%d acquires, want none", n)
}

// TestOnceBeginRefusesBadInput checks that invalid arguments are refused without a request.
func TestOnceBeginRefusesBadInput(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	wantErr(t, errOf(c.OnceBegin(t.Context(), "", nil)), holdfast.ErrInvalid)
	wantErr(t, errOf(c.OnceBegin(t.Context(), "k", &holdfast.OnceOptions{MaxResult: -1})), holdfast.ErrInvalid)
	for _, handle := range []holdfast.Handle{
		{}, holdfast.NewHandle("k", "0", 1, holdfast.Exclusive), holdfast.NewHandle("k", lockinfo.NewLeaseID(), 1, holdfast.Shared),
	} {
		wantErr(t, errOf(c.OnceAdopt(t.Context(), handle, nil)), holdfast.ErrInvalid)
	}
	wantErr(t, errOf(newClient(t, plain{engine}, nil).OnceBegin(t.Context(), "k", nil)), holdfast.ErrUnsupported)
	expect(t, len(engine.calls) == 0, "requests %v", engine.calls)
}
