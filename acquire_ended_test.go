package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// errShutdown is why a context was canceled.
var errShutdown = errors.New("shutting down")

// endings are the ways in which a caller's context ends a wait, after a minute, and what
// the error is then.
var endings = map[string]struct {
	end  func(context.Context) (context.Context, context.CancelFunc)
	says string
	is   []error
}{
	"deadline": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		},
		"context deadline exceeded", []error{context.DeadlineExceeded},
	},
	"canceled": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Minute, cancel)
			return ctx, cancel
		},
		"context canceled", []error{context.Canceled},
	},
	"with a cause": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Minute, func() { cancel(errShutdown) })
			return ctx, func() { cancel(nil) }
		},
		"context canceled: shutting down", []error{context.Canceled, errShutdown},
	},
}

// TestEndedWaitSaysWhoHolds: a wait that the caller's context ends says who has the lock,
// in one line, and is both: the end of that context, and what a Wait of ours ends with.
func TestEndedWaitSaysWhoHolds(t *testing.T) {
	deploy := holdfast.Holder{Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh"}
	for ending, tt := range endings {
		t.Run(ending, func(t *testing.T) {
			eachWait(t, func(t *testing.T, f *faulty, c *holdfast.Client, form string, call waitForm) {
				other := newClient(t, f, &holdfast.Options{Holder: deploy})
				busy := mustAcquire(t, other, "b", nil)
				if form != "AcquireAll" { // which gets a, and waits for b
					busy.Release(t.Context())
					busy = mustAcquire(t, other, "a", nil)
				}
				time.Sleep(12 * time.Minute)
				ctx, stop := tt.end(t.Context())
				defer stop()
				err := call(ctx, c, 0)
				for _, is := range tt.is {
					wantErr(t, err, is)
				}
				says := `holdfast: acquire "` + busy.Name() + `": ` + tt.says + " while it was held by deploy@web-3 (pid 812, deploy.sh) for 13m (waited 1m)"
				var held *holdfast.HeldError
				var progress *holdfast.InProgressError
				if form == "Once" || form == "OnceBegin" {
					says = strings.Replace(strings.Replace(says, "acquire", "once", 1), "held by", "in progress by", 1)
					if !errors.Is(err, holdfast.ErrInProgress) || errors.Is(err, holdfast.ErrHeld) ||
						!errors.As(err, &progress) || progress.Holder.PID != 812 || progress.Waited != time.Minute {
						t.Errorf("%+v, want ErrInProgress that says who, and not ErrHeld", err)
					}
				} else if !errors.Is(err, holdfast.ErrHeld) || !errors.As(err, &held) || held.Holder.PID != 812 || held.Waited != time.Minute || held.Since != 13*time.Minute {
					t.Errorf("%+v, want ErrHeld that says who", err)
				}
				if err != nil && err.Error() != says {
					t.Errorf("%q\nwant %q", err, says)
				}
				busy.Release(t.Context())
				synctest.Wait()
				nothingLeft(t, f, "a", "b")
			})
		})
	}
}

// TestEndedLeadSaysWhoLeads: so does a candidate whose context ends.
func TestEndedLeadSaysWhoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		leader, c := newClient(t, engine, nil), newClient(t, engine, nil)
		defer mustAcquire(t, leader, "billing", nil).Release(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := holdfast.Lead(ctx, c, "billing", nil, func(context.Context, *holdfast.Lease) error { return nil })
		wantErr(t, err, context.DeadlineExceeded)
		if wantErr(t, err, holdfast.ErrHeld); strings.Count(err.Error(), "deadline exceeded") != 1 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q, want one line that says it once", err)
		}
	})
}

// TestEndedWaitClaimsNoHolder: what the store has not said, or said so long ago that it
// need not be true, is not claimed; that it does not answer is.
func TestEndedWaitClaimsNoHolder(t *testing.T) {
	for _, as := range []func(*faulty) driver.Engine{
		func(f *faulty) driver.Engine { return f },
		func(f *faulty) driver.Engine { return plain{f} },
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaulty()
			c := newClient(t, as(f), nil)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := c.Acquire(ended, "a", nil)
			wantOnly(t, err, context.Canceled)
			_, err = c.AcquireAll(ended, []string{"a", "b"}, nil)
			wantOnly(t, err, context.Canceled)

			// The store was silent from the beginning.
			f.set(hang("acquire"), nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err = c.Acquire(ctx, "a", nil)
			wantOnly(t, err, context.DeadlineExceeded)
			cancel()
			f.heal()

			// It falls silent after it has said who has the lock.
			for _, dead := range deadStores {
				release := foreign(t, f, "a", time.Hour)
				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
				waiter := enqueue(ctx, c, "a", nil)
				time.Sleep(time.Second)
				f.set(dead("acquire", "refresh"), nil)
				err = (<-waiter).err
				wantOnly(t, err, context.DeadlineExceeded, holdfast.ErrUnavailable)
				if s := err.Error(); !strings.HasPrefix(s, `holdfast: acquire "a": context deadline exceeded: store is unavailable`) || !strings.Contains(s, "before that held by") {
					t.Errorf("%q, want that the store is away, and who had the lock before", s)
				}
				cancel()
				f.heal()
				release()
			}
		})
	}
}

// wantOnly fails t unless err is each of want and, of the errors of package holdfast that
// a wait may end with, none else.
func wantOnly(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, is := range want {
		wantErr(t, err, is)
	}
	for _, is := range []error{
		context.Canceled, context.DeadlineExceeded, holdfast.ErrHeld, holdfast.ErrInProgress, holdfast.ErrUnavailable, holdfast.ErrLost,
		holdfast.ErrOutcomeUnknown, holdfast.ErrClosed,
	} {
		wanted := false
		for _, w := range want {
			wanted = wanted || w == is
		}
		if !wanted && errors.Is(err, is) {
			t.Errorf("error = %v: it is also %v", err, is)
		}
	}
}
