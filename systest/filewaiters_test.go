package systest

import (
	"context"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/sqlitelock"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// TestManyWaitersOfAFile checks many goroutines of one process that wait for one name in a file.
// All keep their places, and waiting takes almost no processor time. The time is judged only in a
// soak.
func TestManyWaitersOfAFile(t *testing.T) {
	const share = 0.05 // of a core
	waiters, length := soak.Count(100, 2000), soak.For(2*time.Second, 30*time.Second)
	engine, err := sqlitelock.Open(t.Context(), filepath.Join(t.TempDir(), "locks.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	client, err := holdfast.New(engine, &holdfast.Options{SharedEngine: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lease, err := client.Acquire(t.Context(), "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer leave()
	for range waiters {
		wg.Go(func() { _, _ = client.Acquire(ctx, "t", nil) })
	}
	queued := func() int {
		lock, err := engine.Inspect(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		return lock.QueueLength
	}
	for limit := time.Now().Add(3 * time.Minute); queued() < waiters; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d of %d have a place after three minutes", queued(), waiters)
		}
	}
	began, before := time.Now(), ownTime(t)
	time.Sleep(length)
	cost := float64(ownTime(t)-before) / float64(time.Since(began))
	left := queued()
	report.Row(t, "many goroutines of a process wait for one name in a file", "all keep their places, under 5 % of a core",
		"%d waiters for %s: %d places, %.2f %% of a core", waiters, length, left, 100*cost)
	if left != waiters || !lease.Valid() {
		t.Errorf("%d places of %d are left; the holder's lease is valid: %t", left, waiters, lease.Valid())
	}
	if soak.Long() && cost > share {
		t.Errorf("%d waiters use %.1f %% of a core, want %.0f %% at most", waiters, 100*cost, 100*share)
	}
}

// ownTime returns the processor time that this process has used.
func ownTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
