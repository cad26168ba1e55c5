package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A faulty is an engine between the client and a memlock. The hooks run before
// (a request lost) or after (a reply lost) the real request; an error of
// theirs is what the client sees.
type faulty struct {
	*memlock.Engine

	mu     sync.Mutex // guards the rest
	before func(ctx context.Context, op string) error
	after  func(ctx context.Context, op string) error
	calls  map[string]int
	sizes  []int     // of the batches of Extend
	last   time.Time // of the last Extend
}

var errLink = errors.New("connection reset")

func newFaulty() *faulty {
	none := func(context.Context, string) error { return nil }
	return &faulty{Engine: memlock.New(), before: none, after: none, calls: map[string]int{}}
}

// set replaces the hooks; nil leaves one as it is.
func (f *faulty) set(before, after func(context.Context, string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before != nil {
		f.before = before
	}
	if after != nil {
		f.after = after
	}
}

func (f *faulty) heal() {
	none := func(context.Context, string) error { return nil }
	f.set(none, none)
}

func (f *faulty) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

func (f *faulty) do(ctx context.Context, op string, request func() error) error {
	f.mu.Lock()
	f.calls[op]++
	before, after := f.before, f.after
	f.mu.Unlock()
	if err := before(ctx, op); err != nil {
		return err
	}
	err := request()
	if e := after(ctx, op); e != nil {
		return e
	}
	return err
}

func (f *faulty) Acquire(ctx context.Context, req driver.AcquireRequest) (reply driver.AcquireReply, err error) {
	err = f.do(ctx, "acquire", func() (err error) {
		reply, err = f.Engine.Acquire(ctx, req)
		return err
	})
	return reply, err
}

func (f *faulty) Extend(ctx context.Context, reqs []driver.ExtendRequest) (errs []error) {
	f.mu.Lock()
	f.sizes = append(f.sizes, len(reqs))
	f.last = time.Now()
	f.mu.Unlock()
	err := f.do(ctx, "extend", func() error {
		errs = f.Engine.Extend(ctx, reqs)
		return nil
	})
	if err != nil {
		errs = make([]error, len(reqs))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

func (f *faulty) Release(ctx context.Context, req driver.ReleaseRequest) error {
	return f.do(ctx, "release", func() error { return f.Engine.Release(ctx, req) })
}

func (f *faulty) Inspect(ctx context.Context, name string) (lock driver.Lock, err error) {
	err = f.do(ctx, "inspect", func() (err error) {
		lock, err = f.Engine.Inspect(ctx, name)
		return err
	})
	return lock, err
}

// fail makes a hook that fails the operations named.
func fail(err error, ops ...string) func(context.Context, string) error {
	return func(_ context.Context, op string) error {
		for _, o := range ops {
			if o == op {
				return err
			}
		}
		return nil
	}
}

// hang makes a hook that blocks the operations named until ctx ends.
func hang(ops ...string) func(context.Context, string) error {
	return func(ctx context.Context, op string) error {
		if fail(errLink, ops...)(ctx, op) == nil {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// delay makes a hook that sleeps for d.
func delay(d time.Duration) func(context.Context, string) error {
	return func(context.Context, string) error {
		time.Sleep(d)
		return nil
	}
}

// newClient returns a client that is closed at the end of the test.
func newClient(t testing.TB, engine driver.Engine, opts *holdfast.Options) *holdfast.Client {
	t.Helper()
	c, err := holdfast.New(engine, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

func mustAcquire(t testing.TB, c *holdfast.Client, name string, opts *holdfast.AcquireOptions) *holdfast.Lease {
	t.Helper()
	l, err := c.TryAcquire(context.Background(), name, opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// holders returns how many leases the store has for name.
func holders(t testing.TB, e driver.Engine, name string) int {
	t.Helper()
	lock, err := e.Inspect(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return len(lock.Holders)
}

func wantErr(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error = %v, want one that is %v", err, target)
	}
}
