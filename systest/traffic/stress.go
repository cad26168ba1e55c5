package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/check"
	"github.com/holdfast-locks/holdfast/systest/fault"
)

// StressTTL is the TTL of the leases of Stress.
const StressTTL = time.Second

// Stress is a job: workers use all operations of locks, every second crew in cohorts. The crew
// reports each span twice, at its beginning and at its end.
func Stress(ctx context.Context, j Job) (any, error) {
	engine, err := Open(ctx, j.By, j.Store)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	return check.Span{}, StressOn(ctx, engine, j)
}

// StressOn is Stress on an open engine.
func StressOn(ctx context.Context, engine driver.Engine, j Job) error {
	client, err := holdfast.New(engine, &holdfast.Options{TTL: StressTTL, RequestTimeout: StressTTL, Cohorts: j.Seed%2 == 0})
	if err != nil {
		return err
	}
	end := time.Now().Add(j.For)
	errs := make([]error, j.Workers)
	var wg sync.WaitGroup
	for i := range j.Workers {
		w := worker{client: client, rand: rand.New(rand.NewPCG(j.Seed, uint64(i))), out: j.Out}
		wg.Go(func() {
			for errs[i] == nil && time.Now().Before(end) && ctx.Err() == nil {
				errs[i] = w.step(ctx)
			}
		})
	}
	wg.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if s, ok := engine.(*fault.Severed); ok && s.IsCut() {
		_ = client.Close() // a client that is cut off cannot clean up
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, client.Shutdown(closing), client.Close())...)
}

// A worker is the state of one goroutine.
type worker struct {
	client *holdfast.Client
	rand   *rand.Rand
	out    func(any)
}

// chance returns true in one of n cases.
func (w *worker) chance(n int) bool { return w.rand.IntN(n) == 0 }

// upTo returns a random duration below d.
func (w *worker) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rand.Int64N(int64(d)))
}

// step acquires a random lock, or two, works, and releases them.
func (w *worker) step(ctx context.Context) error {
	name, opts := w.wish()
	acquiring := ctx
	if w.chance(3) { // the caller may give up
		var cancel context.CancelFunc
		acquiring, cancel = context.WithTimeout(ctx, w.upTo(30*time.Millisecond))
		defer cancel()
	}
	if opts.Mode == holdfast.Exclusive && w.chance(5) {
		all, err := w.client.AcquireAll(acquiring, []string{"exclusive/1", "exclusive/0"}, opts)
		if err != nil {
			return unexpected(err)
		}
		for _, name := range all.Names() {
			w.work(ctx, all.Lease(name))
		}
		return unexpected(all.Release(ctx))
	}
	acquire := w.client.Acquire
	if w.chance(5) {
		acquire = w.client.TryAcquire
	}
	lease, err := acquire(acquiring, name, opts)
	if err != nil {
		return unexpected(err)
	}
	w.work(ctx, lease)
	return unexpected(lease.Release(ctx))
}

// wish returns a lock to acquire, and the options.
func (w *worker) wish() (string, *holdfast.AcquireOptions) {
	opts := &holdfast.AcquireOptions{}
	if w.chance(4) {
		opts.MaxWait = time.Millisecond + w.upTo(300*time.Millisecond)
	}
	if w.chance(5) {
		opts.KeepAlive = holdfast.KeepAliveOff
	}
	n := w.rand.IntN(2)
	switch w.rand.IntN(3) {
	case 0:
		opts.Mode = holdfast.Permits(1+w.rand.IntN(3), 3)
		return fmt.Sprintf("semaphore/%d", n), opts
	case 1:
		if !w.chance(3) {
			opts.Mode = holdfast.Shared
		}
		return fmt.Sprintf("shared/%d", n), opts
	}
	return fmt.Sprintf("exclusive/%d", n), opts
}

// work holds a lease for a while, and reports for how long it was valid.
func (w *worker) work(ctx context.Context, l *holdfast.Lease) {
	lock := check.SpanOf(l)
	w.out(lock)
	w.pause(l)
	if w.chance(4) {
		_ = l.Extend(ctx, StressTTL)
	}
	if lock.Mode == lockinfo.Exclusive && w.chance(4) && len(l.Name()) > 0 && l.Name()[0] == 's' {
		lock.End = check.ValidUntil(l)
		w.out(lock)
		if err := l.Downgrade(ctx); err == nil {
			lock.Mode, lock.Part, lock.Start, lock.End = lockinfo.Shared, 1, lock.End, 0
			w.out(lock)
			w.pause(l)
		}
	}
	lock.End = check.ValidUntil(l)
	w.out(lock)
}

// pause waits for a random time, or until the lease ends.
func (w *worker) pause(l *holdfast.Lease) {
	longest := 3 * time.Millisecond
	if w.chance(20) {
		longest = 100 * time.Millisecond
	}
	select {
	case <-time.After(w.upTo(longest)):
	case <-l.Context().Done():
	}
}

// unexpected returns nil for errors that these tests cause, and otherwise err.
func unexpected(err error) error {
	for _, known := range []error{
		holdfast.ErrHeld, holdfast.ErrLost, holdfast.ErrUnavailable, holdfast.ErrOutcomeUnknown,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}
