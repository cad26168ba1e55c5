//go:build unix

package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A changing store changes right after its first Inspect.
type changing struct {
	driver.Forward
	change func()
}

func (c *changing) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	lock, err := c.Forward.Inspect(ctx, name)
	if f := c.change; f != nil {
		c.change = nil
		f()
	}
	return lock, err
}

// TestBreakLeavesSuccessor: the holder that break has seen releases the lock before break reaches
// the store, and another client has the lock by then. That client keeps the lock.
// INVARIANT I6.
func TestBreakLeavesSuccessor(t *testing.T) {
	ctx, store := t.Context(), mem.New(nil)
	take := func() driver.AcquireRequest {
		req := driver.AcquireRequest{Name: "job", LeaseID: lockinfo.NewLeaseID(), TTL: time.Hour}
		if reply, err := store.Acquire(ctx, req); err != nil || reply.Outcome != driver.Granted {
			t.Fatalf("%+v, %v", reply, err)
		}
		return req
	}
	first := take()
	var next driver.AcquireRequest
	client, err := holdfast.New(&changing{Forward: driver.Forward{Engine: store}, change: func() {
		if err := store.Release(ctx, driver.ReleaseRequest{Name: "job", LeaseID: first.LeaseID}); err != nil {
			t.Fatal(err)
		}
		next = take()
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var out strings.Builder
	a := &app{stdout: &out}
	if err := a.breakLock(ctx, client, "job", holdfast.BreakOptions{Author: "ada", Reason: "why"}); err == nil {
		t.Error("no error, want status 1")
	}
	if out.String() != "job was released meanwhile\n" {
		t.Errorf("it says %q", out.String())
	}
	if lock, err := store.Inspect(ctx, "job"); err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != next.LeaseID {
		t.Errorf("the lock is %+v, %v; want that of the successor", lock, err)
	}
}
