package systest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/check"
	"github.com/holdfast-locks/holdfast/systest/model/lease"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// A brokenEngine is a correct engine in memory with one fault. It also loses one reply in five.
type brokenEngine struct {
	driver.Engine
	fault historyFault

	mu     sync.Mutex // guards the rest
	last   uint64
	tokens map[lockinfo.LeaseID]uint64
}

// A historyFault is what an engine does wrong. Operations whose function is nil are correct.
type historyFault struct {
	acquire func(b *brokenEngine, req *driver.AcquireRequest, ask func() driver.AcquireReply) driver.AcquireReply
	extend  func(b *brokenEngine, req *driver.ExtendRequest, ask func() error) error
	release func(b *brokenEngine, req *driver.ReleaseRequest, ask func() error) error
	meddle  func(b *brokenEngine, h *check.History) // every 20 ms
}

var errReplyLost = errors.New("the reply is lost")

// Capabilities hides the queue, because that grants leases in its own way.
func (b *brokenEngine) Capabilities() driver.Capabilities { return driver.Capabilities{} }

func (b *brokenEngine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	var err error
	ask := func() driver.AcquireReply {
		var reply driver.AcquireReply
		reply, err = b.Engine.Acquire(ctx, req)
		return reply
	}
	var reply driver.AcquireReply
	if b.fault.acquire != nil {
		reply = b.fault.acquire(b, &req, ask)
	} else {
		reply = ask()
	}
	if rand.IntN(5) == 0 {
		return driver.AcquireReply{}, errReplyLost
	}
	return reply, err
}

func (b *brokenEngine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	errs := make([]error, len(reqs))
	for i, req := range reqs {
		ask := func() error { return b.Engine.Extend(ctx, []driver.ExtendRequest{req})[0] }
		if b.fault.extend != nil {
			errs[i] = b.fault.extend(b, &req, ask)
		} else {
			errs[i] = ask()
		}
		if rand.IntN(5) == 0 {
			errs[i] = errReplyLost
		}
	}
	return errs
}

func (b *brokenEngine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	ask := func() error { return b.Engine.Release(ctx, req) }
	var err error
	if b.fault.release != nil {
		err = b.fault.release(b, &req, ask)
	} else {
		err = ask()
	}
	if rand.IntN(5) == 0 {
		return errReplyLost
	}
	return err
}

// next returns the counter's token for a lease, always the same for the same lease.
func (b *brokenEngine) next(id lockinfo.LeaseID) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens[id] == 0 {
		b.last++
		b.tokens[id] = b.last
	}
	return b.tokens[id]
}

// reset resets the counter, as if the store had lost it, and records that in the history.
func (b *brokenEngine) reset(h *check.History) {
	h.During("", func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.last = 0
	})
}

// holder returns the ID of the lease that holds the name.
func (b *brokenEngine) holder(name string) lockinfo.LeaseID {
	lock, err := b.Inspect(context.Background(), name)
	if err != nil || len(lock.Holders) == 0 {
		return ""
	}
	return lock.Holders[0].LeaseID
}

// numbered replaces the token of a grant with the counter's.
func numbered(b *brokenEngine, req *driver.AcquireRequest, ask func() driver.AcquireReply) driver.AcquireReply {
	reply := ask()
	if reply.Outcome == driver.Granted {
		reply.Token = b.next(req.LeaseID)
	}
	return reply
}

// historyFaults are the faults, and the modes in which the checker must find each.
var historyFaults = map[string]struct {
	fault historyFault
	modes []lease.Mode
}{
	"tokens of a counter that a flush resets": {historyFault{
		acquire: numbered,
		meddle:  (*brokenEngine).reset,
	}, []lease.Mode{lease.Timed, lease.Fenced}},
	"a repeat draws a new token": {historyFault{
		acquire: func(b *brokenEngine, req *driver.AcquireRequest, ask func() driver.AcquireReply) driver.AcquireReply {
			reply := ask()
			if reply.Outcome == driver.Granted {
				reply.Token = b.next(lockinfo.NewLeaseID())
			}
			return reply
		},
	}, []lease.Mode{lease.Timed, lease.Fenced}},
	"one token for all": {historyFault{
		acquire: func(_ *brokenEngine, _ *driver.AcquireRequest, ask func() driver.AcquireReply) driver.AcquireReply {
			reply := ask()
			if reply.Outcome == driver.Granted {
				reply.Token = 1
			}
			return reply
		},
	}, []lease.Mode{lease.Timed, lease.Fenced}},
	"a repeat is told that it is held": {historyFault{
		acquire: func(b *brokenEngine, req *driver.AcquireRequest, ask func() driver.AcquireReply) driver.AcquireReply {
			if b.holder(req.Name) == req.LeaseID {
				return driver.AcquireReply{}
			}
			return ask()
		},
	}, []lease.Mode{lease.Timed, lease.Fenced}},
	"one in ten who is refused gets a token all the same": {historyFault{
		acquire: func(b *brokenEngine, req *driver.AcquireRequest, ask func() driver.AcquireReply) driver.AcquireReply {
			reply := numbered(b, req, ask)
			if reply.Outcome == driver.Held && rand.IntN(10) == 0 {
				reply = driver.AcquireReply{Outcome: driver.Granted, Token: b.next(req.LeaseID)}
			}
			return reply
		},
	}, []lease.Mode{lease.Timed, lease.Fenced}},
	"release by name": {historyFault{
		release: func(b *brokenEngine, req *driver.ReleaseRequest, ask func() error) error {
			if id := b.holder(req.Name); id != "" {
				req.LeaseID = id
			}
			return ask()
		},
	}, []lease.Mode{lease.Timed, lease.Fenced}},
	"release frees nothing": {historyFault{
		release: func(*brokenEngine, *driver.ReleaseRequest, func() error) error { return nil },
	}, []lease.Mode{lease.Timed, lease.Fenced}},
	"no tombstone": {historyFault{
		release: func(_ *brokenEngine, req *driver.ReleaseRequest, ask func() error) error {
			req.Cancel = false
			return ask()
		},
	}, []lease.Mode{lease.Timed, lease.Fenced}},
	"extend never says no": {historyFault{
		extend: func(_ *brokenEngine, _ *driver.ExtendRequest, ask func() error) error {
			_ = ask()
			return nil
		},
	}, []lease.Mode{lease.Timed, lease.Fenced}},
	"extend makes a lost lease again": {historyFault{
		extend: func(b *brokenEngine, req *driver.ExtendRequest, ask func() error) error {
			if err := ask(); err == nil {
				return nil
			}
			_, err := b.Engine.Acquire(context.Background(), driver.AcquireRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL})
			return err
		},
	}, []lease.Mode{lease.Timed, lease.Fenced}},
	"half the TTL": {historyFault{
		acquire: func(_ *brokenEngine, req *driver.AcquireRequest, ask func() driver.AcquireReply) driver.AcquireReply {
			req.TTL /= 2
			return ask()
		},
		extend: func(_ *brokenEngine, req *driver.ExtendRequest, ask func() error) error {
			req.TTL /= 2
			return ask()
		},
	}, []lease.Mode{lease.Timed}},
	"extend does nothing": {historyFault{
		extend: func(b *brokenEngine, req *driver.ExtendRequest, _ func() error) error {
			if b.holder(req.Name) != req.LeaseID {
				return driver.ErrLost
			}
			return nil
		},
	}, []lease.Mode{lease.Timed}},
}

// brokenRun is one short run of many workers on an engine in this process.
func brokenRun(t *testing.T, fault historyFault) (*check.History, *traffic.Resource) {
	t.Helper()
	b := &brokenEngine{Engine: mem.New(nil), fault: fault, tokens: map[lockinfo.LeaseID]uint64{}}
	h, r := &check.History{}, traffic.NewResource(t)
	j := traffic.Job{
		Workers: 12, Names: 3, For: 300 * time.Millisecond, TTL: 60 * time.Millisecond, Hold: 3 * time.Millisecond,
		Seed: rand.Uint64(), Resource: r.URL, Out: func(v any) { h.Note(v.(check.Op)) },
	}
	var over atomic.Bool
	var meddling sync.WaitGroup
	if fault.meddle != nil {
		meddling.Go(func() { // ends with the run
			for !over.Load() {
				time.Sleep(20 * time.Millisecond)
				fault.meddle(b, h)
			}
		})
	}
	open := func() (driver.Engine, func(), error) { return b, func() {}, nil }
	if err := traffic.LocksOn(t.Context(), open, j); err != nil {
		t.Error(err)
	}
	over.Store(true)
	meddling.Wait()
	_ = b.Close()
	return h, r
}

// TestHistoryFindsFaults checks that the checker finds the faults of broken engines under the same
// traffic, usually in a run or two.
func TestHistoryFindsFaults(t *testing.T) {
	for name, c := range historyFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range c.modes {
				runs := 1
				for ; ; runs++ {
					h, _ := brokenRun(t, c.fault)
					v := h.Verdict(lease.Model{Mode: mode}, 10*time.Second)
					if len(v.Illegal) > 0 {
						t.Logf("%s: found in %d runs: %s", mode, runs, v)
						break
					}
					if runs == 20 {
						t.Fatalf("%s: not found in %d runs: %s", mode, runs, v)
					}
				}
			}
		})
	}
}

// TestHistoryFindsNoFaultWhereThereIsNone checks that the same traffic on an engine without fault
// is legal.
func TestHistoryFindsNoFaultWhereThereIsNone(t *testing.T) {
	for _, mode := range []lease.Mode{lease.Timed, lease.Fenced} {
		t.Run(mode.String(), func(t *testing.T) {
			h, r := brokenRun(t, historyFault{})
			h.Check(t, lease.Model{Mode: mode})
			r.Log.Check(t)
		})
	}
}
