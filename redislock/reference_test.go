package redislock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A whole is an engine with all optional methods.
type whole interface {
	driver.Engine
	driver.Queuer
	driver.Downgrader
	driver.AllAcquirer
	driver.Recorder
}

// TestAgreesWithReference sends the same random requests to memlock and to a server, and compares
// the replies and the locks. No lease expires.
func TestAgreesWithReference(t *testing.T) {
	server := testsvc.Redis(t)
	for range 20 {
		seed := rand.Uint64()
		r := &rehearsal{
			T: t, random: rand.New(rand.NewPCG(seed, 0)), server: open(t, server.URL+fmt.Sprintf("?prefix=%d:", seed)),
			reference: mem.New(nil), names: []string{"a", "b", "{a}b"},
			completed: map[lockinfo.LeaseID]bool{},
		}
		for range 150 {
			if r.step(); t.Failed() {
				t.Fatalf("seed %d, steps:\n%s", seed, r.log)
			}
		}
	}
}

// A rehearsal is one run of TestAgreesWithReference.
type rehearsal struct {
	*testing.T
	random            *rand.Rand
	server, reference whole
	names             []string
	asked             []driver.AcquireRequest // the latest requests
	completed         map[lockinfo.LeaseID]bool
	log               string
}

// step sends one random request to both engines.
func (r *rehearsal) step() {
	r.Helper()
	name := r.names[r.random.IntN(len(r.names))]
	old := driver.AcquireRequest{Name: name, LeaseID: lockinfo.NewLeaseID()}
	if len(r.asked) > 0 {
		old = r.asked[r.random.IntN(len(r.asked))]
	}
	var what string
	var run func(e whole) string
	switch r.random.IntN(12) {
	case 0, 1, 2:
		req := r.ask(name)
		what, run = "acquire", func(e whole) string { return acquired(e.Acquire(r.Context(), req)) }
	case 3:
		if r.completed[old.LeaseID] {
			return // a later complete may be about either of the two
		}
		req := old
		req.TTL = time.Hour
		if req.Queue = r.random.IntN(3) > 0; req.Queue {
			req.WaiterTTL = time.Hour
		}
		what, run = "repeat", func(e whole) string { return acquired(e.Acquire(r.Context(), req)) }
	case 4, 5, 6:
		req := driver.ReleaseRequest{Name: old.Name, LeaseID: old.LeaseID, Cancel: r.random.IntN(3) == 0}
		if r.random.IntN(8) == 0 {
			req.KeepFor = time.Hour
		}
		what, run = fmt.Sprintf("release %+v", req), func(e whole) string { return class(e.Release(r.Context(), req)) }
	case 7:
		req := driver.RefreshRequest{Name: old.Name, LeaseID: old.LeaseID, WaiterTTL: time.Hour}
		what, run = "refresh", func(e whole) string {
			reply := e.Refresh(r.Context(), []driver.RefreshRequest{req})[0]
			return acquired(reply.AcquireReply, reply.Err)
		}
	case 8:
		req := driver.ExtendRequest{Name: old.Name, LeaseID: old.LeaseID, TTL: 2 * time.Hour}
		what, run = "extend", func(e whole) string { return class(e.Extend(r.Context(), []driver.ExtendRequest{req})[0]) }
	case 9:
		if old.Mode.Limit() > 0 {
			return
		}
		req := driver.DowngradeRequest{Name: old.Name, LeaseID: old.LeaseID}
		what, run = "downgrade", func(e whole) string { return class(e.Downgrade(r.Context(), req)) }
	case 10:
		reqs := []driver.AcquireRequest{r.ask("a"), r.ask("b")}
		for i := range reqs {
			reqs[i].Queue, reqs[i].WaiterTTL, reqs[i].Once = false, 0, false
		}
		what, run = "acquire all", func(e whole) string {
			reply, err := e.AcquireAll(r.Context(), reqs)
			if err != nil {
				return class(err)
			}
			return fmt.Sprint(reply.Outcome, reply.Refused, len(reply.Tokens), reply.Holder)
		}
	case 11:
		req := driver.CompleteRequest{Name: old.Name, LeaseID: old.LeaseID, Record: []byte(old.LeaseID), Retention: time.Hour}
		r.completed[old.LeaseID] = true
		what, run = "complete", func(e whole) string { return class(e.Complete(r.Context(), req)) }
		if r.random.IntN(2) == 0 {
			what, run = "forget", func(e whole) string {
				found, err := e.Forget(r.Context(), name)
				return fmt.Sprint(found, class(err))
			}
		}
	}
	want, got := run(r.reference), run(r.server)
	r.log += fmt.Sprintf("%s %s %s mode %s: %s\n", what, name, old.LeaseID, old.Mode, want)
	if got != want {
		r.Errorf("%s: %s, the reference answers %s", what, got, want)
	}
	for _, name := range r.names {
		want, got := described(r.reference.Inspect(r.Context(), name)), described(r.server.Inspect(r.Context(), name))
		if got != want {
			r.Errorf("after %s %q is\n%s\nwant\n%s", what, name, got, want)
		}
	}
}

// ask returns a new request, and remembers it.
func (r *rehearsal) ask(name string) driver.AcquireRequest {
	req := driver.AcquireRequest{
		Name: name, LeaseID: lockinfo.NewLeaseID(), TTL: time.Hour, Holder: lockinfo.Holder{PID: r.random.IntN(1000) + 1},
		Queue: r.random.IntN(3) > 0, Once: r.random.IntN(4) == 0,
	}
	switch r.random.IntN(6) {
	case 0, 1, 2:
		req.Mode = lockinfo.Shared
	case 3:
		limit := 2 + r.random.IntN(2)
		req.Mode = lockinfo.Permits(1+r.random.IntN(limit), limit)
	}
	if name == "b" {
		req.Mode = lockinfo.Permits(1+r.random.IntN(3), 4)
	}
	if req.Queue {
		req.WaiterTTL = time.Hour
	}
	r.asked = append(r.asked[max(0, len(r.asked)-12):], req)
	return req
}

// acquired returns the part of a reply that two stores have in common.
func acquired(reply driver.AcquireReply, err error) string {
	if err != nil {
		return class(err)
	}
	if reply.Outcome != driver.Held {
		return fmt.Sprint(reply.Outcome, reply.Token > 0, string(reply.Record))
	}
	return fmt.Sprint("held, place ", reply.Place)
}

func class(err error) string {
	for _, sentinel := range drivertest.Sentinels() {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	return fmt.Sprint(err)
}

func described(lock lockinfo.LockState, err error) string {
	s := fmt.Sprint(lock.Mode, lock.QueueLength, class(err))
	if len(lock.Holders) == 0 {
		s = fmt.Sprint("free ", lock.QueueLength, class(err))
	}
	for _, h := range lock.Holders {
		s += fmt.Sprintf("\n  held %s %s %v until %s", h.LeaseID, h.Mode, h.Released, h.ExpiresIn.Round(time.Hour))
	}
	for _, w := range lock.Queue {
		s += fmt.Sprintf("\n  waits %s %s until %s", w.LeaseID, w.Mode, w.ExpiresIn.Round(time.Hour))
	}
	return s
}
