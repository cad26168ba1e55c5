package redislock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestSilentServer checks that every call returns soon after its context ends, with a silent server
// and without one.
func TestSilentServer(t *testing.T) {
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	server.Stop()
	for what := range drivertest.Calls(t.Context(), e, "t") {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		start := time.Now()
		err := drivertest.Calls(ctx, e, "t")[what]()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the context's error", what, err)
		}
		wantIs(t, what, err, nil)
		if d := time.Since(start); d > time.Second {
			t.Errorf("%s returned after %s", what, d)
		}
	}
	server.Kill()
	drivertest.Eventually(t, "a refused connection is seen as such", func() bool {
		_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
		return errors.Is(err, driver.ErrUnavailable)
	})
	for what, call := range drivertest.Calls(t.Context(), e, "t") {
		wantIs(t, what, call(), driver.ErrUnavailable)
	}
	server.Restart()
	drivertest.Eventually(t, "the engine finds the new server", func() bool {
		reply, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
		return err == nil && reply.Outcome == driver.Granted
	})
}

// TestManyCallsOnSilentServer checks the same for calls for which the client's queue has no room.
func TestManyCallsOnSilentServer(t *testing.T) {
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	var wg sync.WaitGroup
	for range 2000 { // the queue holds 1,024
		wg.Go(func() {
			if _, err := e.Inspect(ctx, "t"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the context's error", err)
			}
		})
	}
	wg.Wait()
	if d := time.Since(start); d > silence-time.Second {
		t.Errorf("it took %s", d)
	}
}

// TestCloseDoesNotWait checks Close with calls in flight on a silent server.
func TestCloseDoesNotWait(t *testing.T) {
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	server.Stop()
	done := make(chan error)
	go func() {
		_, err := e.Acquire(context.Background(), drivertest.Request("t", time.Minute))
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a silent server answered %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	start := time.Now()
	_ = e.Close()
	wantIs(t, "the call under way", <-done, nil) // unknown, not ErrClosed
	if d := time.Since(start); d > 4*time.Second {
		t.Errorf("close took %s", d)
	}
}
