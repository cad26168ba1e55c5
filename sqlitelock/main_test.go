package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestMain runs the tests, or one of their children: see spawn.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		if err := childMain(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// patience bounds what a test waits for on a loaded machine.
const patience = 20 * time.Second

// open returns an engine that is closed with the test.
func open(t testing.TB, path string) *Engine {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := Open(ctx, path)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// openNew returns an engine on a database of its own.
func openNew(t testing.TB) *Engine {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "locks.db"))
}

// request returns an acquire request of a fresh lease ID.
func request(name string, ttl time.Duration) driver.AcquireRequest {
	return driver.AcquireRequest{
		Name: name, LeaseID: driver.NewLeaseID(), TTL: ttl,
		Holder: driver.Holder{Host: "web-3", PID: 812, Label: "nightly job"},
	}
}

// granted acquires a lock that must be free, and returns the token.
func granted(t testing.TB, e *Engine, req driver.AcquireRequest) uint64 {
	t.Helper()
	reply, err := e.Acquire(t.Context(), req)
	if err != nil || reply.Outcome != driver.Granted {
		t.Fatalf("acquire: %+v, %v; want a grant", reply, err)
	}
	return reply.Token
}

// held fails to acquire a lock, and returns what is in the way.
func held(t testing.TB, e *Engine, req driver.AcquireRequest) driver.InTheWay {
	t.Helper()
	reply, err := e.Acquire(t.Context(), req)
	if err != nil || reply.Outcome != driver.Held {
		t.Fatalf("acquire: %+v, %v; want held", reply, err)
	}
	return reply.InTheWay
}

// release gives up the lease of req, which must be live.
func release(t testing.TB, e *Engine, req driver.AcquireRequest) {
	t.Helper()
	if err := e.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID}); err != nil {
		t.Fatalf("release: %v", err)
	}
}

// wantIs fails t unless err wraps want, or is nil if want is.
func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// eventually polls until ok holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
