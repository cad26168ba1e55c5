package redislock

import (
	"errors"
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

// A trial is a name in a random state, and a request about it.
type trial struct {
	what   []string // the steps that made the state
	name   string
	leases []driver.AcquireRequest
	places []driver.AcquireRequest
}

func (s *trial) did(format string, args ...any) {
	s.what = append(s.what, fmt.Sprintf(format, args...))
}

// newTrial brings a name into a random state.
func newTrial(t *testing.T, e *Engine, admin rueidis.Client, name string) *trial {
	s := &trial{name: name}
	acquire := func(change func(*driver.AcquireRequest)) {
		req := drivertest.Request(name, time.Minute)
		change(&req)
		reply, err := e.Acquire(t.Context(), req)
		switch {
		case err == nil && reply.Outcome == driver.Granted:
			s.leases = append(s.leases, req)
		case err == nil && reply.Place > 0:
			s.places = append(s.places, req)
		}
		s.did("acquire %s queue %v: %v %v", req.Mode, req.Queue, reply.Outcome, err)
	}
	fence := keyspace{}.companion(kindFence, name, name)
	steps := []func(){
		func() { acquire(func(*driver.AcquireRequest) {}) },
		func() { acquire(func(*driver.AcquireRequest) {}) },
		func() { acquire(func(r *driver.AcquireRequest) { r.Mode = lockinfo.Shared }) },
		func() { acquire(func(r *driver.AcquireRequest) { r.Mode = lockinfo.Permits(1+rand.IntN(2), 3) }) },
		func() { acquire(func(r *driver.AcquireRequest) { r.Queue, r.WaiterTTL = true, time.Minute }) },
		func() { acquire(func(r *driver.AcquireRequest) { r.Queue, r.WaiterTTL = true, time.Minute }) },
		func() {
			acquire(func(r *driver.AcquireRequest) { r.Queue, r.WaiterTTL, r.Mode = true, time.Minute, lockinfo.Shared })
		},
		func() {
			if len(s.leases) > 0 {
				keep := time.Duration(rand.IntN(2)) * time.Minute
				err := e.Release(t.Context(), driver.ReleaseRequest{Name: name, LeaseID: s.leases[0].LeaseID, KeepFor: keep})
				s.did("release, kept for %v: %v", keep, err)
			}
		},
		func() {
			id := lockinfo.NewLeaseID()
			_ = e.Release(t.Context(), driver.ReleaseRequest{Name: name, LeaseID: id, Cancel: true})
			s.leases = append(s.leases, drivertest.Request(name, time.Minute))
			s.leases[len(s.leases)-1].LeaseID = id
			s.did("cancel")
		},
		func() {
			for i, req := range s.places {
				if rand.IntN(2) > 0 {
					setEnd(t, admin, req, time.Now().UnixMilli()-1000)
					s.did("place %d has expired", i+1)
				}
			}
		},
		func() { do(t, admin, "DEL", name); s.did("the lock is gone") },
		func() { do(t, admin, "SET", name, "theirs", "PX", "60000"); s.did("another client's lock") },
		func() {
			do(t, admin, "SET", fence, fmt.Sprint(time.Now().Add(time.Hour).UnixMicro()))
			s.did("the token is ahead")
		},
		func() { do(t, admin, "DEL", fence); s.did("no last token") },
		func() {
			do(t, admin, "SET", name, "2 "+string(lockinfo.NewLeaseID())+" 30000 1763690000123457 5 {}", "PX", "60000")
			s.did("the next layout")
		},
	}
	for range rand.IntN(5) {
		steps[rand.IntN(len(steps))]()
	}
	return s
}

// request returns a random request about the name, which may be sent several times.
func (s *trial) request() (what string, send func(t *testing.T, e *Engine) string) {
	own := drivertest.Request(s.name, time.Minute)
	if all := append(s.leases[:len(s.leases):len(s.leases)], s.places...); len(all) > 0 && rand.IntN(3) > 0 {
		own = all[rand.IntN(len(all))]
	}
	acquire := func(t *testing.T, e *Engine) string {
		reply, err := e.Acquire(t.Context(), own)
		return fmt.Sprint(reply.Outcome, reply.Place, reply.Queue, reply.Released, reply.Foreign, sentinelOf(err))
	}
	release := driver.ReleaseRequest{Name: s.name, LeaseID: own.LeaseID, Cancel: rand.IntN(2) > 0}
	switch rand.IntN(5) {
	case 0:
		own.Mode = lockinfo.Exclusive
		return "acquire", acquire
	case 1:
		own.Mode, own.Queue, own.WaiterTTL = lockinfo.Exclusive, true, 2*time.Minute
		return "queue", acquire
	case 2:
		return "renew", func(t *testing.T, e *Engine) string {
			return sentinelOf(e.Extend(t.Context(), []driver.ExtendRequest{{Name: s.name, LeaseID: own.LeaseID, TTL: own.TTL}})[0])
		}
	default:
		return fmt.Sprint("release, cancel ", release.Cancel), func(t *testing.T, e *Engine) string {
			return sentinelOf(e.Release(t.Context(), release))
		}
	}
}

// sentinelOf returns the error that a caller can test for.
func sentinelOf(err error) string {
	for _, sentinel := range []error{driver.ErrLost, driver.ErrKindMismatch, driver.ErrInvalid, driver.ErrUnavailable} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	return fmt.Sprint(err)
}

// A saved key has the form of DUMP and RESTORE.
type saved struct{ data, ends string }

func save(t *testing.T, admin rueidis.Client) map[string]saved {
	all := map[string]saved{}
	keys, err := do(t, admin, "KEYS *").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		all[key] = saved{text(t, admin, "DUMP", key), fmt.Sprint(max(number(t, admin, "PEXPIRETIME", key), 0))}
	}
	return all
}

func restore(t *testing.T, admin rueidis.Client, all map[string]saved) {
	do(t, admin, "FLUSHALL")
	for key, s := range all {
		do(t, admin, "RESTORE", key, s.ends, s.data, "ABSTTL")
	}
}

var (
	clocks  = regexp.MustCompile(`\b\d{13,16}\b`)
	inboxes = regexp.MustCompile(` [0-9a-f]{32} \{`)
)

// shown returns the content of the store without tokens and with ends rounded to some seconds, so
// that two runs of a request can be compared.
func shown(t *testing.T, admin rueidis.Client, name string) string {
	var all []string
	for key := range save(t, admin) {
		var held string
		switch text(t, admin, "TYPE", key) {
		case "string":
			held = text(t, admin, "GET", key)
		case "hash":
			fields, err := do(t, admin, "HGETALL", key).AsStrMap()
			if err != nil {
				t.Fatal(err)
			}
			delete(fields, "") // see outlast in state.lua
			held = inboxes.ReplaceAllString(fmt.Sprint(fields), " <inbox> {")
		case "list":
			// The history has another form for a plain grant or release than for a full one.
			held = fmt.Sprint(number(t, admin, "LLEN", key)%2 == 0)
		default:
			members, err := do(t, admin, "ZRANGE", key, "0", "-1", "WITHSCORES").AsZScores()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				held += fmt.Sprintf("%s %.0f ", m.Member, m.Score)
			}
		}
		held = clocks.ReplaceAllStringFunc(held, func(n string) string {
			us, _ := strconv.ParseInt((n + "000")[:16], 10, 64)
			return fmt.Sprint("<", time.Until(time.UnixMicro(us)).Round(30*time.Second), ">")
		})
		left := time.Duration(number(t, admin, "PTTL", key)) * time.Millisecond
		round := 30 * time.Second
		if left > time.Hour {
			round = time.Hour // the expiry of a history is set rarely
		}
		all = append(all, fmt.Sprintf("%s = %s for %v", strings.ReplaceAll(key, name, "N"), held, left.Round(round)))
	}
	return strings.Join(slices.Sorted(slices.Values(all)), "\n")
}

// TestPlainIsFull checks that a fast path either refuses a request, so that the full script runs,
// or does what the full script does. In random states of a name each request has the same reply and
// effect through an engine that tries the fast path first, and through one that has learned to skip
// it.
func TestPlainIsFull(t *testing.T) {
	for _, url := range []string{"?foreign=0", "?history=1"} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			server := testsvc.Redis(t)
			admin := plain(t, server)
			full, other := open(t, server.URL+url), open(t, server.URL+url)
			for n := range 150 {
				name := fmt.Sprint("name-", n)
				// The engine learns that the name is shared and contended: see rediscore.hints.
				drivertest.Granted(t, full, shared(name, time.Minute))
				drivertest.Held(t, full, drivertest.Request(name, time.Minute))
				do(t, admin, "FLUSHALL")
				s := newTrial(t, other, admin, name)
				before := save(t, admin)
				what, send := s.request()
				fresh := open(t, server.URL+url) // has no memory of the name
				answer := func(e *Engine) (reply, state string) {
					reply = send(t, e)
					_, _ = other.History(t.Context(), name) // records what has expired, which only full scripts do
					return reply, shown(t, admin, name)
				}
				got, has := answer(fresh)
				restore(t, admin, before)
				want, had := answer(full)
				if got != want || has != had {
					t.Fatalf("after %q, %s:\nby the fast path %s\n%s\nin full %s\n%s", s.what, what, got, has, want, had)
				}
				_ = fresh.Close()
				do(t, admin, "FLUSHALL")
			}
		})
	}
}
