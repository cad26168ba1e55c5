package wiretest

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// An everything is an engine with queues, as the Redis engine is.
type everything interface {
	driver.Engine
	driver.Queuer
}

// stats returns how often Redis has carried out each command, including those in scripts.
func stats(t *testing.T, redis *testsvc.Server) map[string]int {
	t.Helper()
	info, err := redis.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, m := range regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`).FindAllStringSubmatch(fmt.Sprint(info), -1) {
		switch m[1] {
		case "info", "ping": // info is ours, and clients send ping by time
		default:
			n, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			all[m[1]] = n
		}
	}
	return all
}

// spent returns how often work makes Redis carry out each command, apart from the first command of
// a connection, because an engine may open a connection at any time.
func spent(t *testing.T, redis *testsvc.Server, work func()) map[string]int {
	t.Helper()
	before := stats(t, redis)
	work()
	after := stats(t, redis)
	delete(after, "hello")
	for command := range after {
		if after[command] -= before[command]; after[command] == 0 {
			delete(after, command)
		}
	}
	return after
}

// TestSameCommands checks that a client through a server costs Redis the same commands as a direct
// client: for a free lock, a held lock, a hand-over, and renewals.
func TestSameCommands(t *testing.T) {
	redis := testsvc.Redis(t)
	near := direct(t, redis)
	far := over(t, serve(t, direct(t, redis)).URL)
	for _, e := range []everything{near, far} { // the first place subscribes the engine
		drivertest.Granted(t, e, drivertest.Request("first", time.Minute))
		_, w := drivertest.Queued(t, e, "first", time.Minute)
		select {
		case <-w.C(): // time to look
		case <-time.After(drivertest.Patience):
			t.Fatal("not subscribed")
		}
		if _, err := redis.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
	}
	const rounds = 20
	for _, work := range []struct {
		what string
		do   func(e everything, name string)
	}{
		{"a pair", func(e everything, name string) { drivertest.Cycle(t, e, name) }},
		{"contended", func(e everything, name string) {
			held := drivertest.Request(name, time.Minute)
			drivertest.Granted(t, e, held)
			drivertest.Held(t, e, drivertest.Request(name, time.Minute))
			drivertest.Release(t, e, held)
		}},
		{"a hand-over", func(e everything, name string) {
			held := drivertest.Request(name, time.Minute)
			drivertest.Granted(t, e, held)
			next, w := drivertest.Queued(t, e, name, time.Minute)
			drivertest.Release(t, e, held)
			drivertest.HandedOver(t, w)
			w.Stop()
			drivertest.Release(t, e, next)
		}},
		{"renewals", func(e everything, name string) {
			var reqs []driver.ExtendRequest
			for i := range 50 {
				held := drivertest.Request(fmt.Sprint(name, "/", i), time.Minute)
				drivertest.Granted(t, e, held)
				reqs = append(reqs, driver.ExtendRequest{Name: held.Name, LeaseID: held.LeaseID, TTL: 2 * time.Minute})
			}
			for i, err := range e.Extend(t.Context(), reqs) {
				if err != nil {
					t.Errorf("renewal %d: %v", i, err)
				}
			}
		}},
	} {
		for _, e := range []everything{near, far} { // load the scripts into Redis
			work.do(e, "warm up "+work.what)
			if _, err := redis.Do("FLUSHALL"); err != nil {
				t.Fatal(err)
			}
		}
		costs := map[bool]map[string]int{}
		for _, through := range []bool{false, true} {
			var e everything = near
			if through {
				e = far
			}
			costs[through] = spent(t, redis, func() {
				for i := range rounds {
					work.do(e, fmt.Sprint(work.what, through, i))
				}
			})
		}
		t.Logf("%s, %d times: %v", work.what, rounds, costs[false])
		if !maps.Equal(costs[false], costs[true]) {
			t.Errorf("%s: directly %v, through a server %v", work.what, costs[false], costs[true])
		}
	}
}

// counted returns an engine that counts its requests to store.
func counted(store driver.Engine, n *atomic.Int64) driver.Engine {
	return &hook.Engine{Forward: driver.Forward{Engine: store}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
		n.Add(1)
		return send()
	}}
}

// TestFailover checks that places keep their order after an engine has lost its server, and that
// the other server sends notices about the places, although it did not create them.
func TestFailover(t *testing.T) {
	redis := testsvc.Redis(t)
	store := direct(t, redis)
	var asked [2]atomic.Int64
	one, two := serve(t, counted(direct(t, redis), &asked[0])), serve(t, counted(direct(t, redis), &asked[1]))
	e := over(t, one.URL, two.URL)
	const waiters = 20
	held := drivertest.Request("job", time.Minute)
	drivertest.Granted(t, store, held)
	places, watches := make([]driver.AcquireRequest, waiters), make([]driver.Watch, waiters)
	for i := range places {
		places[i], watches[i] = drivertest.Queued(t, e, "job", time.Minute)
	}
	gone, left := one, two
	if asked[1].Load() > asked[0].Load() {
		gone, left = two, one
	}
	_ = gone.Listener.Close()
	gone.CloseClientConnections()
	drivertest.Eventually(t, "the engine asks "+left.URL, func() bool {
		_, err := e.Inspect(t.Context(), "job")
		return err == nil
	})
	var took []time.Duration
	for i, w := range watches {
		began := time.Now()
		drivertest.Release(t, store, held)
		for granted := false; !granted; {
			select {
			case <-w.C(): // a notice; the first place may get one early
			case <-time.After(drivertest.Patience):
				t.Fatalf("place %d of %d is told nothing", i+1, waiters)
			}
			reply := e.Refresh(t.Context(), []driver.RefreshRequest{{Name: "job", LeaseID: places[i].LeaseID, WaiterTTL: time.Minute}})[0]
			if reply.Err != nil {
				t.Fatal(reply.Err)
			}
			granted = reply.Outcome == driver.Granted
		}
		took = append(took, time.Since(began))
		held = places[i]
	}
	slices.Sort(took)
	t.Logf("%d places: notified after %s (median), %s at most", waiters, took[waiters/2], took[waiters-1])
}
