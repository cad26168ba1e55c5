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
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestUnlessEnded: a signal that asks to end ends the context, and what does not end
// with it is not waited for; others end nothing.
func TestUnlessEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		signals <- syscall.SIGUSR1
		n, ended, err := UnlessEnded(t.Context(), signals, supervise.Ends, "over", func(context.Context) (int, error) {
			time.Sleep(time.Second)
			return 7, nil
		})
		if n != 7 || ended != nil || err != nil {
			t.Errorf("%d, %v, %v", n, ended, err)
		}

		signals <- syscall.SIGTERM
		_, ended, err = UnlessEnded(t.Context(), signals, supervise.Ends, "over", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if ended == nil || ended.Status != 143 || ended.Error() != "over" || time.Until(ended.EndBy) != endWithin || err != context.Canceled {
			t.Errorf("%v, %v", ended, err)
		}

		signals <- syscall.SIGTERM
		began := time.Now()
		n, ended, err = UnlessEnded(t.Context(), signals, supervise.Ends, "over", func(context.Context) (int, error) {
			time.Sleep(time.Hour)
			return 7, nil
		})
		if took := time.Since(began); n != 0 || ended == nil || err != context.Canceled || took != endWithin {
			t.Errorf("%d, %v, %v after %s", n, ended, err, took)
		}
		time.Sleep(2 * time.Hour) // for what was not waited for
	})
}

// A lateEngine grants a lock only when its caller has given up.
type lateEngine struct{ driver.Forward }

func (e lateEngine) Acquire(ctx context.Context, r driver.AcquireRequest) (driver.AcquireReply, error) {
	<-ctx.Done()
	return e.Forward.Acquire(context.WithoutCancel(ctx), r)
}

// lateLease has wait wait for a lock that is granted when a signal has ended the wait. The
// lock must be given back, and no command started under it.
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
