package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestOneSubscriptionConnection: however many watches, and none is left.
func TestOneSubscriptionConnection(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	connections := func() int { return strings.Count(text(t, admin, "CLIENT LIST"), "cmd=") }
	before := connections()
	subscribers := func(name string) int64 {
		n, err := do(t, admin, "PUBSUB NUMSUB", keyspace{}.channel(name)).ToArray()
		if err != nil || len(n) != 2 {
			t.Fatalf("numsub: %v, %v", n, err)
		}
		count, err := n[1].AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	var watches []driver.Watch
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			w, err := e.Watch(t.Context(), fmt.Sprint("n", i%20))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			watches = append(watches, w)
		})
	}
	wg.Wait()
	if n := subscribers("n0"); n != 1 {
		t.Errorf("%d subscriptions of one name, want 1", n)
	}
	if n := connections() - before; n != 1 {
		t.Errorf("%d connections for the watches, want 1", n)
	}
	for _, w := range watches {
		if !drivertest.Silent(w) {
			t.Error("a signal without a release")
		}
		w.Stop()
		w.Stop()
	}
	drivertest.Eventually(t, "no subscription is left", func() bool { return subscribers("n0")+subscribers("n19") == 0 })
	// The connection is still of use.
	w := drivertest.Watch(t, e, "n0")
	drivertest.Cycle(t, e, "n0")
	drivertest.Signalled(t, w)
}

// TestWatchAndStopAgain: quick changes of mind neither lose a subscription nor
// leave one.
func TestWatchAndStopAgain(t *testing.T) {
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for range 25 {
				name := fmt.Sprint("n", g%2)
				w, err := e.Watch(t.Context(), name)
				if err != nil {
					t.Error(err)
					return
				}
				reply, err := e.Acquire(t.Context(), drivertest.Request(fmt.Sprint(name, g), time.Minute))
				_ = reply
				if err != nil {
					t.Error(err)
				}
				w.Stop()
			}
		})
	}
	wg.Wait()
	w := drivertest.Watch(t, e, "n0")
	drivertest.Cycle(t, e, "n0")
	drivertest.Signalled(t, w)
}

// TestLostSubscription: after the connection was cut every watch is signalled,
// and works again.
func TestLostSubscription(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	a, b := drivertest.Watch(t, e, "a"), drivertest.Watch(t, e, "b")
	for range 3 {
		if n := number(t, admin, "CLIENT KILL TYPE pubsub"); n != 1 {
			t.Fatalf("%d subscription connections killed, want 1", n)
		}
		drivertest.Signalled(t, a)
		drivertest.Signalled(t, b)
		drivertest.Cycle(t, e, "a")
		drivertest.Signalled(t, a)
		if !drivertest.Silent(b) {
			t.Error("a release of a signals b")
		}
	}
	server.Restart()
	drivertest.Signalled(t, a)
	drivertest.Signalled(t, b)
	drivertest.Cycle(t, e, "b")
	drivertest.Signalled(t, b)
}

// TestWatchWhileDown: who asks for a watch while the server is gone is told.
func TestWatchWhileDown(t *testing.T) {
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	old := drivertest.Watch(t, e, "t")
	server.Kill()
	drivertest.Eventually(t, "a watch fails", func() bool {
		w, err := e.Watch(t.Context(), "t")
		if err == nil { // the loss was not noticed yet
			w.Stop()
		}
		return errors.Is(err, driver.ErrUnavailable)
	})
	server.Restart()
	drivertest.Signalled(t, old)
	drivertest.Cycle(t, e, "t")
	drivertest.Signalled(t, old)
}

// TestKeepForIsPublished, because it may close the name for less long than
// the lease would have.
func TestKeepForIsPublished(t *testing.T) {
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	w := drivertest.Watch(t, e, "t")
	req := drivertest.Request("t", time.Hour)
	drivertest.Granted(t, e, req)
	err := e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID, KeepFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Signalled(t, w)
	if way := drivertest.Held(t, e, drivertest.Request("t", time.Minute)); way.ExpiresIn > time.Minute {
		t.Errorf("kept closed for %s, want a minute", way.ExpiresIn)
	}
}

func TestList(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+"?prefix=p*:"), plain(t, server)
	other := open(t, server.URL+"?prefix=pp:")
	drivertest.Granted(t, other, drivertest.Request("a/elsewhere", time.Minute))
	const many = 500
	want := map[string]uint64{}
	for i := range many {
		name := fmt.Sprintf("a/%d", i)
		want[name] = drivertest.Granted(t, e, drivertest.Request(name, time.Minute))
	}
	for _, odd := range []string{"a/}{", "a/{x}", "a/*", "a/[b]", "a/ :fence:", "a/}:fence:b", `a/\`} {
		want[odd] = drivertest.Granted(t, e, drivertest.Request(odd, time.Minute))
	}
	drivertest.Granted(t, e, drivertest.Request("b/other", time.Minute))
	drivertest.Cycle(t, e, "a/released")
	drivertest.Granted(t, e, drivertest.Request("a/type", time.Minute))
	do(t, admin, "DEL p*:a/type")
	do(t, admin, "LPUSH p*:a/type x")
	do(t, admin, "SET p*:holdfast:{junk}:fence:a/junk 1")

	do(t, admin, "CONFIG RESETSTAT")
	got := map[string]uint64{}
	for lock, err := range e.List(t.Context(), "a/") {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := got[lock.Name]; twice || len(lock.Holders) != 1 {
			t.Errorf("listed: %+v, before: %v", lock, twice)
			continue
		}
		got[lock.Name] = lock.Holders[0].Token
	}
	stats := commandStats(t, admin)
	if stats["keys"] != 0 || stats["scan"] < many/scanStep {
		t.Errorf("commands: %v", stats)
	}
	for name, token := range want {
		if got[name] != token {
			t.Errorf("%q has token %d, want %d", name, got[name], token)
		}
		delete(got, name)
	}
	if len(got) != 0 {
		t.Errorf("also listed: %v", got)
	}
	for _, prefix := range []string{"a/*", "a/[b]", `a/\`, "a/}:fence"} {
		n := 0
		for lock, err := range e.List(t.Context(), prefix) {
			if n++; err != nil || !strings.HasPrefix(lock.Name, prefix) {
				t.Errorf("prefix %s: %q, %v", prefix, lock.Name, err)
			}
		}
		if n != 1 {
			t.Errorf("prefix %s: %d locks, want 1", prefix, n)
		}
	}
	for _, err := range e.List(t.Context(), "") {
		if err != nil {
			t.Error(err)
		}
		break // must not go on
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range e.List(ctx, "") {
		if n++; n == 1 {
			cancel()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if n == 0 || n > many {
		t.Errorf("%d locks after the context ended", n)
	}
}

// TestExtendAcrossSlots: a batch with names in many slots, on a cluster that
// refuses a script over two of them.
func TestExtendAcrossSlots(t *testing.T) {
	server := cluster(t)
	client := clusterClient(t, server)
	e := New(client, nil)
	defer func() { _ = e.Close() }()
	var batch []driver.ExtendRequest
	for i := range 100 {
		req := drivertest.Request(fmt.Sprint("n", i), time.Minute)
		if i%10 == 9 {
			req.LeaseID = driver.NewLeaseID()
		} else {
			drivertest.Granted(t, e, req)
		}
		batch = append(batch, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: time.Hour})
	}
	for i, err := range e.Extend(t.Context(), batch) {
		if i%10 == 9 {
			wantIs(t, "extend of no lease", err, driver.ErrLost)
		} else if err != nil {
			t.Errorf("extend %d: %v", i, err)
		}
	}
	// Without a cluster client the server's own words become advice.
	single, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	wrong := New(single, nil)
	defer func() { _ = wrong.Close() }()
	wantIs(t, "extend", wrong.Extend(t.Context(), batch)[0], driver.ErrUnavailable)
}
