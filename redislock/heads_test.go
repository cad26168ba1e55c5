package redislock

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
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

// A duel is a lock that one has, exclusively, and another waits for.
type duel struct {
	*testing.T
	e             *Engine
	admin         rueidis.Client
	name          string
	holder, first driver.AcquireRequest
}

// duels runs each of these with a name of its own.
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

// joined makes another wait, and wants this place for it.
func (d duel) joined(place int) driver.AcquireRequest {
	d.Helper()
	return queued(d, d.e, drivertest.Request(d.name, time.Minute), time.Minute, place)
}

func (d duel) release(req driver.ReleaseRequest) error {
	req.Name, req.LeaseID = d.name, d.holder.LeaseID
	return d.e.Release(d.Context(), req)
}

// leave gives the place of the first up.
func (d duel) leave() {
	_ = d.e.Release(d.Context(), driver.ReleaseRequest{Name: d.name, LeaseID: d.first.LeaseID})
}

// released gives the lock back, and wants it to be handed to req at once.
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

// die makes the place of the first end as if its client had died.
func (d duel) die() { setEnd(d, d.admin, d.first, d.clock()/1000-1000) }

// record returns the end of the place of req in ms, and the rest of its record.
func record(t testing.TB, admin rueidis.Client, req driver.AcquireRequest) (ends int64, rest string) {
	t.Helper()
	first, rest, _ := strings.Cut(text(t, admin, "HGET", companionKeys(req.Name)[kindDetail], "w"+string(req.LeaseID)), " ")
	ends, _ = strconv.ParseInt(first, 10, 64)
	return ends, rest
}

// setEnd makes the place of req end at an instant in ms.
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

// TestJoinBehindLease: who asks for a lock that another has is treated alike,
// whichever part of the script does it.
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

// TestHandOverToOne: the same goes for the release of a lock that is handed to one
// who waits.
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

// TestHandOverBesideOthers: where other clients may want the lock, it is left free
// when it is time for that, whichever part of the script does it.
func TestHandOverBesideOthers(t *testing.T) {
	server := testsvc.Redis(t)
	c := newContest(t, open(t, server.URL), plain(t, server))
	for _, turn := range []struct {
		ours, alien time.Duration
		free        bool
	}{{200 * time.Millisecond, 0, false}, {time.Second, 0, true}, {200 * time.Millisecond, time.Second, true}} {
		do(t, c.admin, "HDEL", c.detail(), "alien")
		if turn.alien > 0 {
			c.note("alien", -turn.alien)
		}
		began := time.Now()
		c.note("ours", -turn.ours)
		c.release()
		free := number(t, c.admin, "EXISTS t") == 0
		if slow := time.Since(began) > 40*time.Millisecond; free != turn.free && !slow {
			t.Errorf("ours for %s, another seen %s ago: left free is %v", turn.ours, turn.alien, free)
		}
		drivertest.Eventually(t, "the head has its turn", func() bool { return refresh(t, c.e, c.first).Outcome == driver.Granted })
		c.holder = c.first
		c.first = queued(t, c.e, drivertest.Request("t", time.Minute), time.Minute, 1)
	}
	queued(t, c.e, drivertest.Request("t", time.Minute), time.Minute, 2)
	do(t, c.admin, "HDEL", c.detail(), "ours")
	c.release()
	handed(t, c.e, c.first)
	if c.noted("ours") == 0 {
		t.Error("our turns do not begin")
	}
}

// contended brings a name into a random state in which one has it, most often, and others
// wait. Some of what the store keeps is over, or missing.
func contended(t *testing.T, e *Engine, admin rueidis.Client, name string) *trial {
	s := &trial{name: name}
	ask := func(req driver.AcquireRequest) {
		reply, err := e.Acquire(t.Context(), req)
		switch {
		case err == nil && reply.Outcome == driver.Granted:
			s.leases = append(s.leases, req)
		case err == nil && reply.Place > 0:
			s.places = append(s.places, req)
		}
		s.did("acquire %s once %v: %v %v", req.Mode, req.Once, reply.Outcome, err)
	}
	ask(drivertest.Request(name, time.Minute))
	for range rand.IntN(5) {
		req := drivertest.Request(name, time.Minute)
		req.Queue, req.WaiterTTL, req.Once = true, time.Duration(1+rand.IntN(3))*time.Minute, rand.IntN(8) == 0
		req.Mode = []lockinfo.Mode{lockinfo.Exclusive, lockinfo.Exclusive, lockinfo.Exclusive, lockinfo.Shared}[rand.IntN(4)]
		ask(req)
	}
	detail, now := companionKeys(name)[kindDetail], time.Now().UnixMilli()
	once := slices.ContainsFunc(s.places, func(req driver.AcquireRequest) bool { return req.Once })
	some := func(what string, do func(driver.AcquireRequest)) {
		all := rand.IntN(3) == 0
		for i, req := range s.places {
			if all || rand.IntN(3) == 0 {
				s.did("place %d %s", i+1, what)
				do(req)
			}
		}
	}
	steps := []func(){
		func() {},
		func() { some("has expired", func(req driver.AcquireRequest) { setEnd(t, admin, req, now-1000) }) },
		func() { some("has expired", func(req driver.AcquireRequest) { setEnd(t, admin, req, now-1000) }) },
		func() {
			if len(s.places) > 0 && !once { // with one that asks for Once, other scripts look for records
				s.did("the first place has no record")
				do(t, admin, "HDEL", detail, "w"+string(s.places[0].LeaseID))
			}
		},
		func() {
			some("is not in the queue", func(req driver.AcquireRequest) {
				do(t, admin, "ZREM", companionKeys(name)[kindQueue], string(req.LeaseID))
			})
		},
		func() {
			kind := []string{kindQueue, kindDetail, kindFence, kindHolders}[rand.IntN(4)]
			do(t, admin, "DEL", companionKeys(name)[kind])
			s.did("no %s", kind)
		},
		func() { do(t, admin, "DEL", name); s.did("the lock is gone") },
		func() { do(t, admin, "PERSIST", name); s.did("the lock has no expiry") },
		func() { do(t, admin, "SET", name, "theirs", "PX", "60000"); s.did("another client's lock") },
		func() {
			do(t, admin, "SET", companionKeys(name)[kindFence], []string{fmt.Sprint((now + 3600000) * 1000), "x", "5"}[rand.IntN(3)])
			s.did("another last token")
		},
		func() { stepBack(t, admin, name, time.Hour); s.did("the clock went back") },
		func() {
			if number(t, admin, "EXISTS", detail) == 1 {
				do(t, admin, "HSET", detail, "mend", "0 0")
				s.did("records are being amended")
			}
		},
	}
	for range rand.IntN(3) {
		steps[rand.IntN(len(steps))]()
	}
	if once && rand.IntN(2) == 0 {
		do(t, admin, "SET", companionKeys(name)[kindRecord], strings.Repeat("-", 32)+"done")
		s.did("a record")
	}
	return s
}

// looksInTime fails t if a place may expire before the next look at all of them is due.
func looksInTime(t *testing.T, admin rueidis.Client, s *trial) {
	t.Helper()
	fields, err := do(t, admin, "HGETALL", companionKeys(s.name)[kindDetail]).AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	for field, value := range fields {
		ends, _, _ := strings.Cut(value, " ")
		if field[0] == 'w' && do(t, admin, "ZSCORE", companionKeys(s.name)[kindQueue], field[1:]).Error() == nil && (fields["due"] > ends || fields["due"] == "") {
			t.Errorf("after %q: a place expires at %s, and a look is due at %q", s.what, ends, fields["due"])
		}
	}
}

// TestHeadsAreFull: the heads of the scripts, join.lua and handover.lua, refuse a request,
// so that what follows answers it, or do what that does. In random states of a contended
// name a request is sent twice: as most are, and with an option that no head takes but that
// changes nothing else: MinToken 1 of a join, Cancel of a release.
// INVARIANT I1, I2, I4, I6, I7, I11.
func TestHeadsAreFull(t *testing.T) {
	fences := regexp.MustCompile(`(fence:N = \S+) for \S+`) // a plain grant that is not one sets it anew
	due := regexp.MustCompile(`due:\S+ `)                   // how soon a look is due depends on when the last one was
	minimum := regexp.MustCompile(`(w\S*:<[^>]*> \d+ \d \d+ \d+) 1 `)
	for _, url := range []string{"?foreign=0", "?history=1"} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			server := testsvc.Redis(t)
			admin := plain(t, server)
			e := open(t, server.URL+url)
			for n := range 400 {
				s := contended(t, e, admin, fmt.Sprint("name-", n))
				before := save(t, admin)
				own := drivertest.Request(s.name, time.Minute)
				if all := append(s.leases[:len(s.leases):len(s.leases)], s.places...); len(all) > 0 && rand.IntN(2) > 0 {
					own = all[rand.IntN(len(all))]
				}
				what, send := "release", func(full bool) string {
					err := e.Release(t.Context(), driver.ReleaseRequest{Name: s.name, LeaseID: own.LeaseID, Cancel: full})
					do(t, admin, "DEL", keyspace{}.tombstone(s.name, own.LeaseID))
					return sentinelOf(err)
				}
				if s.what[len(s.what)-1] != "a record" && rand.IntN(2) > 0 {
					own.Queue, own.WaiterTTL = rand.IntN(4) > 0, time.Duration(1+rand.IntN(3))*time.Minute
					what, send = fmt.Sprint("acquire, queue ", own.Queue), func(full bool) string {
						own.MinToken = map[bool]uint64{true: 1}[full]
						r, err := e.Acquire(t.Context(), own)
						return fmt.Sprint(r.Outcome, r.Place, r.Queue, r.Released, r.Foreign, sentinelOf(err))
					}
				}
				look := func(full bool) (reply, state string) {
					reply = send(full)
					// A head leaves to the next request what has expired behind the first place.
					_ = e.Release(t.Context(), driver.ReleaseRequest{Name: s.name, LeaseID: lockinfo.NewLeaseID()})
					state = minimum.ReplaceAllString(shown(t, admin, s.name), "$1 0 ")
					looksInTime(t, admin, s)
					return reply, fences.ReplaceAllString(due.ReplaceAllString(state, ""), "$1")
				}
				got, has := look(false)
				restore(t, admin, before)
				want, had := look(true)
				if got != want || has != had {
					t.Fatalf("after %q, %s:\nby the head %s\n%s\nin full %s\n%s", s.what, what, got, has, want, had)
				}
				do(t, admin, "FLUSHALL")
			}
		})
	}
}

// TestLongQueueIsAmended: of a queue that is too long for one call, an expired place
// counts for nothing, though no call has come to it yet; a few calls give it up.
// INVARIANT I7, I11.
func TestLongQueueIsAmended(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+"?foreign=0"), plain(t, server)
	for round := range 4 {
		name := fmt.Sprint("long-", round)
		holder := drivertest.Request(name, time.Minute)
		drivertest.Granted(t, e, holder)
		var all []driver.AcquireRequest
		for i := range 1500 {
			all = append(all, queued(t, e, drivertest.Request(name, time.Minute), time.Minute, i+1))
		}
		now, detail := time.Now().UnixMilli(), companionKeys(name)[kindDetail]
		for _, req := range []driver.AcquireRequest{all[0], all[700], all[1400]} {
			setEnd(t, admin, req, now-1000)
		}
		lock, err := e.Inspect(t.Context(), name)
		if err != nil || lock.QueueLength != 1497 || len(lock.Queue) != driver.ShownPlaces || lock.Queue[0].LeaseID != all[1].LeaseID {
			t.Fatalf("inspect: %d places of %d, %v; want %d of 1497, without the first", len(lock.Queue), lock.QueueLength, err, driver.ShownPlaces)
		}
		if round%2 == 0 {
			drivertest.Release(t, e, holder)
			if value := text(t, admin, "GET", name); !strings.HasPrefix(value, "1 "+string(all[1].LeaseID)+" ") {
				t.Errorf("the lock holds %q, want the lease of the first live place", value)
			}
			handed(t, e, all[1])
		}
		wantIs(t, "refresh of a place that has expired", refresh(t, e, all[700]).Err, driver.ErrLost)
		short := drivertest.Request(name, time.Minute)
		short.Queue, short.WaiterTTL = true, 10*time.Second
		drivertest.Held(t, e, short) // which what goes on may not come to
		looksInTime := func() {
			t.Helper()
			if due := number(t, admin, "HGET", detail, "due"); due < now || due > now+15000 {
				t.Errorf("the next look is due in %d ms, a place expires in 10 s", due-now)
			}
		}
		looksInTime()
		for calls := 0; text(t, admin, "HGET", detail, "mend") != ""; calls++ {
			if reply := refresh(t, e, all[1000]); reply.Err != nil || reply.Place == 0 || calls > 20 {
				t.Fatalf("refresh %d: %+v", calls, reply)
			}
		}
		looksInTime()
		want := int64(1498 - (round+1)%2)
		if n := number(t, admin, "ZCARD", companionKeys(name)[kindQueue]); n != want {
			t.Errorf("%d places, want %d", n, want)
		}
	}
}

// TestExpiredPlacesCountForNobody: no waiter is told its place before all have gone who
// have expired in front of it, though that takes several calls.
func TestExpiredPlacesCountForNobody(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+"?foreign=0"), plain(t, server)
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
	var all []driver.AcquireRequest
	for i := range 1000 {
		all = append(all, queued(t, e, drivertest.Request("t", time.Minute), time.Minute, i+1))
	}
	for _, req := range all[:700] {
		setEnd(t, admin, req, time.Now().UnixMilli()-1000)
	}
	stillWaits(t, e, all[999], 300)
	if n := number(t, admin, "ZCARD", companionKeys("t")[kindQueue]); n != 300 {
		t.Errorf("%d places, want 300", n)
	}
}
