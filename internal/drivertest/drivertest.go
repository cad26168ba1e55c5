// Package drivertest has steps for the tests of engines: acquire a lock, release it, wait for a
// notice. A step that fails ends the test at once.
//
// It is for tests of the details of one engine. Package enginetest checks the contract of all
// engines.
package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Patience is how long a test waits for something on a loaded machine.
const Patience = 20 * time.Second

// Open calls open with address, a path or a URL, and returns the engine. It closes the engine at
// the end of the test.
func Open[E driver.Engine](t testing.TB, open func(ctx context.Context, address string) (E, error), address string) E {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	e, err := open(ctx, address)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// Request returns an acquire request with a fresh lease ID.
func Request(name string, ttl time.Duration) driver.AcquireRequest {
	return driver.AcquireRequest{
		Name: name, LeaseID: lockinfo.NewLeaseID(), TTL: ttl,
		Holder: lockinfo.Holder{Host: "web-3", PID: 812, Label: "nightly job"},
	}
}

// Granted acquires a lock that must be free, and returns the token.
func Granted(t testing.TB, e driver.Engine, req driver.AcquireRequest) uint64 {
	t.Helper()
	reply, err := e.Acquire(t.Context(), req)
	if err != nil || reply.Outcome != driver.Granted {
		t.Fatalf("acquire: %+v, %v; want a grant", reply, err)
	}
	return reply.Token
}

// Held requests a lock that must be held, and returns the blocker.
func Held(t testing.TB, e driver.Engine, req driver.AcquireRequest) driver.Blocker {
	t.Helper()
	reply, err := e.Acquire(t.Context(), req)
	if err != nil || reply.Outcome != driver.Held {
		t.Fatalf("acquire: %+v, %v; want held", reply, err)
	}
	return reply.Blocker
}

// Release releases the lease of req, which must be live.
func Release(t testing.TB, e driver.Engine, req driver.AcquireRequest) {
	t.Helper()
	if err := e.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID}); err != nil {
		t.Fatalf("release: %v", err)
	}
}

// Cycle acquires and releases a lock.
func Cycle(t testing.TB, e driver.Engine, name string) {
	t.Helper()
	req := Request(name, time.Minute)
	Granted(t, e, req)
	Release(t, e, req)
}

// Queued gets a place in the queue of a name that is held, with a watch. It stops the watch at the
// end of the test.
func Queued(t testing.TB, e interface {
	driver.Engine
	driver.Queuer
}, name string, waiterTTL time.Duration) (driver.AcquireRequest, driver.Watch) {
	t.Helper()
	req := Request(name, time.Minute)
	req.Queue, req.WaiterTTL = true, waiterTTL
	w := e.Watch(req.LeaseID)
	t.Cleanup(w.Stop)
	if Held(t, e, req).Place == 0 {
		t.Fatal("no place in the queue")
	}
	return req, w
}

// HandedOver waits until w delivers a grant, and returns the token.
func HandedOver(t testing.TB, w driver.Watch) uint64 {
	t.Helper()
	for patience := time.After(Patience); ; {
		select {
		case notice := <-w.C():
			if notice.Token != 0 {
				return notice.Token
			}
		case <-patience:
			t.Fatal("no notice of a grant")
		}
	}
}

// Eventually polls until ok returns true.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", Patience, what)
		}
	}
}

// Sentinels are the driver's errors that callers test for.
func Sentinels() []error {
	return []error{
		driver.ErrLost, driver.ErrUnavailable, driver.ErrInvalid, driver.ErrUnsupported,
		driver.ErrPermission, driver.ErrKindMismatch, driver.ErrClosed,
	}
}

// WantIs fails t unless err wraps want, and none of the driver's other errors.
func WantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	for _, sentinel := range Sentinels() {
		if got := errors.Is(err, sentinel); got != (sentinel == want) {
			t.Errorf("%s: error %v; is %v: %v", what, err, sentinel, got)
		}
	}
}
