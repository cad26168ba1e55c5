package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

func TestOnceRunsOnceAndReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		a, b := newClient(t, engine, nil), newClient(t, engine, nil)
		var lease *holdfast.Lease
		j := newJob(func(ctx context.Context, l *holdfast.Lease, _ int) ([]byte, error) {
			lease = l
			if got, ok := holdfast.LeaseFromContext(ctx); !ok || got != l || !l.Valid() {
				t.Error("the work's context does not carry a valid lease")
			}
			return []byte("a\x00\n{}\xff"), nil
		})
		first := once(t, a, nil, j)
		expect(t, !first.Replayed && first.Token == lease.Token() && string(first.Value) == "a\x00\n{}\xff", "first = %+v, lease token %d", first, lease.Token())
		// The record ended the lease: no release is needed.
		expect(t, !lease.Valid() && lease.Context().Err() != nil && lease.Release(t.Context()) == nil,
			"the lease goes on: valid %t, context %v, Release %v", lease.Valid(), lease.Context().Err(), lease.Release(t.Context()))
		got := fmt.Sprint(engine.calls)
		expect(t, got == "map[acquire:1 complete:1]", "the run cost %s, want 1 acquire and 1 complete", got)
		clear(engine.calls)
		for _, c := range []*holdfast.Client{a, b} {
			r := once(t, c, nil, j)
			expect(t, r.Replayed && r.Token == first.Token && string(r.Value) == string(first.Value), "replay = %+v, want %+v", r, first)
		}
		got = fmt.Sprint(engine.calls)
		expect(t, got == "map[acquire:2]", "two replays cost %s, want an acquire each", got)
		expect(t, j.runs == 1, "%d runs, want 1", j.runs)
	})
}

func TestOnceKeepsAnEmptyResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), nil)
		j := newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) { return nil, nil })
		for _, replayed := range []bool{false, true} {
			r := once(t, c, nil, j)
			expect(t, len(r.Value) == 0 && r.Replayed == replayed, "result = %+v, want none, replayed %t", r, replayed)
		}
	})
}

func TestOnceTellsWhoWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		a := newClient(t, engine, &holdfast.Options{Holder: holdfast.Holder{Host: "web-3", PID: 812}})
		b := newClient(t, engine, nil)
		j := newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
			time.Sleep(3 * time.Second)
			_, err := b.Once(bounded(t), "k", nil, returns("never").fn)
			var busy *holdfast.InProgressError
			if !errors.As(err, &busy) || !errors.Is(err, holdfast.ErrInProgress) || errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("error = %v, want an *InProgressError", err)
				return nil, nil
			}
			want := `holdfast: once "k": in progress by web-3 (pid 812) for 3s: "resize"`
			expect(t, err.Error() == want && busy.Since == 3*time.Second && busy.Holder.Reason == "resize" && busy.Holder.Labels["shop"] == "7" && busy.ExpiresIn == 9*time.Second,
				"error = %q (%+v), want %q", err, busy, want)
			return nil, nil
		})
		once(t, a, &holdfast.OnceOptions{TTL: 12 * time.Second, Reason: "resize", Labels: map[string]string{"shop": "7"}}, j)
	})
}

// TestOnceAndLocksExclude checks that Once and a plain lock of the same name exclude each other.
func TestOnceAndLocksExclude(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		l := mustAcquire(t, c, "k", nil)
		wantErr(t, errOf(c.Once(bounded(t), "k", nil, returns("never").fn)), holdfast.ErrInProgress)
		l.Release(t.Context())
		once(t, c, nil, newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
			wantErr(t, errOf(c.TryAcquire(t.Context(), "k", nil)), holdfast.ErrHeld)
			return nil, nil
		}))
		mustAcquire(t, c, "k", nil).Release(t.Context()) // a record does not block the lock
	})
}

func TestOnceFreesTheKeyWithoutResult(t *testing.T) {
	errWork := errors.New("work failed")
	cases := map[string]func(c *holdfast.Client) error{
		"error": func(c *holdfast.Client) error {
			r, err := c.Once(context.Background(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("half"), errWork })
			if err != errWork || r.Value != nil {
				return fmt.Errorf("%+v, %v: want the error as it is", r, err)
			}
			return nil
		},
		"panic": func(c *holdfast.Client) (err error) {
			defer func() {
				if p := recover(); p != errWork {
					err = fmt.Errorf("panic %v", p)
				}
			}()
			c.Once(context.Background(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { panic(errWork) })
			return errors.New("no panic")
		},
		"goexit": func(c *holdfast.Client) error {
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.Once(context.Background(), "k", nil, func(context.Context, *holdfast.Lease) ([]byte, error) {
					runtime.Goexit()
					return nil, nil
				})
			}()
			<-done
			return nil
		},
		"too large": func(c *holdfast.Client) error {
			_, err := c.Once(context.Background(), "k", &holdfast.OnceOptions{MaxResult: 10}, returns(strings.Repeat("x", 11)).fn)
			if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "11 bytes, the limit is 10") {
				return fmt.Errorf("%v: want ErrInvalid", err)
			}
			return nil
		},
	}
	for name, call := range cases {
		runWithClient(t, name, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			start := time.Now()
			wantErr(t, call(c), nil)
			wantFree(t, engine, c)
			took := time.Since(start)
			expect(t, took == 0, "the key was free after %s, want at once", took)
			if engine.count("complete") != 1 { // the next run's
				t.Errorf("%d results were stored", engine.count("complete"))
			}
		})
	}
}

func TestOnceMaxResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, mem.New(nil), nil)
		for _, limit := range []int{0, 1, holdfast.MaxOnceResult} {
			size := limit
			if limit == 0 {
				size = 1 << 20 // the default
			}
			large := strings.Repeat("x", size+1)
			// The longest header: each byte is encoded as six.
			opts := &holdfast.OnceOptions{MaxResult: limit, Fingerprint: strings.Repeat("<", 256)}
			wantErr(t, errOf(c.Once(t.Context(), "k", opts, returns(large).fn)), holdfast.ErrInvalid)
			once(t, c, opts, returns(large[1:]))
			r := once(t, c, opts, mustNotRun(t))
			expect(t, string(r.Value) == large[1:], "limit %d: %d bytes came back, want %d", limit, len(r.Value), size)
			c.Records().Forget(t.Context(), "k")
		}
	})
}

// mustNotRun makes work that must not run.
func mustNotRun(t testing.TB) *job {
	return newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
		t.Error("the work ran again")
		return nil, nil
	})
}

func TestOnceKeepsTheLeaseAlive(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		r := once(t, c, &holdfast.OnceOptions{TTL: 10 * time.Second}, newJob(func(ctx context.Context, _ *holdfast.Lease, _ int) ([]byte, error) {
			time.Sleep(10 * time.Minute)
			return []byte("slow"), ctx.Err()
		}))
		expect(t, string(r.Value) == "slow" && engine.count("extend") != 0, "result %+v after %d renewals", r, engine.count("extend"))
	})
}

// TestOnceTTLAndRetention checks that the result is kept for Retention from when it was stored,
// whatever the TTL.
func TestOnceTTLAndRetention(t *testing.T) {
	for _, o := range []holdfast.OnceOptions{
		{TTL: time.Minute, Retention: time.Second},
		{TTL: time.Second, Retention: time.Hour},
		{Retention: 10 * time.Millisecond},
		{Retention: 0}, // 24 hours
		{Retention: holdfast.MaxRetention},
	} {
		runWithClient(t, fmt.Sprint(o.TTL, o.Retention), nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
			retention := o.Retention
			if retention == 0 {
				retention = 24 * time.Hour
			}
			slow := newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) {
				time.Sleep(3 * time.Minute)
				return []byte("kept"), nil
			})
			once(t, c, &o, slow)
			s := wantState(t, c, holdfast.OnceDone)
			expect(t, s.ExpiresIn == retention, "kept for %s, want %s from the end of the work", s.ExpiresIn, retention)
			time.Sleep(retention - time.Millisecond)
			once(t, c, &o, mustNotRun(t))
			time.Sleep(time.Millisecond)
			wantFree(t, engine, c)
		})
	}
}

func TestOnceTakesOverFromTheDead(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, engine *faulty, c *holdfast.Client) {
		foreign(t, engine, "k", 7*time.Second)
		start := time.Now()
		r := once(t, c, &holdfast.OnceOptions{Await: holdfast.Forever}, returns("second"))
		took := time.Since(start)
		expect(t, !r.Replayed && took >= 7*time.Second && took <= 7*time.Second+50*time.Millisecond, "%+v after %s, want a run when the TTL has passed, 7s", r, took)
	})
}

func TestOnceBadInputSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newLedger()
		c := newClient(t, engine, nil)
		for _, o := range []holdfast.OnceOptions{
			{TTL: time.Millisecond}, {TTL: holdfast.MaxTTL + 1}, {TTL: -1},
			{Retention: -1}, {Retention: holdfast.MinTTL - 1}, {Retention: holdfast.MaxRetention + 1},
			{Await: -1}, {Await: holdfast.Never},
			{MaxResult: -1}, {MaxResult: holdfast.MaxOnceResult + 1},
			{Fingerprint: strings.Repeat("x", 257)}, {Fingerprint: "a\nb"}, {Fingerprint: "\xff"},
			{MaxHold: -1}, {StallAfter: 1}, {Reason: "\x00"}, {Labels: map[string]string{"k": strings.Repeat("x", 5000)}},
		} {
			_, err := c.Once(t.Context(), "k", &o, mustNotRun(t).fn)
			expect(t, errors.Is(err, holdfast.ErrInvalid) && strings.HasPrefix(err.Error(), `holdfast: once "k": `), "%+v: error = %v, want ErrInvalid", o, err)
		}
		for _, key := range []string{"", "a\nb", "\xff", strings.Repeat("x", driver.MaxNameLen+1)} {
			wantErr(t, errOf(c.Once(t.Context(), key, nil, mustNotRun(t).fn)), holdfast.ErrInvalid)
			wantErr(t, errOf(c.Once(t.Context(), key, &holdfast.OnceOptions{Scheduled: time.Unix(0, 0)}, mustNotRun(t).fn)), holdfast.ErrInvalid)
			wantErr(t, errOf(c.Records().Once(t.Context(), key)), holdfast.ErrInvalid)
			wantErr(t, errOf(c.Records().Result(t.Context(), key)), holdfast.ErrInvalid)
			wantErr(t, errOf(c.Records().Forget(t.Context(), key)), holdfast.ErrInvalid)
		}
		expect(t, len(engine.calls) == 0, "requests were sent: %v", engine.calls)
	})
}

func TestOnceNeedsARecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		c := newClient(t, plain{engine}, nil)
		wantErr(t, errOf(c.Once(t.Context(), "k", nil, mustNotRun(t).fn)), holdfast.ErrUnsupported)
		wantErr(t, errOf(c.Records().Once(t.Context(), "k")), holdfast.ErrUnsupported)
		wantErr(t, errOf(c.Records().Result(t.Context(), "k")), holdfast.ErrUnsupported)
		wantErr(t, errOf(c.Records().Forget(t.Context(), "k")), holdfast.ErrUnsupported)
		_, _, err := holdfast.OnceJSON(t.Context(), c, "k", nil, func(context.Context, *holdfast.Lease) (int, error) { return 0, nil })
		wantErr(t, err, holdfast.ErrUnsupported)
		expect(t, len(engine.calls) == 0, "requests were sent: %v", engine.calls)
	})
}

// TestOnceLeavesNoGoroutine checks that no goroutine is left although the client is not closed. One
// would fail the bubble.
func TestOnceLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := holdfast.New(mem.New(nil), nil)
		must(t, err)
		once(t, c, nil, returns("x"))
		once(t, c, nil, mustNotRun(t))
		c.Once(t.Context(), "fails", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, errLink })
	})
}

// A ledger is a faulty with hooks for "recall", "describe" and "forget", too.
type ledger struct{ *faulty }

func newLedger() ledger { return ledger{newFaulty()} }

func (l ledger) Recall(ctx context.Context, name string) (r driver.Record, found bool, err error) {
	err = l.do(ctx, "recall", func() (err error) {
		r, found, err = l.Engine.Recall(ctx, name)
		return err
	})
	return r, found, err
}

func (l ledger) DescribeRecord(ctx context.Context, name string) (r driver.RecordInfo, found bool, err error) {
	err = l.do(ctx, "describe", func() (err error) {
		r, found, err = l.Engine.DescribeRecord(ctx, name)
		return err
	})
	return r, found, err
}

func (l ledger) Forget(ctx context.Context, name string) (found bool, err error) {
	err = l.do(ctx, "forget", func() (err error) {
		found, err = l.Engine.Forget(ctx, name)
		return err
	})
	return found, err
}

// unqueued returns an engine that keeps records but has no queue.
func unqueued(engine driver.Engine) driver.Engine {
	return driver.Forward{Engine: engine, Without: driver.Capabilities{Queue: true}}
}

// A job is do-once work that counts its runs.
type job struct {
	mu   sync.Mutex
	runs int
	run  func(ctx context.Context, l *holdfast.Lease, n int) ([]byte, error)
}

// newJob makes work that calls run with the number of the run, from 1.
func newJob(run func(ctx context.Context, l *holdfast.Lease, n int) ([]byte, error)) *job {
	return &job{run: run}
}

// returns makes work that returns value at once.
func returns(value string) *job {
	return newJob(func(context.Context, *holdfast.Lease, int) ([]byte, error) { return []byte(value), nil })
}

func (j *job) fn(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
	j.mu.Lock()
	j.runs++
	n := j.runs
	j.mu.Unlock()
	return j.run(ctx, l, n)
}

// once calls Once for the key "k", which must succeed.
func once(t testing.TB, c *holdfast.Client, opts *holdfast.OnceOptions, j *job) holdfast.OnceResult {
	t.Helper()
	r, err := c.Once(t.Context(), "k", opts, j.fn)
	must(t, err)
	return r
}

// bounded returns a context for a call that must not wait. If the call waits, it ends with another
// error instead of hanging.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// wantState fails t unless the key "k" is in this state. It returns all that the store reports of
// the key.
func wantState(t testing.TB, c *holdfast.Client, want holdfast.OnceState) onceStanding {
	t.Helper()
	record, err := c.Records().Once(context.Background(), "k")
	expect(t, err == nil && record.State == want, "record = %+v, %v; want %s", record, err, want)
	result, err := c.Records().Result(context.Background(), "k")
	expect(t, err == nil && result.Replayed == (want == holdfast.OnceDone), "result = %+v, %v of what is %s", result, err, want)
	return onceStanding{record, result}
}

// A onceStanding is the record and the result of a key.
type onceStanding struct {
	holdfast.OnceRecord
	Result holdfast.OnceResult
}

// wantFree fails t unless the key "k" is absent and its lock free, and the next call of Once runs
// the work.
func wantFree(t testing.TB, f *faulty, c *holdfast.Client) {
	t.Helper()
	wantState(t, c, holdfast.OnceAbsent)
	nothingLeft(t, f, "k")
	j := returns("next")
	r, err := c.Once(context.Background(), "k", nil, j.fn)
	expect(t, err == nil && !r.Replayed && j.runs == 1, "the next Once = %+v, %v, %d runs; want a run", r, err, j.runs)
}

// TestWholeTTLOfOnce checks that do-once work with WholeTTL begins with the whole TTL.
func TestWholeTTLOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		time.AfterFunc(300*time.Millisecond, foreign(t, engine, "a", time.Hour))
		opts := &holdfast.OnceOptions{TTL: 30 * time.Second, Await: holdfast.Forever, WholeTTL: true}
		_, err := newClient(t, engine, nil).Once(t.Context(), "a", opts, func(_ context.Context, l *holdfast.Lease) ([]byte, error) {
			left := l.Remaining()
			expect(t, left >= 26*time.Second, "the work begins with %s", left)
			return nil, nil
		})
		expect(t, err == nil, "%v", err)
	})
}
