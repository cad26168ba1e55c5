//go:build unix

package runner

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestUnlessEnded checks that a signal to end ends the context, and that UnlessEnded does not wait
// for a function that continues. Other signals end nothing.
func TestUnlessEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		signals <- syscall.SIGUSR1
		n, ended, err := UnlessEnded(t.Context(), signals, "over", func(context.Context) (int, error) {
			time.Sleep(time.Second)
			return 7, nil
		})
		if n != 7 || ended != nil || err != nil {
			t.Errorf("%d, %v, %v", n, ended, err)
		}

		signals <- syscall.SIGTERM
		_, ended, err = UnlessEnded(t.Context(), signals, "over", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if ended == nil || ended.Status != 143 || ended.Error() != "over" || time.Until(ended.EndBy) != endWithin || err != context.Canceled {
			t.Errorf("%v, %v", ended, err)
		}

		signals <- syscall.SIGTERM
		n, ended, err = UnlessEnded(t.Context(), signals, "over", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 7, nil
		})
		if n != 7 || ended == nil || time.Until(ended.EndBy) != releaseWithin || err != nil {
			t.Errorf("%d, %v, %v", n, ended, err)
		}

		signals <- syscall.SIGTERM
		began := time.Now()
		n, ended, err = UnlessEnded(t.Context(), signals, "over", func(context.Context) (int, error) {
			time.Sleep(time.Hour)
			return 7, nil
		})
		if took := time.Since(began); n != 0 || ended == nil || err != context.Canceled || took != endWithin {
			t.Errorf("%d, %v, %v after %s", n, ended, err, took)
		}
		time.Sleep(2 * time.Hour) // until the function has returned
	})
}

// A lateEngine grants a lock only when its caller has given up.
type lateEngine struct{ driver.Forward }

func (e lateEngine) Acquire(ctx context.Context, r driver.AcquireRequest) (driver.AcquireReply, error) {
	<-ctx.Done()
	return e.Forward.Acquire(context.WithoutCancel(ctx), r)
}

// lateLease makes wait wait for a lock that is granted after a signal has ended the wait. The lock
// must be released, and no command started under it.
func lateLease(t *testing.T, wait func(context.Context, Job) error) {
	t.Helper()
	store := mem.New(nil)
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	began := time.Now()
	err := wait(t.Context(), Job{
		Client: newClient(t, lateEngine{driver.Forward{Engine: store}}), Names: []string{"job"}, Signals: signals, Warn: t.Logf,
		Opts: holdfast.AcquireOptions{TTL: time.Hour}, Args: []string{"command"},
	})
	if e := (*exit.Error)(nil); !errors.As(err, &e) || e.Status != 143 {
		t.Errorf("the wait ends with %v", err)
	}
	if time.Since(began) >= endWithin {
		return // the machine was too busy to release it
	}
	if lock, err := store.Inspect(t.Context(), "job"); err != nil || len(lock.Holders) != 0 {
		t.Errorf("the lock is %+v, %v", lock, err)
	}
}

// A slowEngine needs some time for a release, which fails if its context ends before.
type slowEngine struct {
	driver.Forward
	takes time.Duration
}

func (e slowEngine) Release(ctx context.Context, r driver.ReleaseRequest) error {
	select {
	case <-time.After(e.takes):
		return e.Forward.Release(ctx, r)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestPartIsReleased: a signal ends a wait for several locks. The wait releases the locks that it
// has, even if the store needs a while for that, but does not wait for a store that hangs.
func TestPartIsReleased(t *testing.T) {
	for takes, want := range map[time.Duration]struct {
		took time.Duration
		left int
	}{
		10 * endWithin: {10 * endWithin, 0},
		time.Hour:      {releaseWithin, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := mem.New(nil)
			if _, err := newClient(t, store).TryAcquire(t.Context(), "stock", nil); err != nil {
				t.Fatal(err)
			}
			signals := make(chan os.Signal, 1)
			time.AfterFunc(time.Minute, func() { signals <- syscall.SIGTERM })
			began := time.Now()
			_, err := Job{
				Client: newClient(t, slowEngine{driver.Forward{Engine: store}, takes}), Names: []string{"orders", "stock"}, Signals: signals, Warn: t.Logf,
			}.acquire(t.Context())
			if took := time.Since(began) - time.Minute; !exit.Is(err, 143) || took != want.took {
				t.Errorf("the wait ends with %v after %s, want %s", err, took, want.took)
			}
			if lock, err := store.Inspect(t.Context(), "orders"); err != nil || len(lock.Holders) != want.left {
				t.Errorf("a store that takes %s has the lock %+v, %v", takes, lock, err)
			}
		})
	}
}

func TestLateLeaseIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lateLease(t, func(ctx context.Context, j Job) error { _, err := j.acquire(ctx); return err })
		lateLease(t, func(ctx context.Context, j Job) error { _, err := Once(ctx, OnceJob{Job: j}); return err })
	})
	for range 10 { // the signal and the lease come in any order
		lateLease(t, func(ctx context.Context, j Job) error {
			return Elect(ctx, Election{Job: j, NewLine: func() *show.WaitLine { return nil }})
		})
	}
}
