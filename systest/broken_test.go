package systest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// brokenTTL is so long that no renewal reveals a break by chance.
const brokenTTL = 10 * time.Minute

// A heard is what a holder reports after its lock was broken.
type heard struct {
	At     time.Time // by the host's clock, which both processes read
	Broken bool
	Author string
	Reason string
	Err    string
}

// holdUntilBroken is a job: the crew acquires locks, one after the other, and reports when and why
// the context of each lease ended.
func holdUntilBroken(ctx context.Context, j traffic.Job) (any, error) {
	client, engine, err := j.Client(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	for n := 0; ; n++ {
		lease, err := client.Acquire(ctx, fmt.Sprint(j.Name, n), &holdfast.AcquireOptions{TTL: brokenTTL})
		if err != nil {
			return nil, nil // ctx was cancelled
		}
		if n == 0 {
			time.Sleep(4 * driver.LossStart) // until the engine listens for losses
		}
		j.Out(lease.Token())
		<-lease.Context().Done()
		h := heard{At: time.Now(), Err: fmt.Sprint(context.Cause(lease.Context()))}
		var broken *holdfast.BrokenError
		if h.Broken = errors.As(context.Cause(lease.Context()), &broken); h.Broken {
			h.Author, h.Reason = broken.Author, broken.Reason
		}
		j.Out(h)
		_ = lease.Release(ctx)
	}
}

// TestBreakIsHeard checks that a holder in another process learns of a break long before its next
// renewal, even if it never waited for a lock. The limit is 100 ms, plus pauses of the machine.
func TestBreakIsHeard(t *testing.T) {
	for what, url := range map[string]func(t *testing.T) string{
		"Redis": func(t *testing.T) string { return newStore(t).server.URL },
		"file":  func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "locks.db") },
	} {
		t.Run(what, func(t *testing.T) {
			const limit = 100 * time.Millisecond
			store := url(t)
			engine, err := traffic.Open(t.Context(), traffic.Redislock, store)
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			admin := newClient(t, engine, nil)
			holder := traffic.Start(t, traffic.Job{Job: "hold until broken", Store: store, Name: "held/"})
			holder.Begin()
			pause := testsvc.WatchPauses()
			var took []time.Duration
			for n := range soak.Count(20, 500) {
				var token uint64
				holder.Next(&token)
				began := time.Now()
				broken, err := admin.Break(t.Context(), fmt.Sprint("held/", n), &holdfast.BreakOptions{Author: "ada", Reason: "gone"})
				if err != nil || len(broken) != 1 || broken[0].Token != token {
					t.Fatalf("Break = %+v, %v; want the lease with token %d", broken, err, token)
				}
				var h heard
				holder.Next(&h)
				if !h.Broken || h.Author != "ada" || h.Reason != "gone" {
					t.Errorf("the context ended with %s, want that ada broke it", h.Err)
				}
				took = append(took, h.At.Sub(began))
			}
			paused := pause()
			holder.Kill()
			slices.Sort(took)
			worst := took[len(took)-1]
			if worst > limit+2*paused {
				t.Errorf("heard after %s at worst, want %s at most; the machine paused for %s", worst, limit, paused)
			}
			report.Row(t, "a lock is broken, "+what, "the holder's context ends within 100 ms, with author and reason",
				"%d breaks, one after the other: after %s (median), %s at most", len(took), took[len(took)/2].Round(10*time.Microsecond), worst.Round(100*time.Microsecond))
		})
	}
}
