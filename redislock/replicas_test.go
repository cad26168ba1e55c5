package redislock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestReplicas acquires locks that count only when both replicas have them, while one replica is
// stopped, and when there is none.
func TestReplicas(t *testing.T) {
	g := testsvc.Sentinel(t)
	e := open(t, g.URL)
	client, err := holdfast.New(e, &holdfast.Options{RequestTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	acquire := func(name string, replicas int) (*holdfast.Lease, error) {
		return client.TryAcquire(t.Context(), name, &holdfast.AcquireOptions{Replicas: replicas})
	}
	both, err := acquire("a", 2)
	if err != nil {
		t.Fatal(err)
	}
	if n := both.Acked(); n != 2 {
		t.Errorf("%d replicas have acknowledged, want 2", n)
	}
	for _, replica := range g.Servers[1:] {
		drivertest.Eventually(t, "the replica has the lock", func() bool {
			value, err := replica.Do("GET", "a")
			return err == nil && value != ""
		})
	}
	if err := both.Release(t.Context()); err != nil {
		t.Error(err)
	}

	g.Servers[1].Stop()
	one, err := acquire("b", 1)
	if err != nil {
		t.Fatalf("with one replica stopped and one asked for: %v", err)
	}
	if n := one.Acked(); n != 1 {
		t.Errorf("%d replicas have acknowledged, want 1", n)
	}
	// Requests that wait for replicas do not delay a lock of another name.
	waiting := make(chan error, 1)
	go func() { // ends with its reply
		_, err := acquire("c", 2)
		waiting <- err
	}()
	for range 5 {
		began := time.Now()
		if err := both.Extend(t.Context(), time.Minute); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("extend of a released lease: %v", err)
		}
		drivertest.Cycle(t, e, "other")
		if took := time.Since(began); took > 400*time.Millisecond {
			t.Errorf("another lock took %s beside one that waits for replicas", took)
		}
	}
	if err := <-waiting; !errors.Is(err, holdfast.ErrNotReplicated) {
		t.Errorf("two replicas asked for while one is stopped: %v, want ErrNotReplicated", err)
	}
	drivertest.Eventually(t, "the lease that does not count is gone", func() bool {
		lock, err := e.Inspect(t.Context(), "c")
		return err == nil && len(lock.Holders) == 0
	})
	g.Servers[1].Cont()
}

// TestDedicatedConnectionsRunOut: if the caller's client has no connection to give away, an acquire
// that waits for replicas ends with its context, and Close does not wait.
func TestDedicatedConnectionsRunOut(t *testing.T) {
	server := testsvc.Redis(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr}, ForceSingleClient: true, DisableCache: true, BlockingPoolSize: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	_, giveBack := client.Dedicate()
	t.Cleanup(giveBack) // before the client is closed
	e, err := New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends with the engine
		defer close(done)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		req := drivertest.Request("a", time.Minute)
		req.Replicas = 1
		if _, err := e.Acquire(ctx, req); err == nil {
			t.Error("an acquire behind replicas without a connection: no error")
		}
		drivertest.Granted(t, e, drivertest.Request("b", time.Minute))
		drivertest.Queued(t, e, "b", time.Minute) // the engine begins to listen
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-done:
	case <-time.After(drivertest.Patience):
		t.Fatal("the engine waits for a connection")
	}
}
