package quorumlock

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A janitor repeats withdrawals from one member until the member has answered, even if it is down
// for a long time. It sends one request at a time, on one goroutine, which ends when there is
// nothing to do.
type janitor struct {
	engine *engine
	member int // its index

	mu      sync.Mutex   // guards the rest
	waiting []withdrawal // at most one for each lease and proposer
	running bool         // run is in progress
}

// A withdrawal is a request to withdraw that has not been answered.
type withdrawal struct {
	driver.WithdrawRequest
	until   time.Time // when it becomes useless
	keepEnd time.Time // when KeepFor ends; zero without KeepFor
}

const (
	// maxWithdrawals bounds the memory that a dead member costs. A lease whose withdrawal does not
	// fit ends with its TTL.
	maxWithdrawals = 10_000

	// leastPause is the shortest pause before a withdrawal is repeated: no caller waits
	// for it.
	leastPause = 50 * time.Millisecond
)

// newWithdrawal returns a request that is useful while a copy of the proposal may be in flight, or
// a lease of ttl may last.
func newWithdrawal(req driver.WithdrawRequest, ttl time.Duration) withdrawal {
	return withdrawal{WithdrawRequest: req, until: time.Now().Add(max(ttl, driver.TombstoneTTL))}
}

// add queues a request, or merges it with one for the same lease and proposer. The caller
// must be counted in engine.running.
func (j *janitor) add(w withdrawal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	same := func(other withdrawal) bool {
		return other.LeaseID == w.LeaseID && other.Name == w.Name && other.Proposer == w.Proposer && other.Released == w.Released
	}
	if i := slices.IndexFunc(j.waiting, same); i >= 0 {
		j.waiting[i].merge(w)
	} else if len(j.waiting) < maxWithdrawals {
		j.waiting = append(j.waiting, w)
	}
	if !j.running {
		j.running = true
		j.engine.running.Go(j.run)
	}
}

// merge makes w cover other too: a withdrawal of a token covers all smaller ones.
func (w *withdrawal) merge(other withdrawal) {
	if other.Token >= w.Token {
		w.Token, w.Lead = other.Token, other.Lead
	}
	w.Cancel = w.Cancel || other.Cancel
	w.until = later(w.until, other.until)
	w.keepEnd = later(w.keepEnd, other.keepEnd)
}

// run works until there is nothing left, or the engine is closed. It pauses only while the member
// does not answer.
func (j *janitor) run() {
	var backoff ask.Backoff
	for {
		w, ok := j.first()
		if !ok {
			return
		}
		answered := j.withdraw(w)
		j.done(w, answered)
		if answered {
			backoff = ask.Backoff{}
			continue
		}
		ask.Sleep(j.engine.life, max(backoff.Next(ask.LastPause), leastPause))
	}
}

// first returns the oldest request that is still useful, or marks the janitor as idle.
func (j *janitor) first() (withdrawal, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	j.waiting = slices.DeleteFunc(j.waiting, func(w withdrawal) bool { return !now.Before(w.until) })
	if len(j.waiting) == 0 || j.engine.life.Err() != nil {
		j.running = false
		return withdrawal{}, false
	}
	return j.waiting[0], true
}

// done removes w, the first request, from the list, unless another request was merged into it
// meanwhile. A request that was not answered goes to the end.
func (j *janitor) done(w withdrawal, answered bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	present := j.waiting[0] // add only merges and appends
	j.waiting = j.waiting[1:]
	if !answered || present != w {
		j.waiting = append(j.waiting, present)
	}
}

// withdraw sends w once, and reports whether the member has answered, or never will.
func (j *janitor) withdraw(w withdrawal) bool {
	ctx, cancel := ask.Limit(j.engine.life, j.engine.timeout(0))
	defer cancel()
	// The name must not stay closed for longer than requested.
	w.KeepFor = max(time.Until(w.keepEnd), 0)
	// ErrLost is an answer too.
	_, err := j.engine.members[j.member].Withdraw(ctx, w.WithdrawRequest)
	return err == nil || driver.Permanent(err)
}
