package holdfast

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/clock"
)

// SetBootClock replaces the boot-time clock of a client without leases.
func SetBootClock(c *Client, boot func() time.Duration) {
	SetClocks(c, boot, clock.None)
}

// SetClocks replaces the boot-time clock and the raw clock of a client without leases.
func SetClocks(c *Client, boot, raw func() time.Duration) {
	c.boot.Init(boot, raw, 0)
	c.leases.watchSuspensions()
}

// RecentTurns returns how many names the client remembers for fair turns.
func RecentTurns(c *Client) int { return c.turns.Names() }

// SetEveryClock replaces the clock by which a replica that calls Every tells the time.
func SetEveryClock(o *EveryOptions, clock func() time.Time) { o.clock = clock }

// ToldOf hands a client a loss as if it had looked for the lease just before that was
// handed on.
func ToldOf(c *Client, before *Lease, loss driver.Loss) {
	c.leases.mu.Lock()
	c.leases.rivals[before.name] = before
	c.leases.mu.Unlock()
	c.told(loss)
}

// CohortsOf returns how many cohorts the client knows.
func CohortsOf(c *Client) int {
	c.cohorts.mu.Lock()
	defer c.cohorts.mu.Unlock()
	return len(c.cohorts.all)
}
