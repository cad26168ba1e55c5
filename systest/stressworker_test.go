package systest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// stressCrew is a job: workers do whatever one can do with locks.
func stressCrew(ctx context.Context, j job) (any, error) {
	engine, err := openStore(ctx, j.Store)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	return span{}, stressOn(ctx, engine, j)
}

func stressOn(ctx context.Context, engine driver.Engine, j job) error {
	client, err := holdfast.New(engine, &holdfast.Options{TTL: stressTTL, RequestTimeout: stressTTL})
	if err != nil {
		return err
	}
	end := time.Now().Add(j.For)
	errs := make(chan error, j.Workers)
	var wg sync.WaitGroup
	for i := range j.Workers {
		w := stressWorker{client: client, rand: rand.New(rand.NewPCG(j.Seed, uint64(i))), out: j.out}
		wg.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				if err := w.step(ctx); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if s, ok := engine.(*severed); ok && s.off.Load() {
		cancel() // its clean-ups cannot be done
		_ = client.Close(closing)
		return <-errs
	}
	return errors.Join(<-errs, client.Close(closing))
}

// A stressWorker is one goroutine's means.
type stressWorker struct {
	client *holdfast.Client
	rand   *rand.Rand
	out    func(any)
}

// chance is true in one of n cases.
func (w *stressWorker) chance(n int) bool { return w.rand.IntN(n) == 0 }

// upTo returns a random duration below d.
func (w *stressWorker) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rand.Int64N(int64(d)))
}

// step takes a random lock, or two, works, and gives it back.
func (w *stressWorker) step(ctx context.Context) error {
	name, opts := w.wish()
	acquiring := ctx
	if w.chance(3) { // the caller changes his mind
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

// wish returns a lock to take, and how.
func (w *stressWorker) wish() (string, *holdfast.AcquireOptions) {
	opts := &holdfast.AcquireOptions{}
	if w.chance(4) {
		opts.Wait = time.Millisecond + w.upTo(300*time.Millisecond)
	}
	if w.chance(5) {
		opts.KeepAlive = holdfast.KeepAliveOff
	}
	n := w.rand.IntN(2)
	switch w.rand.IntN(3) {
	case 0:
		opts.Mode, opts.Limit, opts.Permits = holdfast.Semaphore, 3, 1+w.rand.IntN(3)
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
func (w *stressWorker) work(ctx context.Context, l *holdfast.Lease) {
	lock := spanOf(l)
	w.out(lock)
	w.pause(l)
	if w.chance(4) {
		_ = l.Extend(ctx, stressTTL)
	}
	if lock.Mode == driver.Exclusive && w.chance(4) && len(l.Name()) > 0 && l.Name()[0] == 's' {
		lock.End = validUntil(l)
		w.out(lock)
		if err := l.Downgrade(ctx); err == nil {
			lock.Mode, lock.Part, lock.Start, lock.End = driver.Shared, 1, lock.End, 0
			w.out(lock)
			w.pause(l)
		}
	}
	lock.End = validUntil(l)
	w.out(lock)
}

// pause lets time pass, for as long as the lease is good.
func (w *stressWorker) pause(l *holdfast.Lease) {
	longest := 3 * time.Millisecond
	if w.chance(20) {
		longest = 100 * time.Millisecond
	}
	select {
	case <-time.After(w.upTo(longest)):
	case <-l.Context().Done():
	}
}

func spanOf(l *holdfast.Lease) span {
	s := span{Name: l.Name(), LeaseID: l.ID(), Token: l.Token(), Mode: l.Mode(), Start: time.Now().UnixNano()}
	if s.Mode == driver.Semaphore {
		s.Limit, s.Permits = l.Limit(), l.Permits()
	}
	return s
}

// validUntil returns the present time, or when the lease ended.
func validUntil(l *holdfast.Lease) int64 {
	now := time.Now()
	if l.Valid() {
		return now.UnixNano()
	}
	return now.Add(min(0, time.Until(l.Deadline()))).UnixNano()
}

// unexpected returns err unless it is one that this test makes happen.
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

// A severed is an engine that can be cut off from its store for good.
type severed struct {
	inner driver.Engine
	off   atomic.Bool
	stop  func() // tells those who wait in vain to go home
}

// cut leaves those who hold a lease the time to find out that it is lost.
func (s *severed) cut() {
	s.off.Store(true)
	time.AfterFunc(2*stressTTL, s.stop)
}

var errCut = fmt.Errorf("%w: cut off", driver.ErrUnavailable)

func (s *severed) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if s.off.Load() {
		return driver.AcquireReply{}, errCut
	}
	return s.inner.Acquire(ctx, req)
}

func (s *severed) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	if !s.off.Load() {
		return s.inner.Extend(ctx, reqs)
	}
	errs := make([]error, len(reqs))
	for i := range errs {
		errs[i] = errCut
	}
	return errs
}

func (s *severed) Release(ctx context.Context, req driver.ReleaseRequest) error {
	if s.off.Load() {
		return errCut
	}
	return s.inner.Release(ctx, req)
}

func (s *severed) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	if !s.off.Load() {
		return s.inner.(driver.Queuer).Refresh(ctx, reqs)
	}
	replies := make([]driver.RefreshReply, len(reqs))
	for i := range replies {
		replies[i].Err = errCut
	}
	return replies
}

func (s *severed) Downgrade(ctx context.Context, req driver.DowngradeRequest) error {
	if s.off.Load() {
		return errCut
	}
	return s.inner.(driver.Downgrader).Downgrade(ctx, req)
}

func (s *severed) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.GatherReply, error) {
	if s.off.Load() {
		return driver.GatherReply{}, errCut
	}
	return s.inner.(driver.Gatherer).AcquireAll(ctx, reqs)
}

func (s *severed) Watch(id driver.LeaseID) driver.Watch { return s.inner.(driver.Queuer).Watch(id) }

func (s *severed) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	return s.inner.Inspect(ctx, name)
}

func (s *severed) Capabilities() driver.Capabilities { return s.inner.Capabilities() }

func (s *severed) Close() error { return nil }
