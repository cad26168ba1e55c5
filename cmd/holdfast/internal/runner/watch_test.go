//go:build unix

package runner

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestWardenHasTheWholeMargin checks that the warden must kill the job as early as holdfast itself
// would, and no later.
func TestWardenHasTheWholeMargin(t *testing.T) {
	opts := holdfast.AcquireOptions{TTL: ttl, KeepAlive: holdfast.KeepAliveOff}
	lease, err := newClient(t, mem.New(nil)).TryAcquire(t.Context(), "job", &opts)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{Job: Job{Opts: opts}, held: holdOf(lease)}
	if got, want := lease.Deadline().Sub(w.killBy(w.held)), 500*time.Millisecond; got != want {
		t.Errorf("%s are left to kill the job, want %s", got, want)
	}
}
