package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
)

// TestEveryAttemptsHold checks many fleets, each by a seed: processes are killed at any time, runs
// end by MaxHold, requests and replies are lost, clocks are set. No scheduled time begins more
// often than MaxAttempts, nor again before the pause has ended.
func TestEveryAttemptsHold(t *testing.T) {
	var begun, spent, killed, silent int
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 24))
			opts := holdfast.EveryOptions{MaxAttempts: 1 + random.IntN(4), CatchUp: random.IntN(2) == 0, StartWithin: 5 * time.Minute}
			if random.IntN(2) == 0 {
				opts.MaxHold = 2 * time.Second
			}
			f := newAttempts(t, holdfast.Periodic(time.Unix(0, 0), 40*time.Second), opts, random)
			f.work, f.lossy = f.atRandom, true
			for range 3 {
				f.start(f.skew())
			}
			for end := time.Now().Add(6 * time.Minute); time.Now().Before(end); {
				time.Sleep(time.Duration(f.intN(int64(4 * time.Second))))
				f.harm()
			}
			f.stop()
			f.check()
			for _, b := range f.begun {
				begun += len(b)
				if len(b) == opts.MaxAttempts && opts.MaxAttempts > 1 {
					spent++
				}
			}
			killed, silent = killed+f.kills, silent+f.silent
		})
		need(t, !t.Failed(), "seed %d", seed)
	}
	t.Logf("%d runs were begun, %d processes killed, %d runs ended without a word, %d scheduled times have used up several attempts", begun, killed, silent, spent)
	expect(t, begun >= 500 && killed >= 1000 && silent >= 200 && spent >= 100, "that shows too little")
}

// An attempts runs a schedule in several processes, and records when each attempt begins.
type attempts struct {
	t        *testing.T
	store    driver.Engine
	schedule holdfast.Schedule
	opts     holdfast.EveryOptions
	random   *rand.Rand
	began    time.Time
	work     func(context.Context, *attempter, holdfast.EveryRun) error
	lossy    bool // a third of the processes lose requests and replies
	running  sync.WaitGroup

	mu      sync.Mutex // guards the rest
	crew    []*attempter
	begun   map[time.Time][]begin
	kills   int
	silent  int // runs that ended without a recorded result
	stopped bool
}

// A begin is the beginning of one attempt, and its end.
type begin struct {
	attempt int
	at      time.Time
	ended   time.Time // zero until the attempt has ended
	stopped bool      // its process was stopped; the attempt does not count then
}

// An attempter is one process that calls Every.
type attempter struct {
	dead, away atomic.Bool
	step       atomic.Int64 // of its clock
	loss       float64
	cancel     context.CancelFunc
}

func newAttempts(t *testing.T, schedule holdfast.Schedule, opts holdfast.EveryOptions, random *rand.Rand) *attempts {
	return &attempts{t: t, store: mem.New(nil), schedule: schedule, opts: opts, random: random, began: time.Now().Truncate(time.Minute), begun: map[time.Time][]begin{}}
}

func (f *attempts) intN(n int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.Int64N(n)
}

func (f *attempts) skew() time.Duration {
	return time.Duration(f.intN(int64(4*time.Second))) - 2*time.Second
}

// each carries the requests of a process to the store and back, 1 ms each way. A dead process sends
// and receives nothing, except that a request under way arrives. Requests and replies of the others
// may be lost.
func (f *attempts) each(r *attempter) func(context.Context, hook.Request, func() error) error {
	return func(ctx context.Context, _ hook.Request, send func() error) error {
		lost := func() bool { return r.away.Load() || r.loss > 0 && float64(f.intN(1000)) < 1000*r.loss }
		if !r.dead.Load() && !lost() {
			time.Sleep(time.Millisecond)
			err := send()
			time.Sleep(time.Millisecond)
			if !r.dead.Load() && !lost() {
				return err
			}
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

func (f *attempts) start(skew time.Duration) {
	r := &attempter{}
	r.step.Store(int64(skew))
	if f.lossy && f.intN(3) == 0 {
		r.loss = .1
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	r.cancel = cancel
	engine := &hook.Engine{Forward: driver.Forward{Engine: f.store}, Each: f.each(r)}
	client := newClient(f.t, engine, &holdfast.Options{TTL: 3 * time.Second, RequestTimeout: time.Second})
	opts := f.opts
	holdfast.SetEveryClock(&opts, func() time.Time { return time.Now().Add(time.Duration(r.step.Load())) })
	f.mu.Lock()
	f.crew = append(f.crew, r)
	if f.stopped { // a kill during stop
		cancel()
	}
	f.mu.Unlock()
	f.running.Go(func() {
		_ = client.Every(ctx, "job", f.schedule, &opts, func(ctx context.Context, run holdfast.EveryRun) error {
			if r.dead.Load() {
				return errors.New("it is dead")
			}
			f.note(run.Scheduled, begin{attempt: run.Attempt, at: time.Now()})
			err := f.work(ctx, r, run)
			f.end(run.Scheduled, !r.dead.Load() && ctx.Err() != nil && !errors.Is(context.Cause(ctx), holdfast.ErrLost))
			return err
		})
	})
}

func (f *attempts) note(scheduled time.Time, b begin) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun[scheduled] = append(f.begun[scheduled], b)
}

func (f *attempts) end(scheduled time.Time, stopped bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := &f.begun[scheduled][len(f.begun[scheduled])-1]
	last.ended, last.stopped = time.Now(), stopped
}

// kill ends a process and starts a new one.
func (f *attempts) kill(r *attempter) {
	r.dead.Store(true)
	r.cancel()
	f.mu.Lock()
	f.kills++
	f.mu.Unlock()
	f.start(f.skew())
}

func (f *attempts) breaks(ctx context.Context) {
	if _, err := newClient(f.t, f.store, nil).Break(f.t.Context(), "job", &holdfast.BreakOptions{Author: "ada", Reason: "a test"}); err != nil {
		f.t.Error(err)
	}
	<-ctx.Done()
}

// atRandom is the work of one run: it succeeds, fails, ends with its context, or kills its process.
func (f *attempts) atRandom(ctx context.Context, r *attempter, run holdfast.EveryRun) error {
	select {
	case <-time.After(time.Duration(f.intN(int64(6 * time.Second)))):
	case <-ctx.Done():
		f.mu.Lock()
		f.silent++
		f.mu.Unlock()
		return context.Cause(ctx)
	}
	switch f.intN(4) {
	case 0:
		return nil
	case 1:
		f.mu.Lock()
		f.silent++
		f.mu.Unlock()
		f.kill(r)
	}
	return fmt.Errorf("attempt %d is broken", run.Attempt)
}

// harm does one of these at random: kill, stop or cut off a process, set its clock, or nothing.
func (f *attempts) harm() {
	f.mu.Lock()
	r := f.crew[f.random.IntN(len(f.crew))]
	for r.dead.Load() {
		r = f.crew[f.random.IntN(len(f.crew))]
	}
	what := f.random.IntN(6)
	f.mu.Unlock()
	switch what {
	case 0, 1:
		f.kill(r)
	case 2:
		r.step.Store(int64(f.skew()))
	case 3:
		r.away.Store(true)
		time.Sleep(time.Duration(f.intN(int64(6 * time.Second))))
		r.away.Store(false)
	case 4:
		r.cancel()
		f.start(f.skew())
	}
}

func (f *attempts) stop() {
	f.mu.Lock()
	f.stopped = true
	for _, r := range f.crew {
		r.cancel()
	}
	f.mu.Unlock()
	f.running.Wait()
}

// check checks the attempts of each scheduled time.
func (f *attempts) check() {
	f.t.Helper()
	for scheduled, all := range f.begun {
		all = slices.DeleteFunc(all, func(b begin) bool { return b.stopped })
		if len(all) == 0 {
			continue
		}
		if len(all) > f.opts.MaxAttempts {
			f.t.Errorf("%s was begun %d times, want %d at most: %+v", clock(scheduled), len(all), f.opts.MaxAttempts, all)
		}
		for i, b := range all[1:] {
			before := all[i]
			if b.attempt <= before.attempt {
				f.t.Errorf("attempt %d of %s comes after attempt %d", b.attempt, clock(scheduled), before.attempt)
			}
			if rest := b.at.Sub(before.ended); rest < time.Second<<min(i, 6) {
				f.t.Errorf("attempt %d of %s begins %s after the end of the one before: %+v", b.attempt, clock(scheduled), rest, all)
			}
		}
	}
}

// TestEveryBeginsTooLate: no run begins if the reply to the record of its beginning comes after the
// deadline of its lease.
func TestEveryBeginsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, engine := &diary{t: t}, newFaulty()
		stop := d.every(newClient(t, engine, nil), minutely, &holdfast.EveryOptions{TTL: 3 * time.Second}, func(ctx context.Context, run holdfast.EveryRun) error {
			expect(t, ctx.Err() == nil && run.Lease.Valid(), "a run begins without its lease: %v", context.Cause(ctx))
			return d.run(0, nil)(ctx, run)
		})
		time.Sleep(59 * time.Second)
		engine.set(fail(errLink, "extend"), func(_ context.Context, op string) error {
			if op == "complete" {
				time.Sleep(2800 * time.Millisecond)
			}
			return nil
		})
		time.Sleep(4 * time.Second)
		engine.heal()
		time.Sleep(30 * time.Second)
		_ = stop()
		expect(t, len(d.lines) == 1 && strings.HasSuffix(d.lines[0], "run of 00:01:00, attempt 2"), "%q, %v", d.lines, d.failed)
	})
}
