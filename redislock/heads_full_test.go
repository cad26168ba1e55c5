package redislock

import (
	"fmt"
	"math/rand/v2"
	"regexp"
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

// contended brings a name into a random state that usually has a holder and waiters. Some of the
// data has expired, or is missing.
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
			if len(s.places) > 0 && !once { // with a place for Once, other scripts read the record
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

// looksInTime fails t if a place may expire before the next check of all places is due.
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

// TestHeadsAreFull checks that the heads of the scripts, join.lua and handover.lua, either refuse a
// request, so that the rest of the script answers it, or do what the rest does. In random states of
// a contended name each request is sent twice: as usual, and with an option that makes the head
// refuse and changes nothing else: MinToken 1 for a join, Cancel for a release.
func TestHeadsAreFull(t *testing.T) {
	fences := regexp.MustCompile(`(fence:N = \S+) for \S+`) // the full script writes the expiry of a plain grant anew
	due := regexp.MustCompile(`due:\S+ `)                   // the time of the next check depends on the last one
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
					// A head leaves places that expired behind the first one to the next request.
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

// TestLongQueueIsAmended checks a queue that is too long for one call: an expired place does not
// count, even before a call has reached it, and a few calls give it up.
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
		if way := drivertest.Held(t, e, all[700]); way.Place < 1400 {
			t.Errorf("a request whose place has expired gets place %d, want one at the end", way.Place)
		}
		short := drivertest.Request(name, time.Minute)
		short.Queue, short.WaiterTTL = true, 10*time.Second
		drivertest.Held(t, e, short) // which the rest of the work may not reach
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
		want := int64(1499 - (round+1)%2)
		if n := number(t, admin, "ZCARD", companionKeys(name)[kindQueue]); n != want {
			t.Errorf("%d places, want %d", n, want)
		}
	}
}

// TestExpiredPlacesCountForNobody checks that no waiter learns its place before all expired places
// in front of it are given up, even if that takes several calls.
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

// TestHandOverBesideOthers checks that the lock is left free in time for foreign clients, whichever
// part of the script runs.
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
