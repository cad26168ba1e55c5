package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A diary records what calls of Every do, in the virtual time of a test, which begins at midnight.
type diary struct {
	t      *testing.T
	mu     sync.Mutex // guards the rest
	lines  []string
	failed []error
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// failures returns the errors that Failed received.
func (d *diary) failures() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.failed)
}

func (d *diary) want(lines ...string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.lines, lines) {
		d.t.Errorf("the diary says\n\t%s\nwant\n\t%s", strings.Join(d.lines, "\n\t"), strings.Join(lines, "\n\t"))
	}
	d.lines = nil
}

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

// every starts a call of Every. stop ends the call and returns its error.
func (d *diary) every(c *holdfast.Client, schedule holdfast.Schedule, opts *holdfast.EveryOptions, fn func(context.Context, holdfast.EveryRun) error) (stop func() error) {
	d.t.Helper()
	if opts == nil {
		opts = &holdfast.EveryOptions{}
	}
	o := *opts
	o.Missed = func(m holdfast.MissedRuns) {
		d.note("missed %d: %s to %s %s", m.Count, clock(m.First), clock(m.Last), m.Err)
	}
	o.Failed = func(err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.failed = append(d.failed, err)
	}
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Every(ctx, "job", schedule, &o, fn) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-done
	}
}

// run returns an fn that records its run, lasts for took, and returns err.
func (d *diary) run(took time.Duration, err error) func(context.Context, holdfast.EveryRun) error {
	return func(ctx context.Context, run holdfast.EveryRun) error {
		d.note("%s run of %s, attempt %d", clock(time.Now()), clock(run.Scheduled), run.Attempt)
		if !ask.Sleep(ctx, took) {
			return context.Cause(ctx)
		}
		return err
	}
}

// status returns the state of the schedule.
func (d *diary) status(c *holdfast.Client) holdfast.ScheduleState {
	d.t.Helper()
	s, err := c.Records().Schedule(d.t.Context(), "job")
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

var minutely = holdfast.Periodic(time.Unix(0, 0), time.Minute)

// TestEvery checks that a run receives its scheduled time, the previous run's, and its key, and
// that Every ends with its context.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		var events []holdfast.Event
		c := newClient(t, engine, &holdfast.Options{Observer: func(e holdfast.Event) {
			if e.Kind == holdfast.RunDone {
				events = append(events, e)
			}
		}})
		time.Sleep(30*time.Second + time.Millisecond)
		var runs []holdfast.EveryRun
		stop := d.every(c, minutely, nil, func(ctx context.Context, run holdfast.EveryRun) error {
			runs = append(runs, run)
			l, ok := holdfast.LeaseFromContext(ctx)
			expect(t, ok && l == run.Lease && l.Valid() && l.Name() == "job", "the context belongs to %v", l)
			time.Sleep(time.Second)
			return nil
		})
		time.Sleep(3 * time.Minute)
		err := stop()
		expect(t, errors.Is(err, context.Canceled) && err.Error() == `holdfast: every "job": context canceled`, "%v", err)
		synctest.Wait() // the Observer receives all events
		expect(t, len(runs) == 3 && runs[0].Previous.IsZero() && runs[2].Previous.Equal(runs[1].Scheduled) && runs[2].Key() == "job@2000-01-01T00:03Z" && runs[2].Lease.Token() > runs[1].Lease.Token(),
			"runs: %+v", runs)
		expect(t, len(events) == 3 && events[2].Scheduled.Equal(runs[2].Scheduled) && events[2].Took == time.Second && events[2].Name == "job", "events: %+v", events)
		s := d.status(c)
		expect(t, s.Done == 3 && s.Missed == 0 && s.Last.Scheduled.Equal(runs[2].Scheduled) && s.Last.Took == time.Second && s.Next.Equal(runs[2].Scheduled.Add(time.Minute)) && !s.Led && !s.Running,
			"status: %+v", s)
		nothingLeft(t, engine, "job", "job@schedule")
	})
}

// TestEveryTriesAgain checks that a failed run is retried after growing pauses, by any replica,
// until the next run is due, it is too late, or no attempts are left. Then it is missed, and Every
// continues.
func TestEveryTriesAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		opts holdfast.EveryOptions
		want []string
	}{
		{"until the next is due", holdfast.EveryOptions{}, []string{
			"00:01:00 run of 00:01:00, attempt 1", "00:01:01 run of 00:01:00, attempt 2", "00:01:03 run of 00:01:00, attempt 3",
			"00:01:07 run of 00:01:00, attempt 4", "00:01:15 run of 00:01:00, attempt 5", "00:01:31 run of 00:01:00, attempt 6",
			"missed 1: 00:01:00 to 00:01:00 broken", "00:02:00 run of 00:02:00, attempt 1",
		}},
		{"until it is too late", holdfast.EveryOptions{StartWithin: 5 * time.Second}, []string{
			"00:01:00 run of 00:01:00, attempt 1", "00:01:01 run of 00:01:00, attempt 2", "00:01:03 run of 00:01:00, attempt 3",
			"missed 1: 00:01:00 to 00:01:00 broken", "00:02:00 run of 00:02:00, attempt 1",
		}},
		{"twice", holdfast.EveryOptions{MaxAttempts: 2}, []string{
			"00:01:00 run of 00:01:00, attempt 1", "00:01:01 run of 00:01:00, attempt 2",
			"missed 1: 00:01:00 to 00:01:00 broken", "00:02:00 run of 00:02:00, attempt 1",
		}},
		{"once, and each", holdfast.EveryOptions{MaxAttempts: 1, CatchUp: true}, []string{
			"00:01:00 run of 00:01:00, attempt 1",
			"missed 1: 00:01:00 to 00:01:00 broken", "00:02:00 run of 00:02:00, attempt 1", "missed 1: 00:02:00 to 00:02:00 broken",
		}},
	} {
		runInBubble(t, c.name, func(t *testing.T) {
			d, engine := &diary{t: t}, newFaulty()
			fails := d.run(0, errors.New("broken"))
			client := newClient(t, engine, nil)
			stops := []func() error{d.every(client, minutely, &c.opts, fails), d.every(newClient(t, engine, nil), minutely, &c.opts, fails)}
			time.Sleep(2*time.Minute + 500*time.Millisecond)
			d.want(c.want...)
			s := d.status(client)
			if s.Done != 0 || s.Begun == nil && c.opts.MaxAttempts != 1 || s.Begun != nil && (s.Begun.Err != "broken" || s.Begun.Attempts != 1 || s.Begun.Open) {
				t.Errorf("status: %+v", s)
			}
			failed := d.failures()
			expect(t, len(failed) != 0 && failed[0].Error() == `holdfast: every "job": run of 2000-01-01T00:01Z: broken`, "failed: %v", failed)
			for _, stop := range stops {
				_ = stop()
			}
		})
	}
}

// TestEveryMissed checks that times that passed without a replica are reported afterwards and
// stored. The options decide which of them are still run.
func TestEveryMissed(t *testing.T) {
	for _, c := range []struct {
		name string
		opts holdfast.EveryOptions
		want []string
	}{
		{"skip", holdfast.EveryOptions{}, []string{"missed 3: 00:02:00 to 00:04:00 ", "00:05:00 run of 00:05:00, attempt 1"}},
		{"the last one", holdfast.EveryOptions{StartWithin: time.Hour}, []string{"missed 2: 00:02:00 to 00:03:00 ", "00:04:30 run of 00:04:00, attempt 1", "00:05:00 run of 00:05:00, attempt 1"}},
		{"each", holdfast.EveryOptions{StartWithin: time.Hour, CatchUp: true}, []string{
			"00:04:30 run of 00:02:00, attempt 1", "00:04:30 run of 00:03:00, attempt 1", "00:04:30 run of 00:04:00, attempt 1", "00:05:00 run of 00:05:00, attempt 1",
		}},
		{"each, but not too late", holdfast.EveryOptions{StartWithin: 95 * time.Second, CatchUp: true}, []string{
			"missed 1: 00:02:00 to 00:02:00 ", "00:04:30 run of 00:03:00, attempt 1", "00:04:30 run of 00:04:00, attempt 1", "00:05:00 run of 00:05:00, attempt 1",
		}},
	} {
		runInBubble(t, c.name, func(t *testing.T) {
			d, client := &diary{t: t}, newClient(t, newFaulty(), nil)
			if c.name == "skip" {
				c.opts.StartWithin = 25 * time.Second
			}
			stop := d.every(client, minutely, &c.opts, d.run(0, nil))
			time.Sleep(70 * time.Second)
			d.want("00:01:00 run of 00:01:00, attempt 1")
			_ = stop()
			time.Sleep(200 * time.Second) // 00:04:30
			stop = d.every(client, minutely, &c.opts, d.run(0, nil))
			time.Sleep(31 * time.Second)
			_ = stop()
			d.want(c.want...)
			if s := d.status(client); s.Done+s.Missed != 5 || s.Missed > 0 && len(s.Gaps) != 1 {
				t.Errorf("status: %+v", s)
			}
		})
	}
}

// TestEveryRunsNeverOverlap checks that a run that takes longer than the period delays the next.
// Times that pass meanwhile are missed and reported.
func TestEveryRunsNeverOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		long := d.run(150*time.Second, nil)
		stops := []func() error{d.every(newClient(t, engine, nil), minutely, nil, long), d.every(newClient(t, engine, nil), minutely, nil, long)}
		time.Sleep(6*time.Minute + 50*time.Second)
		d.want("00:01:00 run of 00:01:00, attempt 1", "missed 1: 00:02:00 to 00:02:00 ", "00:03:30 run of 00:03:00, attempt 1",
			"missed 2: 00:04:00 to 00:05:00 ", "00:06:00 run of 00:06:00, attempt 1")
		for _, stop := range stops {
			_ = stop()
		}
	})
}

// TestEveryStopInARun checks that after a replica stops during a run another replica runs it at
// once. That does not count as a failed attempt.
func TestEveryStopInARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		first := d.every(newClient(t, engine, nil), minutely, nil, d.run(10*time.Second, nil))
		second := d.every(newClient(t, engine, nil), minutely, nil, d.run(time.Second, nil))
		time.Sleep(65 * time.Second)
		_ = first()
		time.Sleep(10 * time.Second)
		_ = second()
		d.want("00:01:00 run of 00:01:00, attempt 1", "00:01:05 run of 00:01:00, attempt 1")
	})
}

// TestEveryPanics checks that a panic of fn continues in the caller after it is stored as a failed
// attempt, so that the next replica waits before its attempt.
func TestEveryPanics(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, client *holdfast.Client) {
		d := &diary{t: t}
		panicked := make(chan any)
		go func() {
			defer func() { panicked <- recover() }()
			_ = client.Every(t.Context(), "job", minutely, nil, func(context.Context, holdfast.EveryRun) error { panic("boom") })
		}()
		synctest.Wait()
		stop := d.every(newClient(t, engine, nil), minutely, nil, d.run(0, nil))
		p := <-panicked
		expect(t, p == "boom", "recovered %v", p)
		s := d.status(client)
		expect(t, s.Begun != nil && strings.Contains(s.Begun.Err, "panicked"), "status: %+v", s)
		time.Sleep(10 * time.Second)
		d.want("00:01:01 run of 00:01:00, attempt 2")
		_ = stop()
		nothingLeft(t, engine, "job", "job@schedule")
	})
}

// TestEveryLosesARun checks that a lost lease ends the context of the run, and that the run is
// retried. The first attempt stores no result even if it ignores its context.
func TestEveryLosesARun(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, client *holdfast.Client) {
		d := &diary{t: t}
		runs := 0
		stop := d.every(client, minutely, nil, func(ctx context.Context, run holdfast.EveryRun) error {
			if runs++; runs == 1 {
				<-ctx.Done()
				d.note("%s lost: %t", clock(time.Now()), errors.Is(context.Cause(ctx), holdfast.ErrBroken))
				return nil
			}
			return d.run(0, nil)(ctx, run)
		})
		time.Sleep(65 * time.Second)
		_, err := client.Break(t.Context(), "job", &holdfast.BreakOptions{Author: "ada", Reason: "a test"})
		must(t, err)
		time.Sleep(10 * time.Second)
		d.want("00:01:05 lost: true", "00:01:06 run of 00:01:00, attempt 2")
		if s, failed := d.status(client), d.failures(); s.Done != 1 || len(failed) != 1 || !errors.Is(failed[0], holdfast.ErrBroken) {
			t.Errorf("status %+v, failed %v", s, failed)
		}
		_ = stop()
	})
}

// TestEveryCountsWhatEndsWithoutAWord checks that an attempt that cannot store its result counts as
// failed, because its beginning is stored before it runs. With two attempts there is no third, and
// the pause applies. No replies are lost here: they could lead to attempts that count but never
// run.
func TestEveryCountsWhatEndsWithoutAWord(t *testing.T) {
	lost := func(ctx context.Context) { <-ctx.Done() }
	for name, c := range map[string]struct {
		opts holdfast.EveryOptions
		end  func(f *attempts, r *attempter) func(context.Context) // ends a run
	}{
		"MaxHold":         {holdfast.EveryOptions{MaxHold: 300 * time.Millisecond}, func(*attempts, *attempter) func(context.Context) { return lost }},
		"the lock broken": {holdfast.EveryOptions{}, func(f *attempts, _ *attempter) func(context.Context) { return f.breaks }},
		"a kill":          {holdfast.EveryOptions{}, func(f *attempts, r *attempter) func(context.Context) { return func(context.Context) { f.kill(r) } }},
		"its lease lost to an outage": {holdfast.EveryOptions{}, func(f *attempts, r *attempter) func(context.Context) {
			return func(ctx context.Context) {
				r.away.Store(true)
				<-ctx.Done()
				r.away.Store(false)
			}
		}},
	} {
		runInBubble(t, name, func(t *testing.T) {
			c.opts.MaxAttempts = 2
			f := newAttempts(t, minutely, c.opts, rand.New(rand.NewPCG(1, 1)))
			f.work = func(ctx context.Context, r *attempter, _ holdfast.EveryRun) error {
				c.end(f, r)(ctx)
				return context.Cause(ctx)
			}
			for range 3 {
				f.start(0)
			}
			time.Sleep(3*time.Minute - time.Second)
			f.stop()
			f.check()
			for _, minute := range []time.Duration{1, 2} {
				got := len(f.begun[f.began.Add(minute*time.Minute).UTC()])
				expect(t, got == 2, "%d runs in minute %d, want 2: %v", got, minute, f.begun)
			}
			s, err := newClient(t, f.store, nil).Records().Schedule(t.Context(), "job")
			expect(t, err == nil && s.Missed == 2 && len(s.Gaps) == 2, "status %+v, %v; want both times missed", s, err)
		})
	}
}

// TestEveryBeginIsNeverConfirmed checks that an attempt whose beginning the store does not confirm
// counts but does not run. The time is then missed without a run, and the next one has all
// attempts.
func TestEveryBeginIsNeverConfirmed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, client *holdfast.Client) {
		d := &diary{t: t}
		stop := d.every(client, minutely, &holdfast.EveryOptions{MaxAttempts: 2}, d.run(0, nil))
		time.Sleep(30 * time.Second)
		engine.set(nil, fail(errLink, "complete"))
		time.Sleep(59 * time.Second)
		engine.heal()
		time.Sleep(40 * time.Second)
		_ = stop()
		d.want("00:02:00 run of 00:02:00, attempt 1")
		s := d.status(client)
		expect(t, s.Missed == 1 && s.Done == 1 && s.Gaps[0].Err == "attempt 2 left no result: its process died, or it lost its lease", "status %+v", s)
	})
}

// TestEveryClockIsFarAhead checks that a replica whose clock is hours ahead of the store's runs
// nothing, and does not mark times as missed.
func TestEveryClockIsFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		ahead := &holdfast.EveryOptions{}
		holdfast.SetEveryClock(ahead, func() time.Time { return time.Now().Add(3 * time.Hour) })
		wrong := d.every(newClient(t, engine, nil), minutely, ahead, d.run(0, errors.New("it must not run")))
		right := d.every(newClient(t, engine, nil), minutely, nil, d.run(0, nil))
		time.Sleep(2*time.Minute + 30*time.Second)
		d.want("00:01:00 run of 00:01:00, attempt 1", "00:02:00 run of 00:02:00, attempt 1")
		failed := d.failures()
		expect(t, len(failed) != 0 && strings.Contains(failed[0].Error(), "the clock of this host is ahead of the store's by 3h: set it right"),
			"failed: %v", failed)
		_, _ = wrong(), right()
	})
}
