package redislock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A scene is a lock with leases and places.
type scene struct {
	holders, waiters []driver.AcquireRequest
}

// scenes are the states of a lock. The leases last for ttl, the places for waiterTTL.
var scenes = map[string]func(t testing.TB, e *Engine, name string, ttl, waiterTTL time.Duration) scene{
	"exclusive": func(t testing.TB, e *Engine, name string, ttl, waiterTTL time.Duration) scene {
		return play(t, e, scene{
			[]driver.AcquireRequest{drivertest.Request(name, ttl)},
			[]driver.AcquireRequest{shared(name, ttl), drivertest.Request(name, ttl)},
		}, waiterTTL)
	},
	"shared": func(t testing.TB, e *Engine, name string, ttl, waiterTTL time.Duration) scene {
		return play(t, e, scene{
			[]driver.AcquireRequest{shared(name, ttl), shared(name, ttl)},
			[]driver.AcquireRequest{drivertest.Request(name, ttl), shared(name, ttl), shared(name, ttl)},
		}, waiterTTL)
	},
	"semaphore": func(t testing.TB, e *Engine, name string, ttl, waiterTTL time.Duration) scene {
		return play(t, e, scene{
			[]driver.AcquireRequest{permits(name, 1, ttl), permits(name, 1, ttl)},
			[]driver.AcquireRequest{permits(name, 2, ttl), permits(name, 1, ttl)},
		}, waiterTTL)
	},
	"kept closed": func(t testing.TB, e *Engine, name string, ttl, waiterTTL time.Duration) scene {
		s := play(t, e, scene{
			[]driver.AcquireRequest{permits(name, 2, ttl), permits(name, 1, ttl)},
			[]driver.AcquireRequest{permits(name, 2, ttl)},
		}, waiterTTL)
		err := e.Release(t.Context(), driver.ReleaseRequest{Name: name, LeaseID: s.holders[0].LeaseID, KeepFor: ttl})
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
	"nobody waits": func(t testing.TB, e *Engine, name string, ttl, waiterTTL time.Duration) scene {
		return play(t, e, scene{holders: []driver.AcquireRequest{shared(name, ttl), shared(name, ttl)}}, waiterTTL)
	},
}

// play grants the leases, and then the places.
func play(t testing.TB, e *Engine, s scene, waiterTTL time.Duration) scene {
	t.Helper()
	for _, req := range s.holders {
		drivertest.Granted(t, e, req)
	}
	for i, req := range s.waiters {
		s.waiters[i] = queued(t, e, req, waiterTTL, i+1)
	}
	return s
}

var kinds = []string{kindFence, kindHolders, kindQueue, kindDetail, kindRecord}

// companionKeys returns the keys of a name other than the lock, by kind.
func companionKeys(name string) map[string]string {
	keys := map[string]string{}
	for _, kind := range kinds {
		keys[kind] = keyspace{}.companion(kind, name, name)
	}
	return keys
}

// compatible reports whether the leases of all requests may be live together.
func compatible(reqs []driver.AcquireRequest) bool {
	used := 0
	for _, req := range reqs {
		used += req.Mode.Permits()
		if req.Mode.Kind() != reqs[0].Mode.Kind() || req.Mode == lockinfo.Exclusive && len(reqs) > 1 {
			return false
		}
	}
	return len(reqs) == 0 || used <= reqs[0].Mode.Limit()
}

// TestDeletedCompanion checks that no incompatible lease is granted while the first leases live,
// whichever key of the lock is deleted. INVARIANT I1.
func TestDeletedCompanion(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	n := 0
	for what, make := range scenes {
		for i := range 2 * len(kinds) {
			kind := kinds[i/2]
			n++
			name := fmt.Sprint("t", n)
			s := make(t, e, name, time.Minute, time.Minute)
			do(t, admin, "DEL", companionKeys(name)[kind])
			live := slices.Clone(s.holders)
			add := func(req driver.AcquireRequest, outcome driver.Outcome) {
				if outcome == driver.Granted {
					live = append(live, req)
				}
				if !compatible(live) {
					t.Errorf("%s without %s: these are live together: %+v", what, kind, live)
				}
			}
			ask := func() {
				for _, req := range s.waiters {
					reply := refresh(t, e, req)
					add(req, reply.Outcome)
					if reply.Err == nil && reply.Outcome == driver.Held && reply.Place == 0 {
						t.Errorf("%s without %s: told to wait without a place", what, kind)
					}
				}
			}
			if n%2 == 0 {
				ask() // before the others or after them
			}
			for _, queue := range []bool{false, true} {
				for _, req := range []driver.AcquireRequest{
					drivertest.Request(name, time.Minute), shared(name, time.Minute), permits(name, 1, time.Minute), permits(name, 1, time.Minute),
				} {
					if req.Queue = queue; queue {
						req.WaiterTTL = time.Minute
					}
					reply, _ := e.Acquire(t.Context(), req)
					add(req, reply.Outcome)
				}
			}
			ask()
		}
	}
}

// TestDeletedKeyHeals checks that after the loss of any one key, including the lock, the next
// caller is granted the lock when the leases have ended, and that nothing remains in the end.
// INVARIANT I11.
func TestDeletedKeyHeals(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	n := 0
	for what, make := range scenes {
		keys := companionKeys("")
		keys["lock"] = ""
		for kind := range keys {
			n++
			name := fmt.Sprint("t", n)
			const ttl = 150 * time.Millisecond
			s := make(t, e, name, ttl, ttl)
			key, ok := companionKeys(name)[kind]
			if !ok {
				key = name
			}
			began := time.Now()
			do(t, admin, "DEL", key)
			heir := drivertest.Request(name, 50*time.Millisecond)
			if s.holders[0].Mode.Limit() > 0 {
				heir = permits(name, 3, 50*time.Millisecond)
			}
			heir.Queue, heir.WaiterTTL = true, time.Minute
			drivertest.Eventually(t, "a grant after the loss of "+kind, func() bool {
				reply, err := e.Acquire(t.Context(), heir)
				if err != nil {
					t.Fatalf("%s without %s: %v", what, kind, err)
				}
				return reply.Outcome == driver.Granted
			})
			if d := time.Since(began); d > 5*ttl+2*time.Second {
				t.Errorf("%s without %s: it took %s", what, kind, d)
			}
			drivertest.Release(t, e, heir)
			if !onlyTokensLeft(t, admin) {
				t.Errorf("%s without %s: keys are left", what, kind)
			}
		}
	}
}

// onlyTokensLeft reports whether only last tokens and tombstones remain, with an expiry.
func onlyTokensLeft(t testing.TB, admin rueidis.Client) bool {
	t.Helper()
	keys, err := do(t, admin, "KEYS *").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	return !slices.ContainsFunc(keys, func(key string) bool {
		stays := key == keyspace{}.fence(nameOf(key)) || strings.Contains(key, "}:"+kindCancelled+":")
		return !stays || number(t, admin, "PTTL", key) < 0
	})
}

// TestEverythingExpires checks that leases and places of dead clients leave nothing, although no
// client requests the name again.
func TestEverythingExpires(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	for what, make := range scenes {
		make(t, e, what, 500*time.Millisecond, time.Second)
	}
	keys, err := do(t, admin, "KEYS *").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if left := number(t, admin, "PTTL", key); left == -1 { // -2: it has expired
			t.Errorf("%s has no expiry", key)
		}
	}
	drivertest.Eventually(t, "everything expires", func() bool { return onlyTokensLeft(t, admin) })
}

// TestDeletedRecordsOfPlaces checks that a place without a record delays no waiter.
func TestDeletedRecordsOfPlaces(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, holder)
	first := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	second := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 2)
	do(t, admin, "HDEL", companionKeys("t")[kindDetail], "w"+string(first.LeaseID))
	drivertest.Release(t, e, holder)
	handed(t, e, second)
	wantIs(t, "refresh", refresh(t, e, first).Err, driver.ErrLost)
}

// TestOneBadNameInABatch checks that a bad name affects no other request of its batch.
func TestOneBadNameInABatch(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	var extends []driver.ExtendRequest
	var refreshes []driver.RefreshRequest
	for i := range 3 {
		holder := shared(fmt.Sprint("t", i), time.Minute)
		drivertest.Granted(t, e, holder)
		waiter := queued(t, e, drivertest.Request(holder.Name, time.Minute), time.Minute, 1)
		extends = append(extends, driver.ExtendRequest{Name: holder.Name, LeaseID: holder.LeaseID, TTL: time.Hour})
		refreshes = append(refreshes, driver.RefreshRequest{Name: waiter.Name, LeaseID: waiter.LeaseID, WaiterTTL: time.Minute})
	}
	detail := companionKeys("t1")[kindDetail]
	do(t, admin, "DEL", detail)
	do(t, admin, "LPUSH", detail, "x")
	for i, err := range e.Extend(t.Context(), extends) {
		wantIs(t, "extend", err, map[int]error{1: driver.ErrKindMismatch}[i])
	}
	for i, reply := range e.Refresh(t.Context(), refreshes) {
		wantIs(t, "refresh", reply.Err, map[int]error{1: driver.ErrKindMismatch}[i])
	}
	for what, call := range drivertest.Calls(t.Context(), e, "t1") {
		switch what {
		case "recall", "forget", "list":
			wantIs(t, what, call(), nil)
		default:
			wantIs(t, what, call(), driver.ErrKindMismatch)
		}
	}
}

// TestNoRecordIsLeft checks that records of ended leases and places are deleted while others live
// on.
func TestNoRecordIsLeft(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	drivertest.Granted(t, e, shared("t", time.Minute))
	for _, kind := range []string{kindHolders, kindQueue} {
		for range 3 {
			req := shared("t", time.Minute)
			if kind == kindQueue {
				req = queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
			} else {
				drivertest.Granted(t, e, req)
			}
			_ = e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID})
		}
		// The layout, the fields of the group and of the queue, and one lease.
		want := map[string]int64{kindHolders: 5, kindQueue: 7}[kind]
		if n := number(t, admin, "HLEN", companionKeys("t")[kindDetail]); n != want {
			t.Errorf("%s: %d fields are left, want %d", kind, n, want)
		}
	}
	// The same for leases and places that were deleted by hand.
	queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	do(t, admin, "DEL", companionKeys("t")[kindQueue])
	drivertest.Granted(t, e, shared("t", time.Minute))
	if n := number(t, admin, "HLEN", companionKeys("t")[kindDetail]); n != 8 {
		t.Errorf("without the queue: %d fields are left, want 8", n)
	}
	waiter := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	do(t, admin, "SET t mine")
	stillWaits(t, e, waiter, 1)
	// The layout, the place, the clock, and the fields of the queue and of the foreign client.
	if n := number(t, admin, "HLEN", companionKeys("t")[kindDetail]); n != 9 {
		t.Errorf("without the group: %d fields are left, want 9", n)
	}
}

// TestReplacedGroup checks that leases of another group than that in the key count as ended.
func TestReplacedGroup(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	holder := shared("t", time.Minute)
	drivertest.Granted(t, e, holder)
	do(t, admin, "SET t", "1 *"+string(lockinfo.NewLeaseID())+" 0", "PX", "60000")
	wantIs(t, "extend", extend(t, e, holder, time.Hour), driver.ErrLost)
	lock, err := e.Inspect(t.Context(), "t")
	if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != "" {
		t.Errorf("inspect: %+v, %v; want a foreign holder", lock, err)
	}
	drivertest.Held(t, e, shared("t", time.Minute))
}

// TestCompanionsLastAsLongAsNeeded checks that a short lease or place does not shorten the
// companions of long ones.
func TestCompanionsLastAsLongAsNeeded(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	drivertest.Granted(t, e, shared("t", time.Hour))
	drivertest.Granted(t, e, shared("t", 10*time.Millisecond))
	queued(t, e, drivertest.Request("t", time.Minute), time.Hour, 1)
	queued(t, e, drivertest.Request("t", time.Minute), 10*time.Millisecond, 2)
	for _, kind := range []string{kindHolders, kindQueue, kindDetail} {
		if left := number(t, admin, "PTTL", companionKeys("t")[kind]); left < 3500000 || left > 3606000 {
			t.Errorf("%s: %d ms left, want an hour", kind, left)
		}
	}
}

// TestExpiredShareIsLost checks that an expired shared lease is lost although others of the name
// live on, and that an expired place is lost, too.
func TestExpiredShareIsLost(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	drivertest.Granted(t, e, shared("t", time.Minute))
	short := shared("t", 10*time.Millisecond)
	drivertest.Granted(t, e, short)
	waits := queued(t, e, drivertest.Request("t", time.Minute), 10*time.Millisecond, 1)
	drivertest.Eventually(t, "their TTLs are over", func() bool {
		now, err := do(t, admin, "TIME").AsIntSlice()
		ends, _ := do(t, admin, "ZSCORE", companionKeys("t")[kindHolders], string(short.LeaseID)).AsInt64() // 0 once a request has ended the lease
		waited, _ := record(t, admin, waits)
		return err == nil && now[0]*1000+now[1]/1000 > 10+max(ends, waited)
	})
	lock, err := e.Inspect(t.Context(), "t")
	if err != nil || len(lock.Holders) != 1 || len(lock.Queue) != 0 || lock.QueueLength != 0 {
		t.Errorf("inspect: %+v, %v; want one lease and no place", lock, err)
	}
	wantIs(t, "extend", extend(t, e, short, time.Minute), driver.ErrLost)
	wantIs(t, "release", e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: short.LeaseID}), driver.ErrLost)
}

// TestLeaseEndsDuringScript checks that a slow request, which deletes much, hands the lock over to
// a group whose last lease ends meanwhile.
func TestLeaseEndsDuringScript(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	clock := func() int64 {
		now, err := do(t, admin, "TIME").AsIntSlice()
		if err != nil {
			t.Fatal(err)
		}
		return now[0]*1000 + now[1]/1000
	}
	holder := permits("t", 2, time.Minute)
	drivertest.Granted(t, e, holder)
	waiter := queued(t, e, permits("t", 2, time.Minute), time.Minute, 1)
	ends := clock() + 1000
	do(t, admin, "ZADD", companionKeys("t")[kindHolders], fmt.Sprint(ends+60), string(lockinfo.NewLeaseID()))
	do(t, admin, "EVAL", "for i = 1, 40000 do redis.call('ZADD', KEYS[1], ARGV[1], 'x' .. i) end",
		"1", companionKeys("t")[kindHolders], fmt.Sprint(ends))
	drivertest.Eventually(t, "most are over", func() bool { return clock() > ends })
	drivertest.Release(t, e, holder)
	if err := extend(t, e, waiter, time.Minute); err != nil {
		t.Errorf("the lease that was handed over: %v", err)
	}
	if left := number(t, admin, "PTTL t"); left < 50000 {
		t.Errorf("the key has %d ms left, want a minute", left)
	}
}
