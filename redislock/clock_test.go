package redislock

import (
	"fmt"
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

// stepBack changes all data of name as if the server's clock had gone back by d.
func stepBack(t testing.TB, admin rueidis.Client, name string, d time.Duration) {
	t.Helper()
	k, ms := keyspace{}, d.Milliseconds()
	set, detail := k.companion(kindHolders, name, name), k.companion(kindDetail, name, name)
	members, err := do(t, admin, "ZRANGE", set, "0", "-1").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		do(t, admin, "ZINCRBY", set, fmt.Sprint(ms), m)
	}
	fields, err := do(t, admin, "HGETALL", detail).AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	for field, value := range fields {
		if first, rest, _ := strings.Cut(value, " "); field == "seen" || field == "due" || field[0] == 'w' {
			ends, _ := strconv.ParseInt(first, 10, 64)
			do(t, admin, "HSET", detail, field, strings.TrimSpace(fmt.Sprint(ends+ms, " ", rest)))
		}
	}
	for _, key := range k.state(name) {
		if left := number(t, admin, "PTTL", key); left >= 0 {
			do(t, admin, "PEXPIRE", key, fmt.Sprint(left+ms))
		}
	}
}

// TestClockStepBackWithQueue checks that after the clock went back no lease and no place lasts
// longer than its TTL, counted from the next request for the name by any client.
func TestClockStepBackWithQueue(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	k := keyspace{}
	n := 0
	for what, touch := range map[string]func(holder, waiter driver.AcquireRequest){
		"a denial": func(holder, _ driver.AcquireRequest) { drivertest.Held(t, e, permits(holder.Name, 1, time.Second)) },
		"an extend": func(holder, _ driver.AcquireRequest) {
			if err := extend(t, e, holder, 10*time.Millisecond); err != nil {
				t.Error(err)
			}
		},
		"a refresh": func(_, waiter driver.AcquireRequest) { stillWaits(t, e, waiter, 1) },
		"a release of nothing": func(holder, _ driver.AcquireRequest) {
			err := e.Release(t.Context(), driver.ReleaseRequest{Name: holder.Name, LeaseID: lockinfo.NewLeaseID()})
			wantIs(t, "release", err, driver.ErrLost)
		},
		"the end of a lease": func(holder, _ driver.AcquireRequest) { drivertest.Release(t, e, holder) },
	} {
		n++
		name := fmt.Sprint("t", n)
		holder, dead := permits(name, 1, 30*time.Second), permits(name, 1, 20*time.Second)
		drivertest.Granted(t, e, holder)
		drivertest.Granted(t, e, dead)
		waiter := queued(t, e, permits(name, 3, time.Minute), 40*time.Second, 1)
		queued(t, e, permits(name, 3, time.Minute), 10*time.Second, 2)
		stepBack(t, admin, name, time.Hour)
		lock, err := e.Inspect(t.Context(), name)
		if err != nil || len(lock.Holders) != 2 || len(lock.Queue) != 2 ||
			lock.Holders[0].ExpiresIn > 30*time.Second || lock.Queue[1].ExpiresIn > 10*time.Second {
			t.Errorf("inspect: %+v, %v", lock, err)
		}
		touch(holder, waiter)
		now := time.Now().UnixMilli()
		lasts := func(ends int64, most time.Duration) {
			t.Helper()
			if left := time.Duration(ends-now) * time.Millisecond; ends > 0 && (left > most || left < most-10*time.Second) {
				t.Errorf("after %s: %s left, want %s", what, left, most)
			}
		}
		holders := k.companion(kindHolders, name, name)
		for req, most := range map[*driver.AcquireRequest]time.Duration{&holder: 30 * time.Second, &dead: 20 * time.Second} {
			if text(t, admin, "ZSCORE", holders, string(req.LeaseID)) != "" {
				lasts(number(t, admin, "ZSCORE", holders, string(req.LeaseID)), most)
			}
		}
		ends, _ := record(t, admin, waiter)
		lasts(ends, 40*time.Second)
		if due := number(t, admin, "HGET", k.companion(kindDetail, name, name), "due"); due > now+10000 && what != "the end of a lease" {
			t.Errorf("after %s: the first place expires in %d ms, and the next look is due in %d", what, 10000, due-now)
		}
		stillWaits(t, e, waiter, 1)
		if left := number(t, admin, "PTTL", name); left > 30000 || left < 10000 {
			t.Errorf("after %s: the key has %d ms left", what, left)
		}
	}
}

// TestClampedLeaseIsHandedOver checks that a waiter gets the lock of a dead holder within the TTL
// although the clock went back.
func TestClampedLeaseIsHandedOver(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	drivertest.Granted(t, e, shared("t", 300*time.Millisecond))
	waiter := queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	stepBack(t, admin, "t", time.Hour)
	stillWaits(t, e, waiter, 1)
	drivertest.Eventually(t, "the lock is handed over", func() bool { return refresh(t, e, waiter).Outcome == driver.Granted })
}

// TestClockStepBackOfOneKind checks the same with leases alone, and with places alone.
func TestClockStepBackOfOneKind(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	holder := shared("leases", 30*time.Second)
	drivertest.Granted(t, e, holder)
	do(t, admin, "SET places mine")
	waiter := queued(t, e, shared("places", time.Minute), 30*time.Second, 1)
	for _, name := range []string{"leases", "places"} {
		stepBack(t, admin, name, time.Hour)
		drivertest.Held(t, e, drivertest.Request(name, time.Minute))
		ends, _ := record(t, admin, waiter)
		if name == "leases" {
			ends = number(t, admin, "ZSCORE", companionKeys(name)[kindHolders], string(holder.LeaseID))
		}
		if left := time.Until(time.UnixMilli(ends)); left > 30*time.Second || left < 20*time.Second {
			t.Errorf("%s: %s left, want 30 s", name, left)
		}
	}
}

// TestKeyEndsWithLastLease checks that foreign clients are blocked until the last lease ends, and
// no longer.
func TestKeyEndsWithLastLease(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	ends := func(what string, want time.Duration) {
		t.Helper()
		left := time.Duration(number(t, admin, "PTTL t")) * time.Millisecond
		if left > want || left < want-5*time.Second {
			t.Errorf("%s: the key has %s left, want %s", what, left, want)
		}
	}
	long, short := permits("t", 1, time.Hour), permits("t", 1, time.Minute)
	drivertest.Granted(t, e, short)
	ends("granted", time.Minute)
	drivertest.Granted(t, e, long)
	ends("a longer one", time.Hour)
	do(t, admin, "PERSIST t")
	drivertest.Held(t, e, permits("t", 2, time.Minute))
	ends("somebody took the expiry away", time.Hour)
	drivertest.Release(t, e, long)
	ends("only the short one is left", time.Minute)
	if err := extend(t, e, short, 30*time.Minute); err != nil {
		t.Fatal(err)
	}
	ends("extended", 30*time.Minute)
	err := e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: short.LeaseID, KeepFor: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ends("kept closed", 20*time.Second)
}
