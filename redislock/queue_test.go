package redislock

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// shared returns a request with a fresh lease ID.
func shared(name string, ttl time.Duration) driver.AcquireRequest {
	req := drivertest.Request(name, ttl)
	req.Mode = lockinfo.Shared
	return req
}

// permits returns a request for some permits of three.
func permits(name string, n int, ttl time.Duration) driver.AcquireRequest {
	req := drivertest.Request(name, ttl)
	req.Mode = lockinfo.Permits(n, 3)
	return req
}

// queued gives req a place, checks it, and returns req.
func queued(t testing.TB, e *Engine, req driver.AcquireRequest, waiterTTL time.Duration, place int) driver.AcquireRequest {
	t.Helper()
	req.Queue, req.WaiterTTL = true, waiterTTL
	if way := drivertest.Held(t, e, req); way.Place != place {
		t.Fatalf("place %d, want %d", way.Place, place)
	}
	return req
}

// refresh refreshes the place of req.
func refresh(t testing.TB, e *Engine, req driver.AcquireRequest) driver.RefreshReply {
	t.Helper()
	ttl := max(req.WaiterTTL, 10*time.Millisecond)
	return e.Refresh(t.Context(), []driver.RefreshRequest{{Name: req.Name, LeaseID: req.LeaseID, WaiterTTL: ttl}})[0]
}

// handed fails t unless the waiting req was granted the lock.
func handed(t testing.TB, e *Engine, req driver.AcquireRequest) uint64 {
	t.Helper()
	reply := refresh(t, e, req)
	if reply.Err != nil || reply.Outcome != driver.Granted {
		t.Fatalf("refresh: %+v, want a grant", reply)
	}
	return reply.Token
}

// stillWaits fails t unless req has the given place.
func stillWaits(t testing.TB, e *Engine, req driver.AcquireRequest, place int) {
	t.Helper()
	if reply := refresh(t, e, req); reply.Err != nil || reply.Outcome != driver.Held || reply.Place != place {
		t.Fatalf("refresh: %+v, want place %d", reply, place)
	}
}

// extend lengthens the lease of req.
func extend(t testing.TB, e *Engine, req driver.AcquireRequest, ttl time.Duration) error {
	t.Helper()
	return e.Extend(t.Context(), []driver.ExtendRequest{{Name: req.Name, LeaseID: req.LeaseID, TTL: ttl}})[0]
}

// TestForeignWithQueue checks that foreign clients, which have no place in the queue, are noticed
// by the next refresh.
func TestForeignWithQueue(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)

	// They delete the lock: the head is next, even if another client is faster.
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, holder)
	first := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	second := queued(t, e, shared("t", time.Minute), time.Minute, 2)
	do(t, admin, "DEL t")
	stillWaits(t, e, second, 1)
	handed(t, e, first)
	wantIs(t, "extend of a deleted lock", extend(t, e, holder, time.Minute), driver.ErrLost)

	// They delete the lock and take it.
	do(t, admin, "DEL t")
	if got := text(t, admin, "SET t mine NX PX 60000"); got != "OK" {
		t.Fatalf("SET NX: %q", got)
	}
	third := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 2)
	stillWaits(t, e, second, 1)
	if way := drivertest.Held(t, e, shared("t", time.Minute)); way.Holder.Host != "" || way.ExpiresIn <= 50*time.Second {
		t.Errorf("in the way: %+v", way)
	}
	do(t, admin, "DEL t")
	handed(t, e, second)

	// While several hold the lock they are blocked, and a deletion ends all leases.
	other := shared("t", time.Minute)
	other.Queue, other.WaiterTTL = true, time.Minute
	if way := drivertest.Held(t, e, other); way.Place != 2 {
		t.Errorf("a shared request behind an exclusive one: %+v", way)
	}
	if got := text(t, admin, "SET t mine NX PX 60000"); got != "" {
		t.Errorf("SET NX beside a shared lease: %q, want nil", got)
	}
	do(t, admin, "DEL t")
	if got := text(t, admin, "SET t mine NX PX 60000"); got != "OK" {
		t.Fatalf("SET NX: %q", got)
	}
	wantIs(t, "extend of a deleted lock", extend(t, e, second, time.Minute), driver.ErrLost)
	do(t, admin, "DEL t")
	wantIs(t, "extend of a deleted lock", extend(t, e, second, time.Minute), driver.ErrLost)
	stillWaits(t, e, other, 1)
	handed(t, e, third)
}

// TestForeignIsOfEveryKind checks that a foreign lock counts as one of every kind, and that the
// places behind it are of one kind.
func TestForeignIsOfEveryKind(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	do(t, admin, "SET t mine")
	drivertest.Held(t, e, drivertest.Request("t", time.Minute))
	if way := drivertest.Held(t, e, permits("t", 1, time.Minute)); way.ExpiresIn != lockinfo.Never {
		t.Errorf("a lock with no expiry: %+v", way)
	}
	first := queued(t, e, permits("t", 2, time.Minute), time.Minute, 1)
	_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
	wantIs(t, "a request of another kind", err, driver.ErrKindMismatch)
	do(t, admin, "DEL t")
	handed(t, e, first)
}

// TestDeadHead checks that an expired place at the head blocks neither the lock nor its kind.
func TestDeadHead(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	holder := permits("t", 2, time.Minute)
	drivertest.Granted(t, e, holder)
	queued(t, e, permits("t", 3, time.Minute), 500*time.Millisecond, 1)
	second := queued(t, e, permits("t", 1, time.Minute), time.Minute, 2)
	drivertest.Eventually(t, "the place behind is served", func() bool { return refresh(t, e, second).Outcome == driver.Granted })

	do(t, admin, "SET u mine")
	queued(t, e, permits("u", 1, time.Minute), 500*time.Millisecond, 1)
	drivertest.Eventually(t, "the kind is forgotten", func() bool {
		_, err := e.Acquire(t.Context(), shared("u", time.Minute))
		return err == nil
	})
}

// TestRefreshOfMany checks that each of many places of two names in one request gets the reply that
// it would get alone, and lasts for its own waiter TTL.
func TestRefreshOfMany(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+"?foreign=0"), plain(t, server)
	names := []string{"even", "odd"}
	holders := map[string]driver.AcquireRequest{}
	var reqs []driver.RefreshRequest
	for i := range 20 {
		name := names[i%2]
		if i < 2 {
			holders[name] = drivertest.Request(name, time.Minute)
			drivertest.Granted(t, e, holders[name])
		}
		req := queued(t, e, drivertest.Request(name, time.Minute), 10*time.Second, i/2+1)
		reqs = append(reqs, driver.RefreshRequest{Name: name, LeaseID: req.LeaseID, WaiterTTL: time.Duration(20+i) * time.Second})
	}
	const handedOver, unknown, leaves = 0, 5, 12
	drivertest.Release(t, e, holders["even"])
	reqs[unknown].LeaseID = lockinfo.NewLeaseID()
	reqs[leaves].WaiterTTL = 0
	began := time.Now()
	for i, reply := range e.Refresh(t.Context(), reqs) {
		place := i/2 + 1 - (i+1)%2 // the first of "even" holds the lock
		switch i {
		case handedOver:
			if reply.Err != nil || reply.Outcome != driver.Granted {
				t.Errorf("the first: %+v, want a grant", reply)
			}
			continue
		case unknown:
			wantIs(t, "refresh of no place", reply.Err, driver.ErrLost)
			continue
		case leaves:
			place = 0
		}
		if reply.Err != nil || reply.Outcome != driver.Held || reply.Place != place {
			t.Errorf("%d: %+v, want place %d", i, reply, place)
		}
		record := text(t, admin, "HGET", companionKeys(reqs[i].Name)[kindDetail], "w"+string(reqs[i].LeaseID))
		ends, _, _ := strings.Cut(record, " ")
		if ms, _ := strconv.ParseInt(ends, 10, 64); place > 0 && time.UnixMilli(ms).Sub(began) < reqs[i].WaiterTTL-time.Second {
			t.Errorf("%d: ends %s after now, want %s", i, time.UnixMilli(ms).Sub(began), reqs[i].WaiterTTL)
		}
		if place == 0 && record != "" {
			t.Errorf("%d was given up, and there is %q", i, record)
		}
	}
}

// TestRefreshOfSomeThatLeave checks a writer, and the reader behind it, that give up in one
// request. The reader is granted the lock when the writer leaves, and learns that.
func TestRefreshOfSomeThatLeave(t *testing.T) {
	e := open(t, testsvc.Redis(t).URL)
	drivertest.Granted(t, e, shared("t", time.Minute))
	writer := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	reader := queued(t, e, shared("t", time.Minute), time.Minute, 2)
	replies := e.Refresh(t.Context(), []driver.RefreshRequest{{Name: "t", LeaseID: writer.LeaseID}, {Name: "t", LeaseID: reader.LeaseID}})
	if r := replies[0]; r.Err != nil || r.Outcome != driver.Held || r.Place != 0 {
		t.Errorf("the writer: %+v, want no place", r)
	}
	if token := drivertest.Granted(t, e, reader); replies[1].Outcome != driver.Granted || replies[1].Token != token {
		t.Errorf("the reader: %+v, want the grant %d", replies[1], token)
	}
}

// TestFlushedQueue checks that waiters learn that their places are gone.
func TestFlushedQueue(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	last := drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
	waiter := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	do(t, admin, "FLUSHALL")
	wantIs(t, "refresh", refresh(t, e, waiter).Err, driver.ErrLost)
	if n := number(t, admin, "DBSIZE"); n != 0 {
		t.Errorf("refresh left %d keys", n)
	}
	if token := drivertest.Granted(t, e, waiter); token <= last {
		t.Errorf("token %d after %d", token, last)
	}
}

// TestHandOverCost counts the commands of a hand-over: one message for each waiter that was granted
// the lock, and one request.
func TestHandOverCost(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	drivertest.Cycle(t, e, "t")
	refresh(t, e, drivertest.Request("t", time.Minute))
	_ = e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: lockinfo.NewLeaseID(), KeepFor: time.Millisecond}) // from now on the server knows the scripts
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, holder)
	for i := range 3 {
		queued(t, e, shared("t", time.Minute), time.Minute, i+1)
	}
	last := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 4)
	cost := func(what string, run func(), evalsha, publish int64) {
		t.Helper()
		do(t, admin, "CONFIG RESETSTAT")
		run()
		stats := commandStats(t, admin)
		if stats["evalsha"] != evalsha || stats["publish"] != publish || stats["eval"] != 0 {
			t.Errorf("%s: %v, want %d scripts and %d messages", what, stats, evalsha, publish)
		}
	}
	cost("release", func() { drivertest.Release(t, e, holder) }, 1, 3)
	cost("refresh", func() { stillWaits(t, e, last, 1) }, 1, 0)
	cost("denial", func() { drivertest.Held(t, e, shared("t", time.Minute)) }, 1, 0)

	drivertest.Granted(t, e, drivertest.Request("u", 10*time.Millisecond))
	next := queued(t, e, drivertest.Request("u", time.Minute), time.Minute, 1)
	drivertest.Eventually(t, "the lock expires", func() bool { return number(t, admin, "EXISTS u") == 0 })
	cost("who finds out is told too", func() { handed(t, e, next) }, 1, 1)
}

// TestUncontendedQueueCost checks that a request with a place costs no more if the lock is free.
func TestUncontendedQueueCost(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	drivertest.Cycle(t, e, "t")
	stats := func(queue bool) map[string]int64 {
		do(t, admin, "CONFIG RESETSTAT")
		req := drivertest.Request("t", time.Minute)
		if queue {
			req.Queue, req.WaiterTTL = true, time.Minute
		}
		drivertest.Granted(t, e, req)
		drivertest.Release(t, e, req)
		stats := commandStats(t, admin)
		delete(stats, "ping")
		return stats
	}
	with, without := stats(true), stats(false)
	if !maps.Equal(with, without) || with["evalsha"] != 2 || with["publish"] != 0 {
		t.Errorf("commands with a place %v, without %v", with, without)
	}
	if n := number(t, admin, "PUBSUB NUMPAT") + int64(len(channels(t, admin))); n != 0 {
		t.Errorf("%d subscriptions", n)
	}
}

// channels returns the channels with subscribers.
func channels(t testing.TB, admin rueidis.Client) []string {
	t.Helper()
	names, err := do(t, admin, "PUBSUB CHANNELS").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestQueueOnFullServer checks that a full server ends and renews leases and places, and refuses
// new ones without a trace.
func TestQueueOnFullServer(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	holder, exclusive := permits("t", 3, time.Minute), drivertest.Request("x", time.Minute)
	drivertest.Granted(t, e, holder)
	drivertest.Granted(t, e, exclusive)
	first := queued(t, e, permits("t", 2, time.Minute), time.Minute, 1)
	second := queued(t, e, permits("t", 2, time.Minute), time.Minute, 2)
	next := queued(t, e, drivertest.Request("x", time.Minute), time.Minute, 1)
	drivertest.Granted(t, e, drivertest.Request("expires", 10*time.Millisecond))
	heir := queued(t, e, shared("expires", time.Minute), time.Minute, 1)
	drivertest.Eventually(t, "it expires", func() bool { return number(t, admin, "EXISTS expires") == 0 })
	do(t, admin, "CONFIG SET maxmemory 1")

	before := dump(t, admin)
	refused := func(what string, err error) {
		t.Helper()
		wantIs(t, what, err, driver.ErrUnavailable)
		if after := dump(t, admin); !maps.Equal(before, after) {
			t.Errorf("%s: the store was %v and is %v", what, before, after)
		}
	}
	_, err := e.Acquire(t.Context(), permits("free", 1, time.Minute))
	refused("acquire", err)
	place := permits("t", 1, time.Minute)
	place.Queue, place.WaiterTTL = true, time.Minute
	_, err = e.Acquire(t.Context(), place)
	refused("a place", err)
	_, err = e.AcquireAll(t.Context(), []driver.AcquireRequest{drivertest.Request("a", time.Minute), drivertest.Request("b", time.Minute)})
	refused("acquire all", err)
	refused("downgrade", e.Downgrade(t.Context(), driver.DowngradeRequest{Name: "x", LeaseID: exclusive.LeaseID}))
	refused("complete", e.Complete(t.Context(), driver.CompleteRequest{Name: "x", LeaseID: exclusive.LeaseID, Retention: time.Hour}))

	first.WaiterTTL, holder.TTL = 2*time.Minute, 2*time.Minute
	stillWaits(t, e, first, 1)
	if err := extend(t, e, holder, 3*time.Minute); err != nil {
		t.Errorf("extend: %v", err)
	}
	handed(t, e, heir)
	drivertest.Release(t, e, holder)
	handed(t, e, first)
	stillWaits(t, e, second, 1)
	drivertest.Release(t, e, exclusive)
	handed(t, e, next)
	drivertest.Granted(t, e, next) // for the whole TTL
	drivertest.Release(t, e, next)
	if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: first.LeaseID, KeepFor: time.Hour}); err != nil {
		t.Errorf("release that keeps closed: %v", err)
	}
}

// TestReleaseCountsThoughHandOverFails checks a release whose hand-over fails because another
// program overwrote the last token. The waiters learn the cause.
func TestReleaseCountsThoughHandOverFails(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	k := keyspace{}
	for _, spoil := range []string{"SET %s x", "LPUSH %s x"} {
		holder := shared("t", time.Minute)
		drivertest.Granted(t, e, holder)
		waiter := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
		do(t, admin, "DEL", k.fence("t"))
		do(t, admin, fmt.Sprintf(spoil, k.fence("t")))
		drivertest.Release(t, e, holder)
		wantIs(t, "refresh", refresh(t, e, waiter).Err, driver.ErrKindMismatch)
		_, err := e.Acquire(t.Context(), shared("t", time.Minute))
		wantIs(t, "acquire", err, driver.ErrKindMismatch)
		do(t, admin, "DEL", k.fence("t"))
		handed(t, e, waiter)
		drivertest.Release(t, e, waiter)
	}
}
