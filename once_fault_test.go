package holdfast_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// A ledger is a faulty with hooks for "recall" and "forget", too.
type ledger struct{ *faulty }

func newLedger() ledger { return ledger{newFaulty()} }

func (l ledger) Recall(ctx context.Context, name string) (r driver.Record, found bool, err error) {
	err = l.do(ctx, "recall", func() (err error) {
		r, found, err = l.Engine.Recall(ctx, name)
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

// A job is do-once work. It counts its runs.
type job struct {
	mu   sync.Mutex
	runs int
	run  func(ctx context.Context, l *holdfast.Lease, n int) ([]byte, error)
}

// newJob makes work whose nth run, from 1, is run.
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
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bounded returns a context for a call that must not wait: if it does, it ends
// with another error instead of hanging.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// wantState fails t unless the key "k" is in the state.
func wantState(t testing.TB, c *holdfast.Client, want holdfast.OnceState) holdfast.OnceStatus {
	t.Helper()
	status, err := c.OnceStatus(context.Background(), "k")
	if err != nil || status.State != want {
		t.Errorf("status = %+v, %v; want %s", status, err, want)
	}
	return status
}

// wantFree fails t unless the key "k" is absent and its lock free, which the
// next caller of Once gets at once.
func wantFree(t testing.TB, f *faulty, c *holdfast.Client) {
	t.Helper()
	wantState(t, c, holdfast.OnceAbsent)
	nothingLeft(t, f, "k")
	j := returns("next")
	if r, err := c.Once(context.Background(), "k", nil, j.fn); err != nil || r.Replayed || j.runs != 1 {
		t.Errorf("the next Once = %+v, %v, %d runs; want a run", r, err, j.runs)
	}
}
