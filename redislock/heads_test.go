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

// A duel is a lock with an exclusive holder and a waiter.
type duel struct {
	*testing.T
	e             *Engine
	admin         rueidis.Client
	name          string
	holder, first driver.AcquireRequest
}

// duels runs each of these tests with a name of its own.
func duels(t *testing.T, all map[string]func(d duel)) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+"?foreign=0"), plain(t, server)
	for what, run := range all {
		t.Run(what, func(t *testing.T) {
			name := strings.ReplaceAll(what, " ", "-")
			d := duel{T: t, e: e, admin: admin, name: name, holder: drivertest.Request(name, time.Minute)}
			drivertest.Granted(t, e, d.holder)
			d.first = queued(t, e, drivertest.Request(name, time.Minute), time.Minute, 1)
			run(d)
		})
	}
}

func (d duel) key(kind string) string { return keyspace{}.companion(kind, d.name, d.name) }

// joined makes another client wait, and checks its place.
func (d duel) joined(place int) driver.AcquireRequest {
	d.Helper()
	return queued(d, d.e, drivertest.Request(d.name, time.Minute), time.Minute, place)
}

func (d duel) release(req driver.ReleaseRequest) error {
	req.Name, req.LeaseID = d.name, d.holder.LeaseID
	return d.e.Release(d.Context(), req)
}

// leave gives up the place of the first waiter.
func (d duel) leave() {
	_ = d.e.Release(d.Context(), driver.ReleaseRequest{Name: d.name, LeaseID: d.first.LeaseID})
}

// released releases the lock, and checks that it is handed to req at once.
func (d duel) released(req driver.AcquireRequest) (token uint64) {
	d.Helper()
	if err := d.release(driver.ReleaseRequest{}); err != nil {
		d.Fatal(err)
	}
	var ttl int64
	value := text(d, d.admin, "GET", d.name)
	if _, err := fmt.Sscanf(value, "1 "+string(req.LeaseID)+" %d %d ", &ttl, &token); err != nil {
		d.Fatalf("the lock holds %q, want the lease %s", value, req.LeaseID)
	}
	return token
}

// fence sets the last token.
func (d duel) fence(value string) { do(d, d.admin, "SET", d.key(kindFence), value) }

func (d duel) clock() int64 {
	d.Helper()
	now, err := do(d, d.admin, "TIME").AsIntSlice()
	if err != nil {
		d.Fatal(err)
	}
	return now[0]*1000000 + now[1]
}

// die ends the place of the first waiter as if its client had died.
func (d duel) die() { setEnd(d, d.admin, d.first, d.clock()/1000-1000) }

// record returns the end of the place of req in ms, and the rest of its record.
func record(t testing.TB, admin rueidis.Client, req driver.AcquireRequest) (ends int64, rest string) {
	t.Helper()
	first, rest, _ := strings.Cut(text(t, admin, "HGET", companionKeys(req.Name)[kindDetail], "w"+string(req.LeaseID)), " ")
	ends, _ = strconv.ParseInt(first, 10, 64)
	return ends, rest
}

// setEnd sets the end of the place of req to an instant in ms.
func setEnd(t testing.TB, admin rueidis.Client, req driver.AcquireRequest, ends int64) {
	t.Helper()
	detail := companionKeys(req.Name)[kindDetail]
	_, rest := record(t, admin, req)
	if rest == "" {
		return
	}
	do(t, admin, "HSET", detail, "w"+string(req.LeaseID), fmt.Sprint(ends, " ", rest))
	if number(t, admin, "HGET", detail, "due") > ends {
		do(t, admin, "HSET", detail, "due", fmt.Sprint(ends))
	}
}

// TestJoinBehindLease checks that a request for a held lock has the same result, whichever part of
// the script runs.
func TestJoinBehindLease(t *testing.T) {
	duels(t, map[string]func(d duel){
		"done": func(d duel) {
			do(d, d.admin, "SET", d.key(kindRecord), strings.Repeat("0", 32)+"done")
			req := drivertest.Request(d.name, time.Minute)
			req.Queue, req.WaiterTTL, req.Once = true, time.Minute, true
			reply, err := d.e.Acquire(d.Context(), req)
			if err != nil || reply.Outcome != driver.Recorded {
				d.Errorf("%+v, %v; want the record", reply, err)
			}
		},
		"min token": func(d duel) {
			d.leave()
			req := drivertest.Request(d.name, time.Minute)
			req.MinToken = uint64(d.clock()) + 1000000
			req = queued(d, d.e, req, time.Minute, 1)
			if token := d.released(req); token <= req.MinToken {
				d.Errorf("token %d, want one above %d", token, req.MinToken)
			}
		},
		"kind": func(d duel) {
			for _, queue := range []bool{false, true} {
				req := permits(d.name, 1, time.Minute)
				req.Queue, req.WaiterTTL = queue, time.Minute
				_, err := d.e.Acquire(d.Context(), req)
				wantIs(d, "a permit of a mutex", err, driver.ErrKindMismatch)
			}
		},
		"cancelled": func(d duel) {
			req := drivertest.Request(d.name, time.Minute)
			_ = d.e.Release(d.Context(), driver.ReleaseRequest{Name: d.name, LeaseID: req.LeaseID, Cancel: true})
			for _, req.Queue = range []bool{false, true} {
				req.WaiterTTL = time.Minute
				if reply, err := d.e.Acquire(d.Context(), req); err != nil || reply.Outcome != driver.Cancelled {
					d.Errorf("%+v, %v; want cancelled", reply, err)
				}
			}
		},
		"not ours": func(d duel) {
			do(d, d.admin, "SET", d.name, "1 "+strings.Repeat("a", 31)+" 60000 1 1 {\"host\":\"x\"}", "PX", "50000")
			if way := drivertest.Held(d, d.e, drivertest.Request(d.name, time.Minute)); way.Holder.Host != "" {
				d.Errorf("%+v, want another client", way)
			}
		},
		"no expiry": func(d duel) {
			do(d, d.admin, "PERSIST", d.name)
			d.joined(2)
			if left := number(d, d.admin, "PTTL", d.name); left < 1 || left > 60000 {
				d.Errorf("the lease lasts for %d ms", left)
			}
		},
		"expiry too late": func(d duel) {
			do(d, d.admin, "PEXPIRE", d.name, "3600000")
			if way := drivertest.Held(d, d.e, drivertest.Request(d.name, time.Minute)); way.ExpiresIn > time.Minute {
				d.Errorf("%+v, want a minute at most", way)
			}
		},
		"clock back": func(d duel) {
			stepBack(d, d.admin, d.name, time.Hour)
			do(d, d.admin, "PEXPIRE", d.name, "60000")
			d.joined(2)
			if ends, _ := record(d, d.admin, d.first); ends > d.clock()/1000+60000 {
				d.Errorf("the first place lasts until %d, the clock is %d", ends, d.clock()/1000)
			}
		},
		"clock back behind the last place": func(d duel) {
			ahead := fmt.Sprint(d.clock() + 3600000000)
			do(d, d.admin, "ZADD", d.key(kindQueue), ahead, string(d.first.LeaseID))
			do(d, d.admin, "HSET", d.key(kindDetail), "last", ahead)
			second := d.joined(2)
			d.joined(3)
			stillWaits(d, d.e, d.first, 1)
			stillWaits(d, d.e, second, 2)
		},
		"dead place": func(d duel) {
			d.die()
			d.joined(1)
		},
		"dead place in the middle": func(d duel) {
			second := d.joined(2)
			third := d.joined(3)
			setEnd(d, d.admin, second, d.clock()/1000-1000)
			fourth := d.joined(3)
			stillWaits(d, d.e, third, 2)
			wantIs(d, "refresh of a place that has expired", refresh(d, d.e, second).Err, driver.ErrLost)
			d.released(d.first)
			d.holder = d.first
			d.released(third)
			d.holder = third
			d.released(fourth)
		},
		"short place": func(d duel) {
			queued(d, d.e, drivertest.Request(d.name, time.Minute), 20*time.Millisecond, 2)
			drivertest.Eventually(d, "it has expired", func() bool {
				lock, err := d.e.Inspect(d.Context(), d.name)
				return err == nil && lock.QueueLength == 1
			})
			if way := drivertest.Held(d, d.e, drivertest.Request(d.name, time.Minute)); way.Queue != 1 {
				d.Errorf("%+v, want one place", way)
			}
			d.joined(2)
			if n := number(d, d.admin, "ZCARD", d.key(kindQueue)); n != 2 {
				d.Errorf("%d places are in the queue, want 2", n)
			}
		},
		"no queue": func(d duel) {
			do(d, d.admin, "DEL", d.key(kindQueue))
			d.joined(1)
			wantIs(d, "refresh of the place that was lost", refresh(d, d.e, d.first).Err, driver.ErrLost)
		},
		"while records are amended": func(d duel) {
			do(d, d.admin, "HSET", d.key(kindDetail), "mend", "0 0")
			_, rest := record(d, d.admin, d.first)
			do(d, d.admin, "HSET", d.key(kindDetail), "w"+string(d.first.LeaseID), fmt.Sprint(d.clock()/1000-1000, " ", rest))
			d.joined(1)
		},
		"no detail": func(d duel) {
			do(d, d.admin, "DEL", d.key(kindDetail))
			stillWaits(d, d.e, d.joined(1), 1)
			wantIs(d, "refresh of the place that was lost", refresh(d, d.e, d.first).Err, driver.ErrLost)
		},
		"other layout": func(d duel) {
			do(d, d.admin, "HSET", d.key(kindDetail), "layout", "2")
			for _, queue := range []bool{false, true} {
				req := drivertest.Request(d.name, time.Minute)
				req.Queue, req.WaiterTTL = queue, time.Minute
				_, err := d.e.Acquire(d.Context(), req)
				wantText(d, err, `"LAYOUT 2"`)
			}
		},
		"long place": func(d duel) {
			queued(d, d.e, drivertest.Request(d.name, time.Minute), time.Hour, 2)
			d.joined(3)
			for _, kind := range []string{kindQueue, kindDetail} {
				if left := number(d, d.admin, "PTTL", d.key(kind)); left < 3600000 || left > 3606000 {
					d.Errorf("%s: %d ms left, want an hour", kind, left)
				}
			}
		},
		"repeat": func(d duel) {
			d.joined(2)
			if way := drivertest.Held(d, d.e, d.first); way.Place != 1 {
				d.Errorf("place %d, want the first", way.Place)
			}
		},
	})
}

// TestHandOverToOne checks the same for a release that hands the lock to one waiter.
func TestHandOverToOne(t *testing.T) {
	duels(t, map[string]func(d duel){
		"last place": func(d duel) {
			d.released(d.first)
			for _, kind := range []string{kindHolders, kindQueue, kindDetail} {
				if n := number(d, d.admin, "EXISTS", d.key(kind)); n != 0 {
					d.Errorf("%s is left", kind)
				}
			}
			if left := number(d, d.admin, "PTTL", d.name); left > 60000 {
				d.Errorf("the lease lasts for %d ms, the place did for a minute at most", left)
			}
			forget := number(d, d.admin, "PTTL", d.key(kindFence))
			if want := driver.TokenMemory.Milliseconds(); forget < want-10000 || forget > want {
				d.Errorf("the token is forgotten in %d ms, want %d", forget, want)
			}
		},
		"kept closed": func(d duel) {
			wantIs(d, "release", d.release(driver.ReleaseRequest{KeepFor: time.Minute}), nil)
			stillWaits(d, d.e, d.first, 1)
		},
		"cancel": func(d duel) {
			wantIs(d, "release", d.release(driver.ReleaseRequest{Cancel: true}), nil)
			handed(d, d.e, d.first)
			drivertest.Release(d, d.e, d.first)
			if reply, err := d.e.Acquire(d.Context(), d.holder); err != nil || reply.Outcome != driver.Cancelled {
				d.Errorf("a late copy: %+v, %v; want cancelled", reply, err)
			}
		},
		"almost the ID": func(d duel) {
			id := string(d.holder.LeaseID)
			other := id[:31] + map[bool]string{true: "0", false: "1"}[id[31] != '0']
			err := d.e.Release(d.Context(), driver.ReleaseRequest{Name: d.name, LeaseID: lockinfo.LeaseID(other)})
			wantIs(d, "release", err, driver.ErrLost)
			stillWaits(d, d.e, d.first, 1)
		},
		"dead head": func(d duel) {
			second := d.joined(2)
			d.die()
			d.released(second)
		},
		"all dead": func(d duel) {
			second := d.joined(2)
			d.die()
			setEnd(d, d.admin, second, d.clock()/1000-1000)
			wantIs(d, "release", d.release(driver.ReleaseRequest{}), nil)
			for _, kind := range []string{kindQueue, kindDetail} {
				if n := number(d, d.admin, "EXISTS", d.key(kind)); n != 0 {
					d.Errorf("%s is left", kind)
				}
			}
			drivertest.Granted(d, d.e, second)
		},
		"refreshed head": func(d duel) {
			d.first.WaiterTTL = time.Hour
			stillWaits(d, d.e, d.first, 1)
			d.released(d.first)
			if left := number(d, d.admin, "PTTL", d.name); left < 3500000 {
				d.Errorf("the lease lasts for %d ms, the place did for an hour", left)
			}
		},
		"shared head": func(d duel) {
			d.leave()
			a := queued(d, d.e, shared(d.name, time.Minute), time.Minute, 1)
			b := queued(d, d.e, shared(d.name, time.Minute), time.Minute, 2)
			wantIs(d, "release", d.release(driver.ReleaseRequest{}), nil)
			handed(d, d.e, a)
			handed(d, d.e, b)
		},
		"clock back": func(d duel) {
			stepBack(d, d.admin, d.name, time.Hour)
			do(d, d.admin, "PEXPIRE", d.name, "60000")
			d.released(d.first)
			if left := number(d, d.admin, "PTTL", d.name); left > 60000 {
				d.Errorf("the lease lasts for %d ms, want a minute at most", left)
			}
		},
		"token ahead": func(d duel) {
			ahead := d.clock() + 3600000000
			d.fence(fmt.Sprint(ahead))
			if token := d.released(d.first); token != uint64(ahead)+driver.TokenRange {
				d.Errorf("token %d after %d, want the next number", token, ahead)
			}
			if left := number(d, d.admin, "PTTL", d.name); left > 60000 {
				d.Errorf("the lease lasts for %d ms, the place did for a minute at most", left)
			}
		},
		"no token": func(d duel) {
			for _, bad := range []string{"1763690000x23457", "1000000000000000000000000"} {
				d.fence(bad)
				if err := d.release(driver.ReleaseRequest{}); err == nil {
					reply := refresh(d, d.e, d.first)
					wantIs(d, "refresh without a usable token "+bad, reply.Err, driver.ErrKindMismatch)
				}
				do(d, d.admin, "DEL", d.key(kindFence))
				d.holder, d.first = d.first, d.joined(1)
				handed(d, d.e, d.holder)
			}
		},
		"no queue": func(d duel) {
			do(d, d.admin, "DEL", d.key(kindQueue))
			if err := d.release(driver.ReleaseRequest{}); err != nil {
				d.Error(err)
			}
			wantIs(d, "refresh", refresh(d, d.e, d.first).Err, driver.ErrLost)
		},
		"other layout": func(d duel) {
			do(d, d.admin, "HSET", d.key(kindDetail), "layout", "2")
			wantText(d, d.release(driver.ReleaseRequest{}), `"LAYOUT 2"`)
		},
		"once behind the heir": func(d duel) {
			once := drivertest.Request(d.name, time.Minute)
			once.Once = true
			queued(d, d.e, once, time.Minute, 2)
			d.joined(3)
			do(d, d.admin, "SET", d.key(kindRecord), string(d.holder.LeaseID)+"done")
			d.released(d.first)
			if n := number(d, d.admin, "ZCARD", d.key(kindQueue)); n != 1 {
				d.Errorf("%d places are left, want that of the last", n)
			}
		},
		"memory is full": func(d duel) {
			do(d, d.admin, "CONFIG SET maxmemory 1")
			defer do(d, d.admin, "CONFIG SET maxmemory 0")
			second := drivertest.Request(d.name, time.Minute)
			second.Queue, second.WaiterTTL = true, time.Minute
			_, err := d.e.Acquire(d.Context(), second)
			wantIs(d, "join", err, driver.ErrUnavailable)
			d.released(d.first)
		},
	})
}
