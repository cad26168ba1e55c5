package holdfast_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestEveryStoreIsAway checks that nothing runs during an outage. Afterwards the latest scheduled
// time is run, and the others are reported as missed.
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
		expect(t, len(d.lines) == 3 && d.lines[1] == "missed 2: 00:02:00 to 00:03:00 " && strings.HasSuffix(d.lines[2], "run of 00:04:00, attempt 1"), "%q", d.lines)

	})
}

// TestEveryLostReplies checks that the first and the last request of a run are repeated if their
// replies are lost, and that the run happens once. If no reply to the last arrives, the next leader
// finds the result.
func TestEveryLostReplies(t *testing.T) {
	for name, c := range map[string]struct {
		lose  int
		begun bool // lose only replies at the end of a run
	}{"one of the begin": {1, false}, "one": {1, true}, "all": {1000, true}} {
		lose := c.lose
		runInBubble(t, name, func(t *testing.T) {
			d, engine := &diary{t: t}, newFaulty()
			client := newClient(t, engine, nil)
			left := lose
			fault := func() {
				engine.set(nil, func(_ context.Context, op string) error {
					if op == "complete" && left > 0 {
						left--
						return errLink
					}
					return nil
				})
			}
			stop := d.every(client, minutely, nil, func(ctx context.Context, run holdfast.EveryRun) error {
				if c.begun && run.Scheduled.Minute() == 1 {
					fault()
				}
				return d.run(0, nil)(ctx, run)
			})
			if !c.begun {
				fault()
			}
			time.Sleep(90 * time.Second)
			engine.heal()
			time.Sleep(40 * time.Second)
			d.want("00:01:00 run of 00:01:00, attempt 1", "00:02:00 run of 00:02:00, attempt 1")
			s := d.status(client)
			expect(t, s.Done == 2, "status %+v", s)
			failed := d.failures()
			if unknown := len(failed) == 1 && errors.Is(failed[0], holdfast.ErrOutcomeUnknown); unknown != (lose > 1) || lose == 1 && len(failed) > 0 {
				t.Errorf("failed: %v", failed)
			}
			_ = stop()
		})
	}
}

// TestEveryStoreForgets checks that a leader stores the record again if the store has lost it, and
// neither repeats runs nor starts from the beginning.
func TestEveryStoreForgets(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, client *holdfast.Client) {
		d := &diary{t: t}
		stop := d.every(client, minutely, nil, d.run(0, nil))
		time.Sleep(90 * time.Second)
		if found, err := client.Records().Forget(t.Context(), "job"); !found || err != nil {
			t.Fatal(found, err)
		}
		time.Sleep(time.Minute)
		d.want("00:01:00 run of 00:01:00, attempt 1", "00:02:00 run of 00:02:00, attempt 1")
		s := d.status(client)
		expect(t, s.Done == 2 && s.Missed == 0, "status %+v", s)
		_ = stop()
	})
}

// A notary is an engine that keeps a copy of every schedule record that is stored.
type notary struct {
	driver.Forward
	mu      sync.Mutex // guards the rest
	written []holdfast.ScheduleRecord
	seen    map[lockinfo.LeaseID]bool
}

func newNotary() *notary {
	return &notary{Forward: driver.Forward{Engine: mem.New(nil)}, seen: map[lockinfo.LeaseID]bool{}}
}

func (n *notary) Complete(ctx context.Context, req driver.CompleteRequest) error {
	err := n.Forward.Complete(ctx, req)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && !n.seen[req.LeaseID] {
		n.seen[req.LeaseID] = true
		var r holdfast.ScheduleRecord
		if err := json.Unmarshal(req.Record, &r); err != nil {
			return err
		}
		n.written = append(n.written, r)
	}
	return err
}

// A fate is the outcome of one scheduled time in the records.
type fate struct {
	done, missed int
	token        uint64 // the token of the run
}

// fates derives the outcome of each scheduled time from the records, and checks their order.
func (n *notary) fates(t *testing.T, schedule holdfast.Schedule) map[time.Time]*fate {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[time.Time]*fate{}
	at := func(scheduled time.Time) *fate {
		scheduled = scheduled.UTC()
		if all[scheduled] == nil {
			all[scheduled] = &fate{}
		}
		return all[scheduled]
	}
	for i, r := range n.written[1:] {
		before := n.written[i]
		missed, done := strings.Repeat("m", int(r.Missed-before.Missed)), ""
		if r.Done > before.Done {
			done = map[bool]string{true: "d", false: "r"}[r.Last.Attempt == 1]
		}
		latest := func(runs string) string { return runs[max(0, len(runs)-30):] }
		if r.Runs != latest(before.Runs+missed+done) && r.Runs != latest(before.Runs+done+missed) {
			t.Errorf("the latest runs are %q, after %q, %q and %q", r.Runs, before.Runs, missed, done)
		}
		if r.Done == before.Done+1 {
			f := at(r.Last.Scheduled)
			f.done++
			f.token = r.Last.Token
		}
		if r.Missed == before.Missed {
			continue
		}
		gap, count := r.Gaps[len(r.Gaps)-1], 0
		for s := gap.First; !s.After(gap.Last); s = schedule.Next(s) {
			at(s).missed++
			count++
		}
		expect(t, count == gap.Count && r.Missed == before.Missed+uint64(count), "%d missed in %+v, and %d before", r.Missed, gap, before.Missed)
	}
	return all
}

// A replica is one process that calls Every, with a clock that is off.
type replica struct {
	who    int
	skew   time.Duration
	loses  bool // the request under way at its death is lost
	dead   atomic.Bool
	cancel context.CancelFunc
	over   chan struct{}
}

// each carries the requests of the replica to the store and back, 1 ms each way. A dead replica
// sends and receives nothing. The request under way at its death arrives, or is lost.
func (r *replica) each(ctx context.Context, _ hook.Request, send func() error) error {
	gone := func(lost bool) bool { return r.dead.Load() && lost }
	if !gone(true) {
		time.Sleep(time.Millisecond)
		if !gone(r.loses) {
			err := send()
			time.Sleep(time.Millisecond)
			if !gone(true) {
				return err
			}
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// A finish is the end of the work of one run.
type finish struct {
	scheduled time.Time
	token     uint64
	by        *replica
}

// A fleet is several replicas of one job on one store.
type fleet struct {
	t        *testing.T
	store    *notary
	schedule holdfast.Schedule
	opts     holdfast.EveryOptions
	job      time.Duration
	random   *rand.Rand
	mu       sync.Mutex    // guards the rest
	begun    chan *replica // receives a replica when its run begins, if the test is waiting
	working  int
	killed   int // runs that were killed before their end
	finished []finish
	early    time.Duration // how long before its time a run began, at most
	missed   int           // the sum of what Missed received
}

func (f *fleet) start(who int, skew time.Duration) *replica {
	r := &replica{who: who, skew: skew, loses: f.random.IntN(2) == 0, over: make(chan struct{})}
	ctx, cancel := context.WithCancel(f.t.Context())
	r.cancel = cancel
	c := newClient(f.t, &hook.Engine{Forward: driver.Forward{Engine: f.store}, Each: r.each}, &holdfast.Options{TTL: 3 * time.Second, RequestTimeout: time.Second})
	opts := f.opts
	holdfast.SetEveryClock(&opts, func() time.Time { return time.Now().Add(r.skew) })
	opts.Missed = func(m holdfast.MissedRuns) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.missed += m.Count
	}
	go func() {
		defer close(r.over)
		err := c.Every(ctx, "job", f.schedule, &opts, func(ctx context.Context, run holdfast.EveryRun) error { return f.work(ctx, r, run) })
		if !errors.Is(err, context.Canceled) {
			f.t.Errorf("replica %d: %v", who, err)
		}
	}()
	return r
}

// work is the work of a run: it lasts for job, or until its context ends.
func (f *fleet) work(ctx context.Context, r *replica, run holdfast.EveryRun) error {
	f.mu.Lock()
	f.early = max(f.early, time.Until(run.Scheduled))
	f.working++
	if f.working > 1 {
		f.t.Errorf("%d runs at a time", f.working)
	}
	f.mu.Unlock()
	select {
	case f.begun <- r:
	default:
	}
	var err error
	select {
	case <-time.After(f.job):
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.working--
	if r.dead.Load() {
		f.killed++
	} else if err == nil {
		f.finished = append(f.finished, finish{run.Scheduled, run.Lease.Token(), r})
	}
	return err
}

// kill ends the process of the replica.
func (r *replica) kill() {
	r.dead.Store(true)
	r.cancel()
}

// TestEveryRunsOnceOrTells checks three replicas whose clocks differ by 4 s, and which are killed
// again and again, sometimes all at once. The records contain each scheduled time once: as done by
// one run, or as missed.
func TestEveryRunsOnceOrTells(t *testing.T) {
	const ticks = 200
	for name, c := range map[string]struct {
		period time.Duration
		opts   holdfast.EveryOptions
	}{
		"a period above the skew":           {10 * time.Second, holdfast.EveryOptions{}},
		"a period below the skew":           {time.Second, holdfast.EveryOptions{}},
		"each of a period below the skew":   {time.Second, holdfast.EveryOptions{CatchUp: true}},
		"late by less than the skew itself": {10 * time.Second, holdfast.EveryOptions{StartWithin: time.Second}},
	} {
		runInBubble(t, name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(c.period), uint64(len(name))))
			f := &fleet{t: t, random: random, store: newNotary(), schedule: holdfast.Periodic(time.Unix(0, 0), c.period), opts: c.opts, job: 50 * time.Millisecond, begun: make(chan *replica)}
			within := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
			skews := []time.Duration{-2 * time.Second, 0, 2 * time.Second}
			crew := make([]*replica, len(skews))
			for who, skew := range skews {
				crew[who] = f.start(who, skew)
			}
			kills := 0
			for end := time.Now().Add(ticks * c.period); time.Now().Before(end); {
				time.Sleep(within(4*c.period + time.Second))
				victims := []int{random.IntN(len(crew))}
				switch random.IntN(10) {
				case 0:
					victims = []int{0, 1, 2}
				case 1, 2, 3: // the replica that runs, at any instant of its run
					victims[0] = (<-f.begun).who
					time.Sleep(within(60 * time.Millisecond))
				case 4: // the replica that has run, while its request is under way
					victims[0] = (<-f.begun).who
					time.Sleep(f.job + 500*time.Microsecond)
				}
				for _, who := range victims {
					crew[who].kill()
					<-crew[who].over
					kills++
				}
				time.Sleep(time.Duration(len(victims)) * within(c.period))
				for _, who := range victims {
					crew[who] = f.start(who, skews[who])
				}
			}
			for _, r := range crew {
				r.cancel()
				<-r.over
			}
			f.check(kills)
		})
	}
}

// check compares the records with the runs.
func (f *fleet) check(kills int) {
	f.t.Helper()
	all := f.store.fates(f.t, f.schedule)
	f.store.mu.Lock()
	first, last := f.store.written[0], f.store.written[len(f.store.written)-1]
	f.store.mu.Unlock()
	runs := map[time.Time][]finish{}
	for _, x := range f.finished {
		runs[x.scheduled] = append(runs[x.scheduled], x)
	}
	var ticks, done, missed, again int
	for s := f.schedule.Next(first.Settled); !s.After(last.Settled); s = f.schedule.Next(s) {
		s = s.UTC()
		ticks++
		what := all[s]
		if what == nil || what.done+what.missed != 1 {
			f.t.Errorf("%s is %+v, want it done once or missed once", s, what)
			continue
		}
		done, missed = done+what.done, missed+what.missed
		found := 0
		for _, x := range runs[s] {
			switch {
			case what.done == 1 && x.token == what.token:
				found++
			case x.by.dead.Load(): // the replica was killed before it could store the result
				again++
			default:
				f.t.Errorf("%s was worked by replica %d, and %+v was written", s, x.by.who, what)
			}
		}
		if found != what.done {
			f.t.Errorf("%s: %+v was written, and %d runs have worked", s, what, found)
		}
	}
	if last.Done != uint64(done) || last.Missed != uint64(missed) || f.missed > missed {
		f.t.Errorf("%d done and %d missed, and the record says %d and %d; %d told", done, missed, last.Done, last.Missed, f.missed)
	}
	f.t.Logf("%d scheduled times, %d kills, %d of them in a run: %d done, %d missed (%d told at once), %d worked by a process that was killed before it could say so; at most %s early",
		ticks, kills, f.killed, done, missed, f.missed, again, f.early)
	if ticks < 180 || done < ticks/4 || kills < 30 || f.killed < 3 {
		f.t.Errorf("%d scheduled times, %d kills, %d done: it shows too little", ticks, kills, done)
	}
	if f.early > 2*time.Second {
		f.t.Errorf("a run began %s before its time", f.early)
	}
}
