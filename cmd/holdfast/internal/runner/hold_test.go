//go:build unix

package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// takeAB acquires the locks b and a for a job.
func takeAB(t *testing.T, store *mem.Engine, opts holdfast.AcquireOptions) (Job, hold) {
	t.Helper()
	j := Job{Client: newClient(t, store), Names: []string{"b", "a"}, Opts: opts, Warn: t.Logf}
	held, err := j.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return j, held
}

// TestHoldEndsWithTheFirst checks that the first of several leases to end decides until when all of
// them are good, and when the warden kills the job.
// INVARIANT I3.
func TestHoldEndsWithTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := holdfast.AcquireOptions{TTL: ttl, KeepAlive: holdfast.KeepAliveOff}
		for _, longer := range []string{"a", "b"} {
			j, held := takeAB(t, mem.New(nil), opts)
			deadline := held.Deadline()
			for _, l := range held.leases {
				if l.Name() == longer {
					if err := l.Extend(t.Context(), 2*ttl); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !held.Deadline().Equal(deadline) {
				t.Errorf("%s was extended, and both are trusted until %s, want %s", longer, held.Deadline(), deadline)
			}
			if got, want := deadline.Sub(j.killBy(held)), 500*time.Millisecond; got != want {
				t.Errorf("%s was extended: %s are left to kill the job, want %s", longer, got, want)
			}
			if c := j.command(held, nil); !c.KillAt.Equal(deadline.Add(-500 * time.Millisecond)) {
				t.Errorf("%s was extended, and the warden kills at %s", longer, c.KillAt)
			}
			time.Sleep(time.Until(deadline))
			synctest.Wait()
			if held.Valid() || held.Context().Err() == nil {
				t.Errorf("%s was extended, and the other lease has ended, but not the hold", longer)
			}
			j.release(t.Context(), held)
		}
	})
}

// TestLossOfOneIsLossOfAll checks that the job learns of the loss of any of its leases, and which
// one it was.
func TestLossOfOneIsLossOfAll(t *testing.T) {
	for _, broken := range []string{"a", "b"} {
		synctest.Test(t, func(t *testing.T) {
			store := mem.New(nil)
			j, held := takeAB(t, store, holdfast.AcquireOptions{TTL: ttl})
			time.Sleep(time.Second)
			if _, err := newClient(t, store).Break(t.Context(), broken, &holdfast.BreakOptions{Author: "ada", Reason: "why"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			lease, cause := held.lost()
			switch {
			case held.Context().Err() == nil || held.Valid():
				t.Fatalf("%s is broken, and the hold is good", broken)
			case lease == nil || lease.Name() != broken || !errors.Is(cause, holdfast.ErrBroken):
				t.Errorf("%s is broken, the hold says %v, %v", broken, lease, cause)
			}
			w := &watch{Job: j, held: held}
			if verdict := w.lostVerdict().Error(); !strings.HasPrefix(verdict, ` "`+broken+`": `) {
				t.Errorf("%s is broken, and the message is %q", broken, verdict)
			}
			if j.release(t.Context(), held) == nil {
				t.Error("release does not know of the loss")
			}
			wantFree(t, store, "a", "b")
		})
	}
}

// TestAllOrNone checks that a job that cannot have all of its locks keeps none, whether it waits or
// not, and gets all when they are free.
func TestAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(nil)
		rival, err := newClient(t, store).Acquire(t.Context(), "b", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range []Job{{Try: true}, {Opts: holdfast.AcquireOptions{MaxWait: time.Second}}} {
			j.Client, j.Names, j.Opts.TTL = newClient(t, store), []string{"c", "b", "a"}, ttl
			held, err := j.take(t.Context())
			if err == nil {
				t.Fatalf("try: %t: it has %d of the locks", j.Try, len(held.leases))
			}
			if !errors.Is(err, holdfast.ErrHeld) || !strings.Contains(err.Error(), `acquire "b": held by`) {
				t.Errorf("try: %t: %v", j.Try, err)
			}
			wantFree(t, store, "a", "c")
		}
		j := Job{Client: newClient(t, store), Names: []string{"c", "b", "a"}, Opts: holdfast.AcquireOptions{TTL: ttl}, Warn: t.Logf}
		time.AfterFunc(time.Second, func() { _ = rival.Release(context.Background()) }) // never fails in memory
		held, err := j.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range held.leases {
			names = append(names, l.Name())
		}
		if !slices.Equal(names, j.Names) {
			t.Errorf("it holds %q, want %q", names, j.Names)
		}
		j.release(t.Context(), held)
		wantFree(t, store, "a", "b", "c")
	})
}

// wantFree checks that the names have no holders and no waiters.
func wantFree(t *testing.T, store *mem.Engine, names ...string) {
	t.Helper()
	for _, name := range names {
		lock, err := store.Inspect(t.Context(), name)
		if err != nil || len(lock.Holders)+len(lock.Queue) > 0 {
			t.Errorf("%s: %+v, %v; want nobody", name, lock, err)
		}
	}
}
