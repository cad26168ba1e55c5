package redislock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// breakOf returns a request to break a lease.
func breakOf(name string, token uint64) driver.BreakRequest {
	return driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: name, Token: token, Author: "ada", Reason: `a "reason"`}
}

func TestBreakOfForeignLock(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	do(t, admin, "SET f foreign PX 60000")
	req := breakOf("f", driver.MaxToken)
	req.Older = true
	if _, err := e.Break(t.Context(), req); !errors.Is(err, driver.ErrKindMismatch) {
		t.Errorf("Break of a foreign client's lock: %v, want ErrKindMismatch", err)
	}
	do(t, admin, "RPUSH l x")
	if _, err := e.Break(t.Context(), breakOf("l", 1)); !errors.Is(err, driver.ErrKindMismatch) {
		t.Errorf("Break of a list: %v, want ErrKindMismatch", err)
	}
	if v := text(t, admin, "GET f"); v != "foreign" {
		t.Errorf("the foreign lock is %q now", v)
	}
	if n, _ := do(t, admin, "DBSIZE").ToInt64(); n != 2 {
		t.Errorf("%d keys, want 2", n)
	}
}

// TestBreakOfMany checks that many leases are all broken, in calls of bounded length, and that the
// answer counts them.
func TestBreakOfMany(t *testing.T) {
	const many = 1500
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	var wg sync.WaitGroup
	tokens := make([]uint64, many)
	for i := range tokens {
		wg.Go(func() {
			req := drivertest.Request("a", time.Hour)
			req.Mode = lockinfo.Shared
			tokens[i] = drivertest.Granted(t, e, req)
		})
	}
	wg.Wait()
	writer := drivertest.Request("a", time.Hour)
	queued(t, e, writer, time.Hour, 1)
	do(t, admin, "CONFIG RESETSTAT")
	req := breakOf("a", slices.Max(tokens))
	req.Older = true
	broken, err := e.Break(t.Context(), req)
	if err != nil || len(broken) != many {
		t.Fatalf("Break ended %d leases, %v; want %d", len(broken), err, many)
	}
	stats := commandStats(t, admin)
	calls, inner := stats["evalsha"]+stats["eval"], int64(0)
	for command, n := range stats {
		if command != "evalsha" && command != "eval" {
			inner += n
		}
	}
	t.Logf("%d calls with %d commands", calls, inner)
	if calls < many/128 || inner/calls > 2000 {
		t.Errorf("%d commands in %d calls, want 2,000 in a call at most", inner, calls)
	}
	lock, err := e.Inspect(t.Context(), "a")
	if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != writer.LeaseID {
		t.Errorf("holders %+v, %v; want the writer who waited", lock.Holders, err)
	}
	again, err := e.Break(t.Context(), req)
	if err != nil || len(again) != driver.MaxBreaks {
		t.Errorf("a repeat answers with %d leases, %v; want those %d that are remembered", len(again), err, driver.MaxBreaks)
	}
	drivertest.Release(t, e, writer)
}

// TestSubscribesWhileHolding checks that an engine subscribes to losses only after its client has
// held a lease for longer than short work takes, and on one connection.
func TestSubscribesWhileHolding(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+"?prefix=p:"), plain(t, server)
	listening := func() bool { return slices.Contains(channels(t, admin), "p:holdfast:inbox:0:all") }

	drivertest.Granted(t, e, drivertest.Request("unheard", time.Minute))
	time.Sleep(2 * driver.LossStart)
	if listening() {
		t.Error("the engine listens, although nobody wants to hear")
	}
	stop := e.OnLoss(func(driver.Loss) {})
	defer stop()
	for range 3 { // short work, several times
		req := drivertest.Request("short", time.Minute)
		drivertest.Granted(t, e, req)
		drivertest.Release(t, e, req)
	}
	for i := range 20 {
		drivertest.Granted(t, e, drivertest.Request(fmt.Sprint("long", i), time.Minute))
	}
	drivertest.Eventually(t, "the engine listens", listening)
	if n := strings.Count(text(t, admin, "CLIENT LIST"), "sub=2"); n != 1 {
		t.Errorf("%d connections listen, want 1", n)
	}
	_ = e.Close()
	drivertest.Eventually(t, "nobody listens", func() bool { return len(channels(t, admin)) == 0 })
}

// TestShortWorkDoesNotSubscribe checks that a program whose leases are all short never opens a
// second connection.
func TestShortWorkDoesNotSubscribe(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+"?prefix=p:"), plain(t, server)
	stop := e.OnLoss(func(driver.Loss) {})
	defer stop()
	do(t, admin, "CONFIG RESETSTAT")
	for range 3 {
		req := drivertest.Request("short", time.Minute)
		drivertest.Granted(t, e, req)
		drivertest.Release(t, e, req)
		time.Sleep(2 * driver.LossStart) // its timer finds nothing
	}
	if stats := text(t, admin, "INFO commandstats"); strings.Contains(stats, "cmdstat_subscribe") {
		t.Errorf("short work subscribed: %s", stats)
	}
}

// TestBreakWithoutPubSub checks that a lock is broken without the rights to publish and subscribe,
// too, and that the reason can be read.
func TestBreakWithoutPubSub(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	do(t, admin, "ACL SETUSER app on >pw ~* +@all -@pubsub resetchannels")
	e := open(t, strings.Replace(server.URL, "redis://", "redis://app:pw@", 1))
	stop := e.OnLoss(func(loss driver.Loss) { t.Errorf("received %+v without the right", loss) })
	defer stop()
	req := drivertest.Request("a", time.Minute)
	token := drivertest.Granted(t, e, req)
	time.Sleep(2 * driver.LossStart)
	if broken, err := e.Break(t.Context(), breakOf("a", token)); err != nil || len(broken) != 1 {
		t.Fatalf("Break = %+v, %v", broken, err)
	}
	if err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "a", LeaseID: req.LeaseID, TTL: time.Minute}})[0]; !errors.Is(err, driver.ErrLost) {
		t.Errorf("Extend = %v, want ErrLost", err)
	}
	if broken, err := e.Breaks(t.Context(), "a"); err != nil || len(broken) != 1 || broken[0].Reason != `a "reason"` {
		t.Errorf("Breaks = %+v, %v", broken, err)
	}
}

// TestForgedLossesAreDropped checks that messages of other programs do not crash the engine, and
// are passed on only if they have the form of a loss.
func TestForgedLossesAreDropped(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	losses := make(chan driver.Loss, 10)
	stop := e.OnLoss(func(l driver.Loss) { losses <- l })
	defer stop()
	drivertest.Granted(t, e, drivertest.Request("a", time.Minute))
	drivertest.Eventually(t, "the engine listens", func() bool {
		return slices.Contains(channels(t, admin), "holdfast:inbox:0:all")
	})
	id := string(lockinfo.NewLeaseID())
	for _, m := range []string{
		"", " ", id, id + " ", id + ` {`, id + ` {}`, id + ` []`, id[1:] + ` {"name":"a","author":"x"}`,
		id + ` {"name":"a","author":"` + strings.Repeat("x", driver.MaxAuthor+1) + `"}`, id + ` {"name":"a","author":"\n"}`,
	} {
		do(t, admin, "PUBLISH holdfast:inbox:0:all", m)
	}
	do(t, admin, "PUBLISH holdfast:inbox:0:all", id+` {"name":"a","author":"eve"}`)
	select {
	case l := <-losses:
		if l.Name != "a" || string(l.LeaseID) != id || !errors.Is(l.Err, driver.ErrBroken) {
			t.Errorf("received %+v", l)
		}
	case <-time.After(drivertest.Patience):
		t.Error("a message of the right form was not passed on")
	}
}

// TestDamagedRecordsAreLeftOut checks that records changed by hand are skipped, and that the next
// break works.
func TestDamagedRecordsAreLeftOut(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	do(t, admin, "SET holdfast:{a}:broken:a", "junk\n\t\t\n"+string(lockinfo.NewLeaseID())+" x y z\t{\t}\n")
	if broken, err := e.Breaks(t.Context(), "a"); err != nil || len(broken) != 0 {
		t.Errorf("Breaks = %+v, %v; want none", broken, err)
	}
	token := drivertest.Granted(t, e, drivertest.Request("a", time.Minute))
	if broken, err := e.Break(t.Context(), breakOf("a", token)); err != nil || len(broken) != 1 {
		t.Errorf("Break = %+v, %v; want one", broken, err)
	}
	if broken, err := e.Breaks(t.Context(), "a"); err != nil || len(broken) != 1 {
		t.Errorf("Breaks = %+v, %v; want one", broken, err)
	}
	do(t, admin, "DEL holdfast:{a}:broken:a")
	do(t, admin, "RPUSH holdfast:{a}:broken:a x")
	token = drivertest.Granted(t, e, drivertest.Request("a", time.Minute))
	if broken, err := e.Break(t.Context(), breakOf("a", token)); err != nil || len(broken) != 1 {
		t.Errorf("Break beside a list = %+v, %v; want one", broken, err)
	}
}
