package quorumlock

import (
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A lossCount counts which members say that a lease is over.
type lossCount struct {
	listen sync.Once // to the members
	stop   []func()  // to listen; valid after listen

	mu    sync.Mutex // guards the rest
	cases map[driver.LeaseID]*lossWord
}

// A lossWord is who says that one lease is over.
type lossWord struct {
	members map[int]bool
	since   time.Time
}

const (
	// countTime is how long the word of a member counts: others follow soon, or
	// a renewal has found out.
	countTime = time.Minute

	// maxCases bounds what messages about nothing can cost.
	maxCases = 10_000
)

// add notes what a member says, and reports whether that makes so many.
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
