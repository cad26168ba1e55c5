package quorumlock

import (
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// OnLoss implements driver.LossTeller, if all members do. A lease is lost when a majority of the
// members reports it; after fewer reports the holder must verify the lease.
func (e *engine) OnLoss(listener func(driver.Loss)) (stop func()) {
	e.counted.listen.Do(func() {
		for i, f := range e.features {
			if f.LossTeller != nil {
				stop := f.LossTeller.OnLoss(func(l driver.Loss) { e.memberLost(i, l) })
				e.counted.stop = append(e.counted.stop, stop)
			}
		}
	})
	return e.losses.OnLoss(listener)
}

// memberLost handles a member's report of a loss. A single report ends no lease, because the other
// members may have it; it makes the holder verify the lease.
func (e *engine) memberLost(member int, loss driver.Loss) {
	if loss.LeaseID == "" || !errors.Is(loss.Err, driver.ErrLost) || !e.counted.add(loss.LeaseID, member, e.quorum) {
		loss.LeaseID, loss.Err = "", nil
	}
	e.losses.Tell(loss)
}

// A lossCount counts the members that report the loss of a lease. A report may arrive late, twice
// or never.
type lossCount struct {
	listen sync.Once // to the members
	stop   []func()  // stops listening; valid after listen

	mu    sync.Mutex // guards the rest
	cases map[lockinfo.LeaseID]*lossReport
}

// A lossReport is the set of members that report the loss of one lease.
type lossReport struct {
	members map[int]bool // by index
	since   time.Time    // when the first report arrived
}

const (
	// countTime is how long a report counts: others follow soon, or a renewal has found the loss.
	countTime = time.Minute

	// maxCases bounds the memory for reports about unknown leases.
	maxCases = 10_000
)

// add counts a report, and returns true if it completes a majority. INVARIANT I11: old cases are
// deleted.
func (c *lossCount) add(id lockinfo.LeaseID, member, quorum int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cases == nil {
		c.cases = map[lockinfo.LeaseID]*lossReport{}
	}
	now := time.Now()
	maps.DeleteFunc(c.cases, func(_ lockinfo.LeaseID, v *lossReport) bool { return now.Sub(v.since) >= countTime })
	v := c.cases[id]
	if v == nil && len(c.cases) >= maxCases {
		return false
	}
	if v == nil {
		v = &lossReport{members: map[int]bool{}, since: now}
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
