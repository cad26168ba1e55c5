package quorumlock

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// OnLoss implements driver.LossTeller, if all members do: a lease is over when
// a majority of the members says so; when fewer say so it is time to ask.
func (e *Engine) OnLoss(told func(driver.Loss)) (stop func()) {
	e.counted.listen.Do(func() {
		for i, f := range e.features {
			if f.LossTeller != nil {
				stop := f.LossTeller.OnLoss(func(l driver.Loss) { e.memberLost(i, l) })
				e.counted.stop = append(e.counted.stop, stop)
			}
		}
	})
	return e.losses.OnLoss(told)
}

// memberLost is told what a member says of a loss. One member's word ends nothing,
// since the others may have the lease; it makes the holder ask.
func (e *Engine) memberLost(member int, loss driver.Loss) {
	if loss.LeaseID == "" || !errors.Is(loss.Err, driver.ErrLost) || !e.counted.add(loss.LeaseID, member, e.quorum) {
		loss.LeaseID, loss.Err = "", nil
	}
	e.losses.Tell(loss)
}

// A lossCount counts which members say that a lease is over, by their messages,
// each of which may come late, twice or never.
type lossCount struct {
	listen sync.Once // to the members
	stop   []func()  // to listen; valid after listen

	mu    sync.Mutex // guards the rest
	cases map[driver.LeaseID]*lossWord
}

// A lossWord is what members say of one lease: that it is over.
type lossWord struct {
	members map[int]bool // by index; one that says it twice counts once
	since   time.Time    // when the first of them said so
}

const (
	// countTime is how long the word of a member counts: others follow soon, or
	// a renewal has found out.
	countTime = time.Minute

	// maxCases bounds what messages about nothing can cost.
	maxCases = 10_000
)

// add notes what a member says, and reports whether that makes a majority: once, at
// the member with which it is reached. INVARIANT I11: old cases are forgotten.
func (c *lossCount) add(id driver.LeaseID, member, quorum int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cases == nil {
		c.cases = map[driver.LeaseID]*lossWord{}
	}
	now := time.Now()
	for other, v := range c.cases {
		if now.Sub(v.since) >= countTime {
			delete(c.cases, other)
		}
	}
	v := c.cases[id]
	if v == nil && len(c.cases) >= maxCases {
		return false
	}
	if v == nil {
		v = &lossWord{members: map[int]bool{}, since: now}
		c.cases[id] = v
	}
	v.members[member] = true
	return len(v.members) == quorum
}

// close stops listening.
func (c *lossCount) close() {
	c.listen.Do(func() {})
	for _, stop := range c.stop {
		stop()
	}
}
