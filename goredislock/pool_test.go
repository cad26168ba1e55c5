package goredislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// poolOfOne limits a client to one connection.
func poolOfOne(o *redis.Options) { o.PoolSize = 1 }

// occupy keeps a connection of the client's pool busy until its result is called.
func occupy(t *testing.T, c, admin *redis.Client) (leave func()) {
	t.Helper()
	var busy sync.WaitGroup
	busy.Go(func() { _ = c.BLPop(context.Background(), 0, "jobs").Err() })
	drivertest.Eventually(t, "the connection is in use", func() bool {
		return strings.Contains(do(t, admin, "CLIENT LIST").(string), "cmd=blpop")
	})
	leave = sync.OnceFunc(func() {
		do(t, admin, "LPUSH jobs x")
		busy.Wait()
	})
	t.Cleanup(leave)
	return leave
}

// TestExhaustedPool checks that a lease whose renewals get no connection reports it in time, naming
// the pool, and ends at its deadline. INVARIANTS I3, I9.
func TestExhaustedPool(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	c, admin := client(t, server, poolOfOne), client(t, server, nil)
	failures := make(chan holdfast.Event, 100)
	locks, err := holdfast.New(engine(t, c, nil), &holdfast.Options{TTL: 2 * time.Second, Observer: func(e holdfast.Event) {
		if e.Kind == holdfast.RenewFailed {
			failures <- e
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close() }()
	lease, err := locks.Acquire(t.Context(), "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	leave := occupy(t, c, admin)
	select {
	case e := <-failures:
		if !lease.Valid() || !errors.Is(e.Err, holdfast.ErrUnavailable) || !strings.Contains(e.Err.Error(), "pool became free") {
			t.Errorf("told with %s left: %v", lease.Remaining(), e.Err)
		}
	case <-lease.Context().Done():
		t.Error("the lease ended, and no holder was notified that it could not be renewed")
	}
	<-lease.Context().Done()
	why := context.Cause(lease.Context())
	if !errors.Is(why, holdfast.ErrLost) || !strings.Contains(why.Error(), "raise PoolSize") || lease.Valid() {
		t.Errorf("the lease ends with %v", why)
	}
	leave()
	drivertest.Eventually(t, "the store's lease has ended", func() bool { return do(t, admin, "EXISTS a") == int64(0) })
	next, err := locks.Acquire(t.Context(), "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPoolTimeout checks that a request that exceeds the pool's own time limit was certainly not
// sent.
func TestPoolTimeout(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	c := client(t, server, func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 50*time.Millisecond })
	admin := client(t, server, nil)
	e := engine(t, c, nil)
	drivertest.Cycle(t, e, "a")
	occupy(t, c, admin)
	for what, call := range calls(t.Context(), e, "a") {
		err := call()
		drivertest.WantIs(t, what, err, driver.ErrUnavailable)
		if err != nil && !strings.Contains(err.Error(), "no connection of the client's pool became free") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := do(t, admin, "EXISTS a"); n != int64(0) {
		t.Error("something was sent")
	}
}

// TestContextEndsInThePool checks that a caller that gives up while others have the connections
// returns at once, and that its request is never sent.
func TestContextEndsInThePool(t *testing.T) {
	server := testsvc.Redis(t)
	c, admin := client(t, server, poolOfOne), client(t, server, nil)
	e := engine(t, c, nil)
	drivertest.Cycle(t, e, "a")
	leave := occupy(t, c, admin)
	var all sync.WaitGroup
	for what := range calls(t.Context(), e, "a") {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			call := calls(ctx, e, "a")[what] // under this context
			began := time.Now()
			if err := call(); err == nil {
				t.Errorf("%s: no error", what)
			}
			if took := time.Since(began); took > drivertest.Patience/2 {
				t.Errorf("%s: it took %s", what, took)
			}
		})
	}
	all.Wait()
	before := do(t, admin, "INFO commandstats").(string)
	leave()
	drivertest.Cycle(t, e, "b") // follows all requests that were sent
	count := func(stats string) (n int) {
		_, after, _ := strings.Cut(stats, "cmdstat_evalsha:calls=")
		_, _ = fmt.Sscan(strings.Split(after, ",")[0], &n)
		return n
	}
	// A plain acquire and a plain release may be in flight without a caller; they are cancelled.
	if n := count(do(t, admin, "INFO commandstats").(string)) - count(before); n > 4 {
		t.Errorf("%d scripts ran for those who had left", n-2)
	}
}

// TestContextEndsOnHungServer checks that a caller that gives up while the server hangs returns at
// once, and that its requests affect no other caller when the server continues.
func TestContextEndsOnHungServer(t *testing.T) {
	server := testsvc.Redis(t)
	e := engine(t, client(t, server, poolOfOne), nil)
	drivertest.Cycle(t, e, "a")
	server.Stop()
	var all sync.WaitGroup
	for what := range calls(t.Context(), e, "b") {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			if err := calls(ctx, e, "b")[what](); err == nil {
				t.Errorf("%s: no error", what)
			}
			if took := time.Since(began); took > drivertest.Patience/2 {
				t.Errorf("%s: it took %s", what, took)
			}
		})
	}
	all.Wait()
	server.Cont()
	drivertest.Cycle(t, e, "a")
}

// TestNoConnectionIsHeld checks that leases and waiters keep no connection of the pool.
func TestNoConnectionIsHeld(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	c := client(t, server, nil)
	e := engine(t, c, nil)
	for i := range 20 {
		drivertest.Granted(t, e, drivertest.Request(fmt.Sprint("n/", i), time.Minute))
		drivertest.Queued(t, e, fmt.Sprint("n/", i), time.Minute)
	}
	replicated := drivertest.Request("replicated", time.Second)
	replicated.Replicas = 1
	if reply, err := e.Acquire(t.Context(), replicated); err != nil || reply.Outcome != driver.Granted || reply.Acked != 0 {
		t.Errorf("acquire with a replica that is not there: %+v, %v", reply, err)
	}
	drivertest.Eventually(t, "all connections are idle, and one listens", func() bool {
		s := c.PoolStats()
		return s.TotalConns == s.IdleConns && s.PubSubStats.Active == 1
	})
}

// TestSilentConnections checks that no lease is lost when all connections fall silent, if the
// client gives each of them up soon. INVARIANT I9.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	p := faultproxy.New(t, server.Addr)
	c := through(t, p, nil)
	var warm []*redis.Conn
	for range 3 {
		conn := c.Conn()
		if err := conn.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		warm = append(warm, conn)
	}
	for _, conn := range warm {
		_ = conn.Close() // returns it to the pool
	}
	locks, err := holdfast.New(engine(t, c, nil), &holdfast.Options{TTL: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close() }()
	lease, err := locks.Acquire(t.Context(), "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	first := lease.Deadline()
	p.BlackHoleConns()
	drivertest.Eventually(t, "the lease lasts beyond its first deadline", func() bool {
		if err := context.Cause(lease.Context()); err != nil {
			t.Fatalf("the lease ended: %v", err)
		}
		return time.Now().After(first.Add(100 * time.Millisecond))
	})
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
