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
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// A lead is one call of fn by Lead.
type lead struct {
	who         int
	token       uint64
	began, over time.Time
	cause       error // why its context ended; nil if fn returned first
}

// An office records the leads, and fails the test if two overlap while their contexts have not
// ended.
type office struct {
	t    *testing.T
	mu   sync.Mutex // guards the rest
	held int        // leads whose context has not ended
	all  []lead
}

// serve returns the fn of candidate who. It works until its context ends, or for works, takes stops
// to stop, and returns err.
func (o *office) serve(who int, works, stops time.Duration, err error) func(context.Context, *holdfast.Lease) error {
	return func(ctx context.Context, l *holdfast.Lease) error {
		o.mu.Lock()
		if o.held++; o.held > 1 {
			o.t.Errorf("%d candidates lead", o.held)
		}
		o.mu.Unlock()
		this := lead{who: who, token: l.Token(), began: time.Now()}
		if works > 0 {
			timer := time.NewTimer(works)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		this.cause = context.Cause(ctx)
		if lost := errors.Is(this.cause, holdfast.ErrLost); !lost { // the lock is held until fn returns
			time.Sleep(stops)
			stops = 0
		}
		o.mu.Lock()
		o.held--
		o.mu.Unlock()
		time.Sleep(stops)
		this.over = time.Now()
		o.mu.Lock()
		o.all = append(o.all, this)
		o.mu.Unlock()
		return err
	}
}

const forever = 1000 * time.Hour

var errWork = errors.New("the work has failed")

// stand starts a candidate, and returns once it leads or waits.
func stand(ctx context.Context, c *holdfast.Client, opts *holdfast.LeadOptions, fn func(context.Context, *holdfast.Lease) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.Lead(ctx, "a", opts, fn) }()
	synctest.Wait()
	return done
}

// TestLeadIsHandedOverWhenWorkHasStopped checks that a candidate whose context ends hands the lead
// over at once when its fn has returned, and not before.
func TestLeadIsHandedOverWhenWorkHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, o := newFaulty(), &office{t: t}
		var stop []context.CancelFunc
		var done []<-chan error
		for who := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			stop = append(stop, cancel)
			done = append(done, stand(ctx, newClient(t, engine, nil), nil, o.serve(who, forever, 3*time.Second, nil)))
		}
		for who := range 3 {
			time.Sleep(time.Hour)
			stop[who]()
			if err := <-done[who]; err != nil { // fn returned nil
				t.Errorf("candidate %d: %v", who, err)
			}
		}
		for who, l := range o.all {
			if l.who != who || l.cause != context.Canceled || who > 0 && (l.began != o.all[who-1].over || l.token <= o.all[who-1].token) {
				t.Errorf("leads %+v", o.all)
			}
		}
		nothingLeft(t, engine, "a")
	})
}

// TestLeadAgainAfterLoss checks that a candidate that loses the lead stops, and then becomes a
// candidate again.
func TestLeadAgainAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, o := newFaulty(), &office{t: t}
		ctx, cancel := context.WithCancel(t.Context())
		var failed []error
		opts := &holdfast.LeadOptions{Failed: func(err error, pause time.Duration) {
			failed = append(failed, err)
			expect(t, pause == 0, "a pause of %s after %v", pause, err)
		}}
		c := newClient(t, engine, nil)
		done := stand(ctx, c, opts, o.serve(0, forever, 2*time.Second, nil))
		for range 3 {
			time.Sleep(time.Minute)
			must(t, errOf(c.Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada", Reason: "a test"})))
		}
		time.Sleep(time.Minute)
		cancel()
		wantErr(t, <-done, nil)
		need(t, len(o.all) == 4 && len(failed) == 3 && errors.Is(failed[0], holdfast.ErrBroken), "%d leads, and received %v; want 4 and 3 breaks", len(o.all), failed)
		for i, l := range o.all[1:] {
			expect(t, l.began.Equal(o.all[i].over), "lead %d began %s after the end of the one before", i+1, l.began.Sub(o.all[i].over))
		}
	})
}

// TestLeadStalls checks that a leader without heartbeats loses the lead, and pauses.
func TestLeadStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, o := newFaulty(), &office{t: t}
		opts := &holdfast.LeadOptions{Acquire: holdfast.AcquireOptions{StallAfter: time.Minute}, Pause: 30 * time.Second}
		opts.Failed = func(err error, pause time.Duration) {
			wantErr(t, err, holdfast.ErrStalled)
			expect(t, pause >= 15*time.Second, "a pause of %s", pause)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		err := newClient(t, engine, nil).Lead(ctx, "a", opts, o.serve(0, forever, 0, errWork))
		wantErr(t, err, context.DeadlineExceeded)
		expect(t, len(o.all) >= 40 && len(o.all) <= 100, "%d leads", len(o.all))
	})
}

// TestLeadAndTheStore checks that Lead waits for a store that is unavailable, but returns if the
// store refuses or the options are invalid.
func TestLeadAndTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.set(fail(driver.ErrUnavailable, "acquire"), nil)
		calls := 0
		done := stand(t.Context(), newClient(t, engine, nil), nil, func(context.Context, *holdfast.Lease) error {
			calls++
			return nil
		})
		time.Sleep(10 * time.Minute)
		engine.heal()
		err := <-done
		expect(t, err == nil && calls == 1, "Lead: %v after %d calls", err, calls)
	})
	engine := newFaulty()
	c := newClient(t, engine, nil)
	not := func(context.Context, *holdfast.Lease) error {
		t.Error("it leads")
		return nil
	}
	l := mustAcquire(t, c, "mine", nil)
	wantErr(t, c.Lead(l.Context(), "mine", nil, not), holdfast.ErrDeadlock)
	calls := fmt.Sprint(engine.calls)
	for _, o := range []holdfast.LeadOptions{
		{Acquire: *shared}, {Acquire: holdfast.AcquireOptions{MaxWait: time.Second}}, {Acquire: holdfast.AcquireOptions{TTL: 1}},
		{Pause: -1}, {Pause: time.Hour, LongestPause: time.Minute},
	} {
		wantErr(t, c.Lead(t.Context(), "a", &o, not), holdfast.ErrInvalid)
	}
	wantErr(t, c.Lead(t.Context(), "", nil, not), holdfast.ErrInvalid)
	got := fmt.Sprint(engine.calls)
	expect(t, got == calls, "requests %s, before %s", got, calls)
	engine.set(fail(driver.ErrPermission, "acquire"), nil)
	wantErr(t, c.Lead(t.Context(), "a", nil, not), holdfast.ErrPermission)
	engine.heal()
	must(t, c.Close())
	wantErr(t, c.Lead(t.Context(), "a", nil, not), holdfast.ErrClosed)
}

// TestLeadEnds checks the error with which Lead ends.
func TestLeadEnds(t *testing.T) {
	type ending struct {
		err  error // of fn
		when string
		want []error
	}
	for name, e := range map[string]ending{
		"waiting":                {nil, "waiting", []error{context.Canceled}},
		"in a pause":             {errWork, "pause", []error{context.Canceled, errWork}},
		"leading":                {context.Canceled, "leading", []error{context.Canceled}},
		"leading, and fn failed": {errWork, "leading", []error{context.Canceled, errWork}},
		"client closed":          {errWork, "close", []error{holdfast.ErrClosed}},
	} {
		runInBubble(t, name, func(t *testing.T) {
			engine, o := newFaulty(), &office{t: t}
			c := newClient(t, engine, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			works := forever
			if e.when == "pause" {
				works = time.Second
			}
			if e.when == "waiting" {
				defer foreign(t, engine, "a", time.Hour)()
			}
			done := stand(ctx, c, &holdfast.LeadOptions{Pause: time.Hour, LongestPause: time.Hour}, o.serve(0, works, 0, e.err))
			time.Sleep(time.Minute)
			if e.when == "close" {
				must(t, c.Close())
			} else {
				cancel()
			}
			start := time.Now()
			err := <-done
			for _, want := range e.want {
				wantErr(t, err, want)
			}
			took := time.Since(start)
			expect(t, took == 0, "it took %s", took)
		})
	}
}

// TestLeadPanics checks that a panic of fn releases the lock and continues.
func TestLeadPanics(t *testing.T) {
	engine := newFaulty()
	c := newClient(t, engine, nil)
	defer func() {
		expect(t, recover() == "fn" && holders(t, engine, "a") == 0, "the panic is gone, or %d leases are not", holders(t, engine, "a"))
	}()
	_ = c.Lead(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) error { panic("fn") })
}

// TestLeadUnderFaults checks that under random faults no two candidates lead at a time, and each
// leads at some time.
func TestLeadUnderFaults(t *testing.T) {
	for seed := range 20 {
		synctest.Test(t, func(t *testing.T) {
			engine, o := newFaulty(), &office{t: t}
			engine.set(randomFaults, randomFaults)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var wg sync.WaitGroup
			for who := range 3 {
				c := newClient(t, newFaultyOn(engine.Engine), &holdfast.Options{TTL: 3 * time.Second})
				if who > 0 {
					c = newClient(t, engine, &holdfast.Options{TTL: 3 * time.Second})
				}
				r := rand.New(rand.NewPCG(uint64(seed), uint64(who)))
				wg.Go(func() {
					_ = c.Lead(ctx, "a", &holdfast.LeadOptions{LongestPause: 5 * time.Second}, func(ctx context.Context, l *holdfast.Lease) error {
						works := time.Duration(r.IntN(90)+1) * time.Second
						return o.serve(who, works, time.Duration(r.IntN(3))*time.Second, errWork)(ctx, l)
					})
				})
			}
			wg.Wait()
			expect(t, len(o.all) >= 20, "%d leads in an hour", len(o.all))
			led := map[int]int{}
			for _, l := range o.all {
				led[l.who]++
			}
			expect(t, len(led) == 3, "leads by candidate: %v", led)
		})
	}
}

// TestEverySecondLeader checks that two leaders run nothing twice: the record decides what is due.
func TestEverySecondLeader(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, client *holdfast.Client) {
		d := &diary{t: t}
		first := d.every(newClient(t, engine, nil), minutely, nil, d.run(0, nil))
		time.Sleep(50 * time.Second)
		lock, err := engine.Engine.Inspect(t.Context(), "job@schedule")
		if err != nil || len(lock.Holders) != 1 {
			t.Fatal(lock, err)
		}
		// The leader's lease is ended in the store, and the leader does not learn of that for a
		// TTL.
		must(t, engine.Engine.Release(t.Context(), driver.ReleaseRequest{Name: "job@schedule", LeaseID: lock.Holders[0].LeaseID}))
		engine.set(fail(errLink, "extend"), nil)
		second := d.every(newClient(t, engine, nil), minutely, nil, d.run(0, nil))
		time.Sleep(12 * time.Second)
		if got := engine.count("acquire"); got != 5 { // two for the lead, one for the first record, and one check by each leader
			t.Errorf("%d acquires, want 5: both lead", got)
		}
		engine.heal()
		time.Sleep(time.Minute)
		d.want("00:01:00 run of 00:01:00, attempt 1", "00:02:00 run of 00:02:00, attempt 1")
		s := d.status(client)
		expect(t, s.Done == 2, "status: %+v", s)
		_, _ = first(), second()
	})
}

// TestEveryPauseOutlivesLeaders checks that the pause between two attempts counts from when the
// first was recorded, not from when another replica begins to lead. So replacing replicas delays
// nothing. No pause follows an attempt that the stop of its replica interrupted.
func TestEveryPauseOutlivesLeaders(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, client *holdfast.Client) {
		d := &diary{t: t}
		hourly := holdfast.Periodic(time.Unix(0, 0), time.Hour)
		opts := &holdfast.EveryOptions{StartWithin: 30 * time.Minute}
		start := func(run func(context.Context, holdfast.EveryRun) error) func() error {
			return d.every(newClient(t, engine, nil), hourly, opts, run)
		}
		stop := start(d.run(0, errors.New("broken")))
		time.Sleep(time.Hour + 64*time.Second) // the seventh attempt was 1 s ago: the pause is a minute
		s := d.status(client)
		need(t, s.Begun != nil && s.Begun.Attempts == 7, "status: %+v", s)
		for range 5 {
			next := start(d.run(20*time.Second, nil))
			_ = stop()
			stop = next
			time.Sleep(10 * time.Second)
		}
		d.mu.Lock()
		d.lines = nil
		d.mu.Unlock()
		time.Sleep(10 * time.Second) // 01:02:04: a second after the pause
		last := start(d.run(20*time.Second, nil))
		_ = stop()
		time.Sleep(time.Minute)
		_ = last()
		d.want("01:02:03 run of 01:00:00, attempt 8", "01:02:04 run of 01:00:00, attempt 8")
		nothingLeft(t, engine, "job", "job@schedule")
	})
}

// TestEndedLeadSaysWhoLeads checks that the error of a candidate whose context ends contains who
// leads.
func TestEndedLeadSaysWhoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		leader, c := newClient(t, engine, nil), newClient(t, engine, nil)
		defer mustAcquire(t, leader, "billing", nil).Release(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Lead(ctx, "billing", nil, func(context.Context, *holdfast.Lease) error { return nil })
		wantErr(t, err, context.DeadlineExceeded)
		if wantErr(t, err, holdfast.ErrHeld); strings.Count(err.Error(), "deadline exceeded") != 1 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q, want one line that says it once", err)
		}
	})
}
